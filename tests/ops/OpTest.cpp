//===- OpTest.cpp - every row computes its formula ------------------------===//
#include "OpRun.h"

#include <gtest/gtest.h>

using namespace keratin;
using namespace keratin::optest;

namespace {

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

TEST_P(OpTest, ComputesItsFormulaInAnArtefact) {
  const Row &row = GetParam();
  TemporaryDirectory directory;
  K::SaveOptions options;
  options.name = "op";
  options.emit = "so";
  std::string prefix = directory.path / "op";
  Forward(row, tableBatch, /*dynamic=*/true).function.save(prefix, options);
  for (int64_t batch : row.hasBatch ? std::vector<int64_t>{1, 5}
                                    : std::vector<int64_t>{tableBatch}) {
    Forward forward(row, batch, /*dynamic=*/false);
    Values expected = row.formula(forward.values);
    std::vector<Array> outputs = {Array(K::dtype(forward.y), expected.shape)};
    runArtefact(prefix + ".so", batch, forward.arrays, outputs, row.state);
    expectClose(outputs[0], expected, row.tolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(Table, OpTest, testing::ValuesIn(allRows()),
                         [](const testing::TestParamInfo<Row> &info) {
                           return info.param.name;
                         });

} // namespace
