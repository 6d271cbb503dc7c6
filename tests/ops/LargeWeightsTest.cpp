//===- LargeWeightsTest.cpp - products of few rows with large weights -----===//
//
// What no near cache holds is asked for ahead in another order than it is read
// in, by one tile of rows otherwise than by many.
//
//===----------------------------------------------------------------------===//
#include "FormTest.h"

namespace K = keratin::backend;
using keratin::Array;
using namespace keratin::optest;

namespace {

struct Case {
  const char *name;
  int64_t deep, wide;
  bool isOpen = true;
};

class LargeWeights : public FormTest<Case> {
protected:
  K::Function product(int64_t batch) {
    const Case &c = GetParam();
    K::Tensor x = K::placeholder({c.isOpen ? K::None : batch, c.deep});
    return K::function(
        {x}, {K::relu(K::dot(x, K::constant(weights)) + K::constant(bias))});
  }

  Array weights = numbers({GetParam().deep, GetParam().wide});
  Array bias = numbers({GetParam().wide});
  Array rows = numbers({40, GetParam().deep});

  Array firstRows(int64_t count) {
    Array first(keratin::DType::Float32, {count, GetParam().deep});
    std::memcpy(first.mutableData(), rows.data(), size_t(first.byteSize()));
    return first;
  }
};

constexpr int64_t batches[] = {1, 7, 20, 40};

TEST_P(LargeWeights, GiveWhatPlainLoopsGive) {
  for (int64_t batch : batches) {
    K::Function function = product(batch);
    std::vector<Array> inputs = {firstRows(batch)};
    Array expected = plainResult(function, inputs);
    EXPECT_LE(relativeError(function(inputs)[0], expected), 1e-5) << batch;
  }
}

TEST_P(LargeWeights, GiveWhatOneThreadGives) {
  for (int64_t batch : batches) {
    K::Function function = product(batch);
    expectSameBitsOnThreads(function, {firstRows(batch)});
  }
}

/// Between blocks of a long sum many rows have it in memory, where it is what
/// it is in registers. Tile registers and pairs are for many rows, weights of 24
/// bits for one, and all round otherwise.
TEST_P(LargeWeights, OfARowDoNotDependOnOthers) {
  K::CompileSettings settings;
  settings.tiles = settings.weights24 = settings.pairs = "off";
  K::Function ofAll = product(40);
  ofAll.configure(settings);
  Array all = ofAll({rows})[0];
  for (int64_t batch : batches) {
    K::Function function = product(batch);
    function.configure(settings);
    Array some = function({firstRows(batch)})[0];
    EXPECT_EQ(std::memcmp(some.data(), all.data(), size_t(some.byteSize())), 0)
        << batch << " rows";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, LargeWeights,
    testing::Values(Case{"open", 1024, 768}, Case{"long_sums", 4096, 256},
                    Case{"rests", 1003, 777}, Case{"known", 1024, 768, false},
                    Case{"known_rests", 2051, 331, false}),
    [](const auto &info) { return std::string(info.param.name); });

} // namespace
