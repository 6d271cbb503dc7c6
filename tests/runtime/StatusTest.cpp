//===- StatusTest.cpp - names of statuses ---------------------------------===//
#include "keratin/status.h"

#include <gtest/gtest.h>
#include <set>
#include <string>

TEST(StatusName, IsDifferentForEachStatus) {
  std::set<std::string> names;
  for (int status = KTN_OK; status <= KTN_CPU_UNSUPPORTED; ++status)
    names.insert(ktn_status_name(static_cast<ktn_status_t>(status)));
  EXPECT_EQ(names.size(), 11u);
  EXPECT_EQ(names.count("unknown status"), 0u);
}
