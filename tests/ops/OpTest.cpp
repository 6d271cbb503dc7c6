//===- OpTest.cpp - checks every row of the table -------------------------===//
#include "OpTable.h"

#include "keratin/abi.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <unistd.h>

using namespace keratin;
using namespace keratin::optest;

namespace {

std::vector<Row> allRows() {
  std::vector<Row> rows;
  for (auto family :
       {elementwiseRows, activationRows, reduceRows, shapeRows, indexRows,
        linearRows, convolutionRows, poolRows, normalizationRows, loopRows})
    for (Row &row : family())
      rows.push_back(std::move(row));
  return rows;
}

/// `values` in a dtype.
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

/// A row's op in a graph: the placeholders of what is not a weight, and their
/// values.
struct Forward {
  Forward(const Row &row, int64_t batch, bool dynamic) {
    values = row.inputs(batch);
    for (size_t i = 0; i < values.size(); ++i) {
      Array array = toArray(values[i], row.dtype(i));
      if (row.isWeight(i)) {
        tensors.push_back(K::constant(array));
        continue;
      }
      K::Shape shape = values[i].shape;
      if (dynamic && row.isBatched(i))
        shape[0] = K::None;
      tensors.push_back(K::placeholder(shape, row.dtype(i)));
      placeholders.push_back(tensors.back());
      arrays.push_back(array);
    }
    y = row.op(tensors);
    function = K::function(placeholders, {y});
  }

  K::GraphScope scope;
  std::vector<Values> values;
  K::Tensors tensors, placeholders;
  std::vector<Array> arrays;
  K::Tensor y;
  K::Function function;
};

class OpTest : public testing::TestWithParam<Row> {};

void expectForward(const Row &row, bool optimize) {
  Forward forward(row, tableBatch, /*dynamic=*/false);
  K::CompileSettings settings;
  settings.optimize = optimize;
  forward.function.configure(settings);
  expectClose(forward.function(forward.arrays)[0], row.formula(forward.values),
              row.tolerance);
}

TEST_P(OpTest, ComputesItsFormulaUnoptimized) {
  expectForward(GetParam(), /*optimize=*/false);
}

TEST_P(OpTest, ComputesItsFormulaOptimized) {
  expectForward(GetParam(), /*optimize=*/true);
}

/// A directory that is gone at the end.
struct TemporaryDirectory {
  TemporaryDirectory() {
    std::string pattern = testing::TempDir() + "keratin-XXXXXX";
    path = mkdtemp(pattern.data());
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path); }
  std::filesystem::path path;
};

/// Runs a shared object that `Function::save` wrote.
Array runArtefact(const std::string &path, int64_t batch,
                  const std::vector<Array> &inputs, const Array &output) {
  void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    ADD_FAILURE() << dlerror();
    return output;
  }
  auto *info =
      static_cast<const ktn_model_info_t *>(dlsym(handle, "keratin_model"));
  if (!info) {
    ADD_FAILURE() << dlerror();
    return output;
  }
  size_t arenaBytes = info->arena_bytes[0] + batch * info->arena_bytes[1];
  std::unique_ptr<void, decltype(&std::free)> arena(
      std::aligned_alloc(KTN_ALIGNMENT,
                         (arenaBytes / KTN_ALIGNMENT + 1) * KTN_ALIGNMENT),
      std::free);
  std::vector<const void *> in;
  for (const Array &array : inputs)
    in.push_back(array.data());
  Array result = output;
  void *out[] = {result.mutableData()};
  EXPECT_EQ(info->run(info->weights, arena.get(), batch, in.data(), out),
            KTN_OK);
  dlclose(handle);
  return result;
}

TEST_P(OpTest, ComputesItsFormulaForAnyBatch) {
  const Row &row = GetParam();
  if (!row.hasBatch)
    return;
  TemporaryDirectory directory;
  K::SaveOptions options;
  options.name = "op";
  options.emit = "so";
  std::string prefix = directory.path / "op";
  Forward(row, tableBatch, /*dynamic=*/true).function.save(prefix, options);
  for (int64_t batch : {1, 5}) {
    Forward forward(row, batch, /*dynamic=*/false);
    Values expected = row.formula(forward.values);
    Array output(K::dtype(forward.y), expected.shape);
    expectClose(runArtefact(prefix + ".so", batch, forward.arrays, output),
                expected, row.tolerance);
  }
}

/// Central differences of sum(formula(inputs) * cotangent) by input `which`.
Values differences(const Row &row, std::vector<Values> inputs, size_t which,
                   const Values &cotangent) {
  auto loss = [&] {
    Values y = row.formula(inputs);
    double sum = 0;
    for (int64_t i = 0; i < y.size(); ++i)
      sum += y.data[i] * cotangent.data[i];
    return sum;
  };
  Values result(inputs[which].shape);
  constexpr double h = 1e-5; // near the cube root of the epsilon of double
  for (int64_t i = 0; i < result.size(); ++i) {
    double &element = inputs[which].data[i];
    double x = element;
    element = x + h;
    double above = loss();
    element = x - h;
    double below = loss();
    element = x;
    result.data[i] = (above - below) / (2 * h);
  }
  return result;
}

TEST_P(OpTest, HasTheGradientOfItsFormula) {
  const Row &row = GetParam();
  if (!row.hasGradient)
    return;
  K::GraphScope scope;
  std::vector<Values> values = row.inputs(tableBatch);
  K::Tensors tensors, wrt;
  std::vector<Array> arrays;
  std::vector<size_t> differentiable;
  for (size_t i = 0; i < values.size(); ++i) {
    bool isFloat = row.dtype(i) == DType::Float32;
    DType dtype = isFloat ? DType::Float64 : row.dtype(i);
    tensors.push_back(K::placeholder(values[i].shape, dtype));
    arrays.push_back(toArray(values[i], dtype));
    if (isFloat) {
      wrt.push_back(tensors.back());
      differentiable.push_back(i);
    }
  }
  // Weighted, so that every element of the result counts by itself.
  K::Tensor y = row.op(tensors);
  Values result = row.formula(values);
  Values cotangent =
      generate(result.shape, [&, n = 0](const K::Shape &) mutable {
        return std::sin(1.0 + n++);
      });
  K::Tensor loss = K::sum(y * K::constant(toArray(cotangent, DType::Float64)));
  K::Function gradient = K::function(tensors, K::gradients(loss, wrt));
  K::CompileSettings settings;
  settings.optimize = false; // it is the formula that is tested here
  gradient.configure(settings);

  std::vector<Array> actual = gradient(arrays);
  for (size_t i = 0; i < wrt.size(); ++i) {
    SCOPED_TRACE("input " + std::to_string(differentiable[i]));
    expectClose(actual[i],
                differences(row, values, differentiable[i], cotangent), 1e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(Table, OpTest, testing::ValuesIn(allRows()),
                         [](const testing::TestParamInfo<Row> &info) {
                           return info.param.name;
                         });

} // namespace
