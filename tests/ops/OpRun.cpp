//===- OpRun.cpp - running what a row describes ---------------------------===//
#include "OpRun.h"

#include "keratin/abi.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <dlfcn.h>
#include <unistd.h>

namespace keratin::optest {

std::vector<Row> allRows() {
  std::vector<Row> rows;
  for (auto family :
       {elementwiseRows, activationRows, reduceRows, shapeRows, indexRows,
        linearRows, convolutionRows, poolRows, normalizationRows, loopRows,
        randomRows, lossRows, ctcRows, localRows, fillRows})
    for (Row &row : family())
      rows.push_back(std::move(row));
  return rows;
}

Array toArray(const Values &values, DType dtype) {
  Array array(dtype, values.shape);
  void *bytes = array.mutableData();
  auto fill = [&](auto *elements) {
    std::copy(values.data.begin(), values.data.end(), elements);
  };
  switch (dtype) {
  case DType::Float32:
    fill(static_cast<float *>(bytes));
    break;
  case DType::Float64:
    fill(static_cast<double *>(bytes));
    break;
  case DType::Int32:
    fill(static_cast<int32_t *>(bytes));
    break;
  case DType::Int64:
    fill(static_cast<int64_t *>(bytes));
    break;
  case DType::Bool:
    fill(static_cast<uint8_t *>(bytes));
    break;
  default:
    ADD_FAILURE() << "no values of dtype " << dtypeName(dtype);
  }
  return array;
}

void expectClose(const Array &actual, const Values &expected,
                 double tolerance) {
  ASSERT_EQ(actual.shape(), expected.shape);
  double largest = 0, error = 0;
  int64_t worst = 0;
  for (int64_t i = 0; i < expected.size(); ++i) {
    double difference = std::abs(actual.at(i) - expected.data[i]);
    largest = std::max(largest, std::abs(expected.data[i]));
    if (!(difference <= error)) { // a NaN is the worst
      error = difference;
      worst = i;
    }
  }
  EXPECT_LE(error, tolerance * largest)
      << "element " << worst << " is " << actual.at(worst) << ", not "
      << expected.data[worst];
}

TemporaryDirectory::TemporaryDirectory() {
  std::string pattern = testing::TempDir() + "keratin-XXXXXX";
  path = mkdtemp(pattern.data());
}

TemporaryDirectory::~TemporaryDirectory() { std::filesystem::remove_all(path); }

void runArtefact(const std::string &path, int64_t batch,
                 const std::vector<Array> &inputs, std::vector<Array> &outputs,
                 const Array &state) {
  void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    ADD_FAILURE() << dlerror();
    return;
  }
  auto *info =
      static_cast<const ktn_model_info_t *>(dlsym(handle, "keratin_model"));
  if (!info) {
    ADD_FAILURE() << dlerror();
    return;
  }
  if (info->batch >= 0)
    batch = info->batch; // of shapes that are all known
  size_t arenaBytes = info->arena_bytes[0] + batch * info->arena_bytes[1];
  std::unique_ptr<void, decltype(&std::free)> arena(
      std::aligned_alloc(KTN_ALIGNMENT,
                         (arenaBytes / KTN_ALIGNMENT + 1) * KTN_ALIGNMENT),
      std::free);
  std::vector<const void *> in;
  for (const Array &array : inputs)
    in.push_back(array.data());
  std::vector<void *> out;
  for (Array &array : outputs)
    out.push_back(array.mutableData());
  // What goes on with each call is an output more, and an input if it is read.
  Array nextState = state;
  if (info->num_inputs > static_cast<int32_t>(inputs.size()))
    in.push_back(state.data());
  if (info->num_outputs > static_cast<int32_t>(outputs.size()))
    out.push_back(nextState.mutableData());
  EXPECT_EQ(info->num_inputs, static_cast<int32_t>(in.size()));
  EXPECT_EQ(info->num_outputs, static_cast<int32_t>(out.size()));
  EXPECT_EQ(info->run(info->weights, arena.get(), batch, in.data(), out.data()),
            KTN_OK);
  dlclose(handle);
}

} // namespace keratin::optest
