//===- ShapeTest.cpp - what is known of a tensor before it is computed ----===//
#include "keratin/backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace K = keratin::backend;
using K::None;
using keratin::Array;
using keratin::DType;
using keratin::Error;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;
using Shape = K::Shape;

namespace {

K::Tensor open(const Shape &shape, DType dtype = DType::Float32) {
  return K::placeholder(shape, dtype);
}

Shape shapeOf(const K::Tensor &x) { return K::int_shape(x); }

TEST(Shape, OfElementwiseOpsIsBroadcast) {
  K::Tensor x = open({None, 3}), y = open({None, 1}), row = open({3});
  EXPECT_EQ(shapeOf(x + y), Shape({None, 3}));
  EXPECT_EQ(shapeOf(x * row), Shape({None, 3}));
  EXPECT_EQ(shapeOf(open({None, None}) - x), Shape({None, 3}));
  EXPECT_EQ(shapeOf(2.0 * x), Shape({None, 3}));
  EXPECT_EQ(K::dtype(K::equal(x, y)), DType::Bool);
}

TEST(Shape, OfReductions) {
  K::Tensor x = open({None, 3, 4});
  EXPECT_EQ(K::ndim(x), 3);
  EXPECT_EQ(K::ndim(K::sum(x, 1)), 2);
  EXPECT_EQ(shapeOf(K::sum(x)), Shape({}));
  EXPECT_EQ(shapeOf(K::mean(x, -1)), Shape({None, 3}));
  EXPECT_EQ(shapeOf(K::var(x, {0, 2}, true)), Shape({1, 3, 1}));
  EXPECT_EQ(shapeOf(K::logsumexp(x, 1)), Shape({None, 4}));
  EXPECT_EQ(shapeOf(K::argmax(x)), Shape({None, 3}));
  EXPECT_EQ(K::dtype(K::argmax(x)), DType::Int64);
}

TEST(Shape, OfReshapedTensors) {
  K::Tensor x = open({None, 3, 4});
  EXPECT_EQ(shapeOf(K::reshape(x, {-1, 12})), Shape({None, 12}));
  EXPECT_EQ(shapeOf(K::reshape(x, {K::extent(x, 0), 2, -1})),
            Shape({None, 2, None}));
  EXPECT_EQ(shapeOf(K::reshape(open({2, 6}), {3, -1})), Shape({3, 4}));
  EXPECT_EQ(shapeOf(K::batch_flatten(x)), Shape({None, 12}));
  EXPECT_EQ(shapeOf(K::flatten(x)), Shape({None}));
  EXPECT_EQ(shapeOf(K::permute_dimensions(x, {0, 2, 1})), Shape({None, 4, 3}));
  EXPECT_EQ(shapeOf(K::expand_dims(x, -1)), Shape({None, 3, 4, 1}));
  EXPECT_EQ(shapeOf(K::concatenate({x, open({None, 3, 2})})),
            Shape({None, 3, 6}));
  EXPECT_EQ(shapeOf(K::stack({x, x}, 1)), Shape({None, 2, 3, 4}));
}

TEST(Shape, OfRepeatedTensors) {
  K::Tensor x = open({None, 3});
  EXPECT_EQ(shapeOf(K::repeat(x, 4)), Shape({None, 4, 3}));
  EXPECT_EQ(shapeOf(K::repeat_elements(x, 2, 1)), Shape({None, 6}));
  EXPECT_EQ(shapeOf(K::repeat_elements(x, 2, 0)), Shape({None, 3}));
  EXPECT_EQ(shapeOf(K::tile(x, {1, 2})), Shape({None, 6}));
  EXPECT_EQ(shapeOf(K::tile(open({2, 3}), {2, 2})), Shape({4, 6}));
}

TEST(Shape, OfPythonIndices) {
  K::Tensor q = open({None, None, 4});
  K::Slice all;
  EXPECT_EQ(shapeOf(K::getitem(q, {all, -1})), Shape({None, 4}));
  EXPECT_EQ(
      shapeOf(K::getitem(q, {all, K::Slice{{}, {}, -1}, K::Slice{{}, 2}})),
      Shape({None, None, 2}));
  EXPECT_EQ(shapeOf(K::getitem(q, {K::Ellipsis{}, 0})), Shape({None, None}));
  EXPECT_EQ(shapeOf(K::getitem(q, {all, K::NewAxis{}, 0})),
            Shape({None, 1, 4}));
  EXPECT_EQ(shapeOf(K::getitem(open({10}), {K::Slice{8, 1, -3}})), Shape({3}));
  EXPECT_EQ(shapeOf(K::getitem(open({10}), {K::Slice{-3, {}}})), Shape({3}));
}

TEST(Shape, OfProducts) {
  K::Tensor q = open({None, None, 4});
  EXPECT_EQ(shapeOf(K::dot(q, open({4, 5}))), Shape({None, None, 5}));
  EXPECT_EQ(shapeOf(K::dot(open({2, 3}), open({4, 3, 5}))), Shape({2, 4, 5}));
  EXPECT_EQ(shapeOf(K::matmul(open({None, 2, 3, 4}), open({1, 2, 4, 5}))),
            Shape({None, 2, 3, 5}));
  EXPECT_EQ(shapeOf(K::einsum("abc,cd->abd", {q, open({4, 6})})),
            Shape({None, None, 6}));
  EXPECT_EQ(shapeOf(K::einsum("...x,xy->...y", {q, open({4, 6})})),
            Shape({None, None, 6}));
  EXPECT_EQ(shapeOf(K::einsum("aecd,abcd->acbe",
                              {open({None, 7, 2, 3}), open({None, 5, 2, 3})})),
            Shape({None, 2, 5, 7}));
}

TEST(Shape, OfBatchDotIsKeras) {
  struct Row {
    Shape x, y;
    std::vector<int64_t> axes;
    Shape expected;
  } rows[] = {
      {{None, 3, 4}, {None, 4, 5}, {}, {None, 3, 5}},
      {{None, 3, 4}, {None, 3, 4}, {1}, {None, 4, 4}},
      {{None, 4}, {None, 4}, {1}, {None, 1}},
      {{None, 4}, {None, 3, 4}, {1, 2}, {None, 3}},
      {{None, 3, 4}, {None, 4}, {2, 1}, {None, 3}},
      {{None, 2, 3, 4}, {None, 4, 5}, {3, 1}, {None, 2, 3, 5}},
  };
  for (const Row &row : rows)
    EXPECT_EQ(shapeOf(K::batch_dot(open(row.x), open(row.y), row.axes)),
              row.expected);
}

TEST(Shape, OfConvolutions) {
  K::Tensor image = open({None, 32, 33, 3}), kernel = open({3, 3, 3, 8});
  EXPECT_EQ(shapeOf(K::conv2d(image, kernel)), Shape({None, 30, 31, 8}));
  EXPECT_EQ(shapeOf(K::conv2d(image, kernel, {2, 2}, "same")),
            Shape({None, 16, 17, 8}));
  EXPECT_EQ(shapeOf(K::conv2d(open({None, 3, None, None}), kernel, {1, 1},
                              "same", "channels_first")),
            Shape({None, 8, None, None}));
  EXPECT_EQ(shapeOf(K::conv1d(open({None, None, 4}), open({2, 4, 6}), 1,
                              "causal", "", 4)),
            Shape({None, None, 6}));
  EXPECT_EQ(shapeOf(K::depthwise_conv2d(image, open({3, 3, 3, 2}))),
            Shape({None, 30, 31, 6}));
  EXPECT_EQ(
      shapeOf(K::conv2d_transpose(open({None, 2, 2, 5}), open({3, 3, 4, 5}),
                                  {None, 4, 4, 4}, {2, 2}, "same")),
      Shape({None, 4, 4, 4}));
  EXPECT_EQ(shapeOf(K::pool2d(image, {2, 2}, {2, 2}, "same")),
            Shape({None, 16, 17, 3}));
  EXPECT_EQ(shapeOf(K::global_pool(image, "", "avg")), Shape({None, 3}));
  EXPECT_EQ(shapeOf(K::resize(image, {8, 9})), Shape({None, 8, 9, 3}));
}

TEST(Shape, OfLoops) {
  K::Tensor x = open({None, 5, 3});
  K::Tensor h = K::zeros_like(K::getitem(x, {K::Slice{}, 0}));
  auto step = [](const K::Tensor &input, const K::Tensors &states) {
    K::Tensor next = states[0] + input;
    return std::pair(next, K::Tensors{next});
  };
  K::RnnResult result =
      K::rnn(step, x, {h}, {.mask = open({None, 5}, DType::Bool)});
  EXPECT_EQ(shapeOf(result.outputs), Shape({None, 5, 3}));
  EXPECT_EQ(shapeOf(result.last_output), Shape({None, 3}));
  EXPECT_EQ(shapeOf(result.states[0]), Shape({None, 3}));
  EXPECT_EQ(shapeOf(K::cumsum(x, 1)), Shape({None, 5, 3}));
}

//===----------------------------------------------------------------------===//
// Refusals: the mistake is told by the call that makes it
//===----------------------------------------------------------------------===//

template <typename Call> void refuses(Call call, const char *a, const char *b) {
  EXPECT_THAT(call, ThrowsMessage<Error>(AllOf(HasSubstr(a), HasSubstr(b))));
}

TEST(ShapeErrors, NameBothShapes) {
  K::Tensor x = open({None, 3}), y = open({None, 4});
  refuses([&] { x + y; }, "3", "4");
  refuses([&] { K::dot(x, open({4, 5})); }, "(None, 3)", "(4, 5)");
  refuses([&] { K::concatenate({x, open({None, 4, 2})}); }, "concat", "2");
  refuses([&] { K::reshape(open({2, 3}), {4, -1}); }, "(2, 3)", "(4, None)");
  refuses([&] { K::conv2d(open({None, 8, 8, 3}), open({3, 3, 4, 8})); }, "3",
          "4");
  refuses([&] { K::bias_add(open({None, 8}), open({7})); }, "7", "8");
}

TEST(ShapeErrors, AreInKerasWords) {
  auto message = [](auto call) -> std::string {
    try {
      call();
    } catch (const Error &error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_EQ(message([] { open({None, 3}) + open({None, 4}); }),
            "add: shapes (None, 3) and (None, 4) do not broadcast");
  EXPECT_EQ(message([] { K::softmax(open({None, 3}, DType::Int32)); }),
            "softmax: operand #0 must be a tensor of floats, but got "
            "(None, 3) int32");
  EXPECT_EQ(message([] { K::exp({}); }),
            "exp: operand #0 is None, not a tensor");
}

TEST(ShapeErrors, StayShort) {
  std::vector<int64_t> axes(100000, 0);
  EXPECT_THAT([&] { K::permute_dimensions(open({2, 3}), axes); },
              ThrowsMessage<Error>(testing::SizeIs(testing::Lt(2000))));
}

TEST(ShapeErrors, NameTheLayer) {
  K::NameScope block("block1");
  K::NameScope layer("dense");
  refuses([&] { open({None, 3}) + open({None, 4}); },
          "block1/dense: ", "add: ");
}

TEST(ShapeErrors, NameWhatIsAllowed) {
  K::Tensor image = open({None, 8, 8, 3}), kernel = open({3, 3, 3, 4});
  refuses([&] { K::conv2d(image, kernel, {1, 1}, "full"); }, "'full'",
          "'valid' or 'same'");
  refuses([&] { K::conv2d(image, kernel, {1, 1}, "valid", "nchw"); }, "'nchw'",
          "'channels_last' or 'channels_first'");
  refuses([&] { K::conv2d(image, kernel, {0, 1}); }, "strides is (0, 1)",
          "1 or more");
  refuses([&] { K::pool2d(image, {2, 2}, {1, 1}, "valid", "", "sum"); },
          "'sum'", "'max' or 'avg'");
}

TEST(ShapeErrors, NameAxesThatAreNotThere) {
  K::Tensor x = open({None, 3});
  refuses([&] { K::sum(x, 2); }, "axis 2", "2 axes");
  refuses([&] { K::softmax(x, -3); }, "axis -3", "2 axes");
  refuses([&] { K::sum(x, {0, -2}); }, "axis 0", "twice");
  refuses([&] { K::getitem(x, {K::Slice{}, 3}); }, "index 3", "(None, 3)");
}

TEST(ShapeErrors, StridesAndDilationExcludeEachOther) {
  K::Tensor x = open({None, 9, 9, 2}), k = open({3, 3, 2, 2});
  refuses([&] { K::conv2d(x, k, {2, 2}, "same", "", {1, 2}); }, "strides",
          "dilation_rate");
  refuses([&] { K::depthwise_conv2d(x, k, {1, 2}, "same", "", {2, 2}); },
          "(1, 2)", "(2, 2)");
}

TEST(ShapeErrors, DtypesDoNotMix) {
  K::Tensor f = open({2}), i = open({2}, DType::Int32);
  EXPECT_THROW(f + i, Error);
  refuses([&] { i + 1.5; }, "int32", "1.5");
  EXPECT_EQ(K::dtype(i + 2), DType::Int32);
  EXPECT_EQ(K::dtype(i / 2), DType::Float64);
}

TEST(ShapeErrors, LeaveTheGraphAsItWas) {
  K::Tensor x = open({None, 3});
  EXPECT_THROW(x + open({None, 4}), Error);
  EXPECT_EQ(shapeOf(x + 1.0), Shape({None, 3}));
}

TEST(ShapeErrors, RefuseSizesThatOverflow) {
  refuses([&] { open({int64_t(1) << 40, int64_t(1) << 40}); }, "2^60",
          "elements");
  refuses([&] { open({1, 1, 1, 1, 1, 1, 1, 1, 1}); }, "9 axes", "at most 8");
  refuses([&] { open({2, -5}); }, "extent", "-5");
}

TEST(ShapeErrors, TensorsOfAStepStayInside) {
  K::Tensor x = open({None, 5, 3}), leaked;
  auto step = [&](const K::Tensor &input, const K::Tensors &) {
    leaked = input * 2.0;
    return std::pair(leaked, K::Tensors{});
  };
  K::rnn(step, x, {});
  refuses([&] { leaked + 1.0; }, "step of a loop", "outside");
}

TEST(ShapeErrors, AnErrorInAStepEndsTheLoop) {
  K::Tensor x = open({None, 5, 3});
  auto step = [&](const K::Tensor &input, const K::Tensors &) {
    return std::pair(input + open({7}), K::Tensors{});
  };
  EXPECT_THROW(K::rnn(step, x, {}), Error);
  EXPECT_EQ(shapeOf(x + 1.0), Shape({None, 5, 3}));
}

TEST(ShapeErrors, GraphsDoNotMix) {
  K::Tensor x = open({2});
  K::GraphScope scope;
  K::Tensor y = open({2});
  refuses([&] { x + y; }, "two graphs", "clear_session");
}

TEST(Names, OfScopesEndWithThem) {
  {
    auto block = K::name_scope("block1");
    auto layer = K::name_scope("conv");
    EXPECT_EQ(K::current_name_scope(), "block1/conv");
  }
  EXPECT_EQ(K::current_name_scope(), "");
}

TEST(Names, AreUniqueAndScoped) {
  K::NameScope scope("names");
  K::Tensor a = K::variable(Array::full({2}, 1), "kernel");
  K::Tensor b = K::variable(Array::full({2}, 1), "kernel");
  EXPECT_EQ(K::name(a), "names/kernel");
  EXPECT_EQ(K::name(b), "names/kernel_1");
  EXPECT_TRUE(K::is_variable(a));
  EXPECT_FALSE(K::is_placeholder(a));
}

} // namespace
