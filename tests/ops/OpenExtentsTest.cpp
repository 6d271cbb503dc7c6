//===- OpenExtentsTest.cpp - images whose extents the graph does not know -===//
//
// Paddings and extents of results then follow from the shapes of a call: the
// same numbers as where all is known.
//
//===----------------------------------------------------------------------===//
#include "OpRun.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace keratin;
using namespace keratin::optest;

namespace {

using Op = std::function<K::Tensor(const K::Tensor &)>;

class OpenExtents : public testing::Test {
protected:
  static Array image(const K::Shape &shape) {
    return toArray(generate(shape,
                            [](const K::Shape &i) {
                              return 0.1 * i[0] + 0.3 * i[1] - 0.2 * i[2] +
                                     0.07 * i[1] * i[2] + i[3];
                            }),
                   DType::Float32);
  }

  /// The value and the gradient of op for an image, from a placeholder of
  /// `known`.
  static std::vector<Array> run(const Op &op, const K::Shape &known,
                                const Array &image) {
    K::Tensor x = K::placeholder(known), y = op(x);
    K::Tensor loss = K::sum(y * y);
    return K::function({x}, {y, K::gradients(loss, {x})[0]})({image});
  }

  static void expectTheSame(const Op &op) {
    for (auto [height, width] : {std::pair(7, 8), std::pair(6, 5)}) {
      Array x = image({2, height, width, 3});
      std::vector<Array> open = run(op, {K::None, K::None, K::None, 3}, x);
      std::vector<Array> known = run(op, x.shape(), x);
      for (size_t part = 0; part < 2; ++part) {
        ASSERT_EQ(open[part].shape(), known[part].shape());
        for (int64_t i = 0; i < open[part].size(); ++i)
          ASSERT_EQ(open[part].at(i), known[part].at(i));
      }
    }
  }

  /// `count` rows and columns of weights.
  static K::Tensor weights(const K::Shape &shape) {
    return K::constant(image(shape));
  }

  K::GraphScope scope;
};

TEST_F(OpenExtents, OfStridedConvolutions) {
  expectTheSame([](const K::Tensor &x) {
    return K::conv2d(x, weights({3, 4, 3, 5}), {2, 3}, "same");
  });
  expectTheSame([](const K::Tensor &x) {
    return K::depthwise_conv2d(x, weights({3, 2, 3, 2}), {2, 2}, "same");
  });
}

TEST_F(OpenExtents, OfPools) {
  for (const char *mode : {"max", "avg"})
    expectTheSame([=](const K::Tensor &x) {
      return K::pool2d(x, {3, 2}, {2, 2}, "same", "", mode);
    });
}

/// Twice the extents, and `more`.
K::Tensor upsampled(const K::Tensor &x, const char *padding, int64_t more) {
  K::Dim height = K::extent(x, 1), width = K::extent(x, 2);
  auto out = [&](const K::Dim &extent) -> K::Dim {
    if (!extent.tensor)
      return extent.extent * 2 + more;
    return extent.tensor * 2 + more;
  };
  K::Shape shape = {3, 3, 5, 3};
  K::Tensor kernel = K::constant(K::eval(K::ones(shape)));
  return K::conv2d_transpose(x, kernel * 0.5,
                             {K::extent(x, 0), out(height), out(width), 5},
                             {2, 2}, padding);
}

TEST_F(OpenExtents, OfTransposedConvolutions) {
  // The extents of which a convolution with such strides makes those of x.
  for (int64_t more : {-1, 0})
    expectTheSame(
        [=](const K::Tensor &x) { return upsampled(x, "same", more); });
  for (int64_t more : {1, 2})
    expectTheSame(
        [=](const K::Tensor &x) { return upsampled(x, "valid", more); });
}

TEST_F(OpenExtents, AreKnownToArtefactsThatAreToldThem) {
  K::Tensor x = K::placeholder({K::None, K::None, K::None, 3});
  K::Function function = K::function(
      {x}, {K::pool2d(upsampled(x, "same", 0), {3, 3}, {2, 2}, "same")});
  TemporaryDirectory directory;
  K::SaveOptions options;
  options.name = "op";
  options.emit = "so";
  options.inputShapes = {{K::None, 5, 6, 3}};
  function.save(directory.path / "op", options);
  Array input = image({2, 5, 6, 3});
  Array expected = function({input})[0];
  std::vector<Array> outputs = {Array(DType::Float32, expected.shape())};
  runArtefact(directory.path / "op.so", 2, {input}, outputs);
  for (int64_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(outputs[0].at(i), expected.at(i), 1e-4);
}

TEST_F(OpenExtents, ThatDoNotFitAreRefusedByTheCall) {
  K::Tensor x = K::placeholder({K::None, K::None, K::None, 3});
  K::Function function = K::function({x}, {upsampled(x, "same", 7)});
  EXPECT_THAT([&] { function({image({1, 5, 5, 3})}); },
              testing::ThrowsMessage<Error>(
                  testing::HasSubstr("spatial axis 0 of x has extent 5 but a "
                                     "convolution of extent 17 gives 8")));
}

} // namespace
