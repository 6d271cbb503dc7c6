//===- CpusTest.cpp - how many CPUs the process may use ------------------===//
#include "runtime/Cpus.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace {
/// Files as the kernel would show them, below a directory of their own.
class Cgroups : public ::testing::Test {
protected:
  void SetUp() override {
    root = testing::TempDir() + "cgroups-" +
           testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(root);
  }
  void TearDown() override { std::filesystem::remove_all(root); }

  void write(const std::string &path, const std::string &text) {
    std::filesystem::path file = root + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  int limit() { return ktn_cgroup_limit(root.c_str()); }

  std::string root;
};
} // namespace

TEST_F(Cgroups, LimitNothingWhereThereAreNone) { EXPECT_EQ(limit(), 0); }

TEST_F(Cgroups, LimitWholeCpus) {
  write("/proc/self/cgroup", "0::/\n");
  write("/sys/fs/cgroup/cpu.max", "300000 100000\n");
  EXPECT_EQ(limit(), 3);
  write("/sys/fs/cgroup/cpu.max", "250000 100000\n");
  EXPECT_EQ(limit(), 2);
  write("/sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_EQ(limit(), 1);
  write("/sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(limit(), 0);
  write("/sys/fs/cgroup/cpu.max", "");
  EXPECT_EQ(limit(), 0);
}

TEST_F(Cgroups, LimitByTheSmallestOfTheirParents) {
  write("/proc/self/cgroup", "0::/slice/service\n");
  write("/sys/fs/cgroup/slice/service/cpu.max", "800000 100000\n");
  EXPECT_EQ(limit(), 8);
  write("/sys/fs/cgroup/slice/cpu.max", "200000 100000\n");
  EXPECT_EQ(limit(), 2);
}

TEST_F(Cgroups, LimitInTheirFirstVersion) {
  write("/proc/self/cgroup", "5:cpuset:/\n4:cpu,cpuacct:/docker/1234\n");
  // A container sees its own group at the top.
  write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "400000\n");
  write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(limit(), 4);
  write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(limit(), 0);
}

TEST_F(Cgroups, AreReadWhateverTheyHold) {
  for (const char *text :
       {"", "0", "0:", "0::", ":::::\n\n0::/../..\n", "4:cpuset,cpuacct:/\n"}) {
    write("/proc/self/cgroup", text);
    EXPECT_EQ(limit(), 0) << text;
  }
  write("/proc/self/cgroup", "0::/" + std::string(3000, 'x') + "\n");
  EXPECT_EQ(limit(), 0);
}

TEST(CpuLimit, IsNoMoreThanTheMachineHas) {
  EXPECT_GE(ktn_cpu_limit(), 1);
  EXPECT_LE(unsigned(ktn_cpu_limit()), std::thread::hardware_concurrency());
}
