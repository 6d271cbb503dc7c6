//===- OpRun.h - running what a row describes -------------------*- C++ -*-===//
#ifndef KERATIN_TESTS_OPS_OPRUN_H
#define KERATIN_TESTS_OPS_OPRUN_H

#include "OpTable.h"

#include <filesystem>

namespace keratin::optest {

/// The rows of all families.
std::vector<Row> allRows();

/// `values` in a dtype.
Array toArray(const Values &values, DType dtype);

/// Every element within `tolerance` times the largest magnitude of `expected`.
void expectClose(const Array &actual, const Values &expected, double tolerance);

/// A directory that is gone at the end.
struct TemporaryDirectory {
  TemporaryDirectory();
  ~TemporaryDirectory();
  std::filesystem::path path;
};

/// Runs a shared object that `Function::save` wrote. `outputs` are arrays of
/// the dtypes and shapes of the results, which they become. `state` is the
/// variable that it has, if it has one.
void runArtefact(const std::string &path, int64_t batch,
                 const std::vector<Array> &inputs, std::vector<Array> &outputs,
                 const Array &state = Row().state);

} // namespace keratin::optest

#endif // KERATIN_TESTS_OPS_OPRUN_H
