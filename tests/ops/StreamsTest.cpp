//===- StreamsTest.cpp - tensors that no near cache holds -----------------===//
//
// A sum of much memory goes in several runs side by side. Elements are computed
// once each, whatever is asked for ahead of them.
//
//===----------------------------------------------------------------------===//
#include "FormTest.h"

namespace K = keratin::backend;
using keratin::Array;
using keratin::DType;
using namespace keratin::optest;

namespace {

struct Case {
  const char *name;
  K::Shape shape;
  K::Ints axes;
  DType dtype = DType::Float32;
};

class Streams : public FormTest<Case> {};

TEST_P(Streams, AreReducedAsPlainLoopsDo) {
  const Case &c = GetParam();
  K::Tensor x = K::placeholder(c.shape, c.dtype);
  for (const K::Tensor &y : {K::sum(K::square(x), c.axes), K::max(x, c.axes),
                             K::sum(K::exp(x) * x, c.axes)}) {
    K::Function function = K::function({x}, {y});
    std::vector<Array> inputs = {numbers(c.shape, c.dtype)};
    Array expected = plainResult(function, inputs);
    Array first = function(inputs)[0];
    EXPECT_LE(relativeError(first, expected), 2e-3);
    for (int call = 0; call < 3; ++call)
      EXPECT_EQ(relativeError(function(inputs)[0], first), 0);
    expectSameBitsOnThreads(function, inputs);
  }
}

TEST_P(Streams, KeepNotANumber) {
  const Case &c = GetParam();
  K::Tensor x = K::placeholder(c.shape, c.dtype);
  K::Function function =
      K::function({x}, {K::sum(x), K::max(x), K::sum(K::relu(x))});
  for (int64_t place : {int64_t(0), int64_t(-1)}) {
    std::vector<Array> inputs = {numbers(c.shape, c.dtype)};
    inputs[0].set(place < 0 ? inputs[0].size() - 1 : place, NAN);
    for (const Array &result : function(inputs))
      EXPECT_TRUE(std::isnan(result.at(0)));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Streams,
    testing::Values(Case{"rows", {1024, 517}, {}}, Case{"line", {524301}, {}},
                    Case{"lines", {2, 530003}, {-1}},
                    Case{"few_long", {3, 270007}, {}},
                    Case{"inner_rows", {3, 16, 11003}, {}},
                    Case{"narrow", {70000, 8}, {}},
                    Case{"halves", {512, 2050}, {}, DType::Float16},
                    Case{"doubles", {264, 1000}, {}, DType::Float64}),
    [](const auto &info) { return std::string(info.param.name); });

/// Each element once, where rows, vectors and what is asked for end together or
/// do not.
TEST(Streams, AreComputedElementByElement) {
  for (const K::Shape &shape :
       {K::Shape{300, 1024}, K::Shape{37, 4099}, K::Shape{150001}}) {
    Array values(DType::Float32, shape);
    for (int64_t index = 0; index < values.size(); ++index)
      values.set(index, double(index % 4096) / 512 - 4);
    K::Tensor x = K::placeholder(shape);
    K::Function function = K::function({x}, {K::relu(x) - x * 0.5f});
    Array result = function({values})[0];
    for (int64_t index = 0; index < values.size(); ++index)
      ASSERT_EQ(result.at(index), std::fabs(values.at(index)) / 2) << index;
  }
}

} // namespace
