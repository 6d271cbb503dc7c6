//===- RowsTest.cpp - kernels that go row by row --------------------------===//
//
// Rows go side by side where several are short enough, vectors lie across those
// of few elements, and the last ones go alone: in all ways a row has the same
// bits.
//
//===----------------------------------------------------------------------===//
#include "FormTest.h"

namespace K = keratin::backend;
using keratin::Array;
using namespace keratin::optest;

namespace {

struct Case {
  const char *name;
  int64_t rows, length;
};

class Rows : public FormTest<Case> {
protected:
  /// Of an open number of rows: what is added, centred and scaled, and its
  /// weights.
  K::Function function(bool isSoftmax) {
    int64_t length = GetParam().length;
    K::Tensor x = K::placeholder({K::None, length});
    K::Tensor beside = K::placeholder({K::None, length});
    if (isSoftmax)
      return K::function({x, beside}, {K::softmax(x + beside)});
    return K::function(
        {x, beside},
        {K::layer_normalization(x + beside, K::constant(numbers({length})),
                                K::constant(numbers({length})), {-1}, 1e-3)});
  }
};

TEST_P(Rows, AreWhatPlainLoopsGive) {
  for (bool isSoftmax : {false, true}) {
    K::Function rows = function(isSoftmax);
    std::vector<Array> inputs = inputsOf(rows, GetParam().rows);
    Array expected = plainResult(rows, inputs);
    EXPECT_LE(relativeError(rows(inputs)[0], expected), 1e-5);
    expectSameBitsOnThreads(rows, inputs);
  }
}

TEST_P(Rows, HaveTheSameBitsAloneAndSideBySide) {
  int64_t length = GetParam().length;
  for (bool isSoftmax : {false, true}) {
    // The one row of a softmax is divided by its sum, and one of few elements
    // has no others that a vector might lie across.
    constexpr int64_t fewElements = 12;
    int64_t count = isSoftmax || length < fewElements ? 3 : 1;
    K::Function rows = function(isSoftmax);
    std::vector<Array> inputs = inputsOf(rows, GetParam().rows);
    Array all = rows(inputs)[0];
    for (int64_t first = 0; first < GetParam().rows; first += count) {
      std::vector<Array> own;
      for (const Array &input : inputs) {
        Array part(keratin::DType::Float32, {count, length});
        for (int64_t index = 0; index < part.size(); ++index)
          part.set(index, input.at(first * length + index));
        own.push_back(part);
      }
      Array some = rows(own)[0];
      for (int64_t index = 0; index < some.size(); ++index)
        ASSERT_EQ(some.at(index), all.at(first * length + index))
            << first << ", " << index;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Rows,
    testing::Values(Case{"two", 36, 2}, Case{"three", 54, 3},
                    Case{"four", 39, 4}, Case{"five", 69, 5},
                    Case{"seven", 33, 7}, Case{"eight", 42, 8},
                    Case{"ten", 39, 10}, Case{"eleven", 63, 11},
                    Case{"tiny", 9, 5}, Case{"short_rows", 9, 64},
                    Case{"with_rest", 12, 77}, Case{"eight_vectors", 6, 128},
                    Case{"wide", 6, 768}, Case{"of_a_page", 6, 1024},
                    Case{"about_a_page", 3, 1000}, Case{"with_both", 9, 197},
                    Case{"far_beyond", 3, 2051}),
    [](const auto &info) { return std::string(info.param.name); });

} // namespace
