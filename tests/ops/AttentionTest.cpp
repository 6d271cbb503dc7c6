//===- AttentionTest.cpp - scores that are never a matrix in memory -------===//
//
// Each is compared with what -O0 computes: the matrix of all scores, the
// weights of all rows, and then the sums of values.
//
//===----------------------------------------------------------------------===//
#include "FormTest.h"

namespace K = keratin::backend;
using keratin::Array;
using keratin::DType;
using namespace keratin::optest;

namespace {

enum class Mask {
  None,
  Padding, ///< of keys, and of queries: rows that see nothing
  Causal,
  CausalPadding, ///< both
  CausalZeroed,  ///< and the weights of what is not seen are set to zero
  Faint,         ///< what is not seen has a score that is not far below others
  Window,        ///< a query sees some keys in front of it, and its own
  Full,          ///< for each pair of query and key
  Late,          ///< a query sees only keys far behind, or far in front
  Bias, ///< a number for each pair of query and key is added to the score
};

struct Case {
  const char *name;
  int64_t batch, queries, keys, heads, width, valueWidth;
  Mask mask = Mask::None;
  DType dtype = DType::Float32;
  bool isOpen = true;  ///< any batch
  bool isSelf = false; ///< queries, keys and values are one tensor
  bool fuses = true;
};

class Attention : public FormTest<Case> {
protected:
  K::Tensor place(K::Shape shape) {
    if (GetParam().isOpen)
      shape[0] = K::None;
    inputs.push_back(K::placeholder(shape, GetParam().dtype));
    return inputs.back();
  }

  K::Tensor padding() {
    const Case &c = GetParam();
    return K::logical_and(K::greater(place({c.batch, 1, c.queries, 1}), -0.5),
                          K::greater(place({c.batch, 1, 1, c.keys}), -0.5));
  }

  /// From a key to a query.
  K::Tensor distances() {
    const Case &c = GetParam();
    return K::reshape(K::arange(0, c.queries), {1, 1, c.queries, 1}) -
           K::reshape(K::arange(0, c.keys), {1, 1, 1, c.keys});
  }

  /// Whether a query sees a key: (samples or 1, heads or 1, queries, keys).
  K::Tensor seen() {
    const Case &c = GetParam();
    switch (c.mask) {
    case Mask::None:
    case Mask::Bias:
      return {};
    case Mask::Padding:
      return padding();
    case Mask::Causal:
    case Mask::CausalZeroed:
    case Mask::Faint:
      return K::greater_equal(distances(), 0);
    case Mask::CausalPadding:
      return K::logical_and(K::greater_equal(distances(), 0), padding());
    case Mask::Window:
      return K::logical_and(K::greater_equal(distances(), 0),
                            K::less(distances(), 20));
    case Mask::Late: {
      // Whole blocks of keys are not seen, at the start or at the end.
      K::Tensor query =
          K::reshape(K::arange(0, c.queries), {1, 1, c.queries, 1});
      K::Tensor key = K::reshape(K::arange(0, c.keys), {1, 1, 1, c.keys});
      K::Tensor place = query * K::Tensor(200), half(double(c.queries / 2));
      return K::logical_or(
          K::logical_and(K::less(query, half), K::greater_equal(key, place)),
          K::logical_and(K::greater_equal(query, half),
                         K::less_equal(key, place)));
    }
    case Mask::Full:
      return K::greater(place({c.batch, c.heads, c.queries, c.keys}), -0.25);
    }
    return {};
  }

  K::Function attention() {
    const Case &c = GetParam();
    inputs.clear();
    if (c.isSelf) {
      K::Tensor x = place({c.batch, c.queries, c.width});
      K::Tensor weights = K::softmax(K::batch_dot(x, x, {2, 2}));
      return K::function(inputs, {K::matmul(weights, x)});
    }
    K::Tensor query = place({c.batch, c.queries, c.heads, c.width});
    K::Tensor key = place({c.batch, c.keys, c.heads, c.width});
    K::Tensor value = place({c.batch, c.keys, c.heads, c.valueWidth});
    K::Tensor scores = K::einsum("abcd,aecd->acbe", {query, key});
    scores = scores * K::Tensor(1 / std::sqrt(double(c.width)));
    if (c.mask == Mask::Bias)
      scores = scores + place({c.batch, 1, c.queries, c.keys});
    K::Tensor mask = seen();
    double notSeen = c.mask == Mask::Late    ? -INFINITY
                     : c.mask == Mask::Faint ? -1
                                             : -1e30;
    if (mask)
      scores = K::where(mask, scores, K::Tensor(notSeen));
    K::Tensor weights = K::softmax(scores);
    if (c.mask == Mask::CausalZeroed)
      weights = K::where(mask, weights, K::Tensor(0.));
    K::Tensor output = K::einsum("acbe,aecd->abcd", {weights, value});
    return K::function(inputs, {output});
  }

  K::Tensors inputs;
};

TEST_P(Attention, GivesWhatAllScoresGive) {
  K::Function function = attention();
  std::vector<Array> arrays = inputsOf(function, GetParam().batch);
  Array expected = plainResult(function, arrays);
  // -O0 sums up one after the other.
  double unit = GetParam().dtype == DType::Float64   ? 1e-13
                : GetParam().dtype == DType::Float16 ? 2e-3
                                                     : 3e-6;
  double most = unit * std::max(1.0, double(GetParam().keys) / 1000);
  EXPECT_LE(relativeError(function(arrays)[0], expected), most);
  // The code of an artefact, for functions of little work, too.
  K::CompileSettings settings;
  settings.profile = true;
  function.configure(settings);
  EXPECT_LE(relativeError(function(arrays)[0], expected), most);
}

TEST_P(Attention, IsOneKernel) {
  K::SaveOptions options;
  options.batch = GetParam().isOpen ? K::None : GetParam().batch;
  std::vector<std::string> ops = kernelOps(attention(), options);
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "attention"),
            GetParam().fuses ? 1 : 0);
  if (GetParam().fuses) {
    EXPECT_EQ(std::count(ops.begin(), ops.end(), "rows"), 0);
    EXPECT_EQ(std::count(ops.begin(), ops.end(), "matmul"), 0);
  }
}

TEST_P(Attention, DoesNotDependOnThreads) {
  K::Function function = attention();
  expectSameBitsOnThreads(function, inputsOf(function, GetParam().batch));
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Attention,
    testing::Values(
        Case{"plain", 2, 32, 32, 4, 16, 16},
        Case{"odd", 3, 17, 35, 1, 7, 7, Mask::Padding},
        Case{"cross", 2, 21, 50, 3, 20, 33, Mask::Full},
        Case{"causal", 1, 64, 64, 2, 64, 64, Mask::Causal},
        Case{"width_one", 2, 40, 24, 2, 1, 5, Mask::Padding},
        // Several blocks of queries, the last of them smaller.
        Case{"blocks", 1, 333, 301, 2, 24, 40, Mask::Padding},
        Case{"one_head", 1, 700, 190, 1, 64, 64, Mask::Causal},
        // Rows of the panel a power of two apart, and values in blocks.
        Case{"long_rows", 1, 160, 1024, 2, 16, 64, Mask::Causal},
        Case{"few_long_rows", 2, 16, 1100, 1, 8, 64, Mask::Padding},
        Case{"most_keys", 1, 33, 8192, 1, 4, 8, Mask::Padding},
        Case{"static_batch", 2, 40, 48, 2, 16, 16, Mask::Full, DType::Float32,
             false},
        Case{"doubles", 2, 40, 31, 2, 9, 12, Mask::Padding, DType::Float64},
        Case{"halves", 2, 40, 31, 2, 9, 12, Mask::Full, DType::Float16},
        Case{"self", 2, 200, 200, 1, 24, 24, Mask::None, DType::Float32, true,
             true},
        // Keys in blocks, the last of them smaller, for blocks of queries.
        Case{"running", 1, 33, 8193, 1, 4, 8},
        Case{"running_padding", 2, 24, 9000, 2, 8, 20, Mask::Padding},
        Case{"running_full", 1, 259, 8500, 1, 9, 7, Mask::Full},
        Case{"running_late", 1, 41, 8640, 2, 16, 16, Mask::Late},
        Case{"running_doubles", 1, 16, 8300, 1, 5, 12, Mask::Late,
             DType::Float64},
        // A query in each lane: the last vectors have fewer, and so have the
        // last keys; heads of no whole vectors; masks that are transposed.
        Case{"lanes_rest", 2, 100, 83, 2, 30, 30, Mask::Full},
        Case{"lanes_one_vector", 2, 13, 20, 2, 16, 48, Mask::Full},
        Case{"lanes_bias", 2, 77, 150, 3, 24, 24, Mask::Bias},
        Case{"lanes_few_keys", 2, 64, 9, 2, 64, 64, Mask::Full},
        Case{"lanes_late", 1, 12, 2500, 2, 18, 20, Mask::Late},
        Case{"lanes_wide", 1, 64, 70, 1, 160, 200, Mask::Causal},
        Case{"lanes_far", 2, 130, 196, 16, 64, 64},
        Case{"lanes_padding", 2, 66, 50, 2, 24, 80, Mask::Padding},
        // Keys that no query of a block sees are left out, unless one of the
        // queries sees nothing; in one block of keys and in several.
        Case{"hidden", 2, 127, 127, 2, 24, 24, Mask::Causal},
        Case{"hidden_halves", 2, 127, 127, 2, 24, 24, Mask::Causal,
             DType::Float16},
        Case{"hidden_zeroed", 2, 129, 129, 2, 5, 64, Mask::CausalZeroed},
        Case{"hidden_faintly", 1, 90, 90, 2, 16, 16, Mask::Faint},
        Case{"hidden_more_keys", 1, 70, 500, 2, 80, 24, Mask::Causal},
        Case{"hidden_more_queries", 1, 500, 70, 2, 16, 16, Mask::Causal},
        Case{"hidden_padding", 3, 129, 129, 1, 16, 16, Mask::CausalPadding},
        Case{"hidden_long_padding", 2, 333, 333, 2, 16, 16,
             Mask::CausalPadding},
        Case{"hidden_window", 2, 200, 200, 2, 24, 24, Mask::Window},
        Case{"hidden_long_window", 1, 700, 700, 1, 16, 16, Mask::Window},
        Case{"hidden_in_a_few", 2, 17, 17, 3, 64, 1, Mask::Causal,
             DType::Float32, true, false, false},
        // What is not worth it, or has no vectors.
        Case{"few_queries", 2, 3, 70, 2, 16, 16, Mask::None, DType::Float32,
             true, false, false},
        Case{"one_value", 2, 30, 20, 2, 8, 1, Mask::Padding, DType::Float32,
             true, false, false}),
    [](const auto &info) { return std::string(info.param.name); });

} // namespace
