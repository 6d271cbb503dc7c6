//===- TrainingTest.cpp - training steps of a small network ---------------===//
#include "keratin/backend.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using keratin::Array;
using keratin::DType;
namespace K = keratin::backend;

namespace {

/// A convolution, batch normalisation in the training phase, a pool and a dense
/// layer, in float64 so that differences of losses are accurate.
class Network {
public:
  static constexpr int64_t batch = 6, size = 6, classes = 3;

  Network() {
    kernel = parameter({3, 3, 1, 4});
    gamma = parameter({4});
    beta = parameter({4});
    weights = parameter({3 * 3 * 4, classes});
    bias = parameter({classes});
    movingMean = K::variable(Array(DType::Float64, {4}));
    images = K::placeholder({K::None, size, size, 1}, DType::Float64);
    labels = K::placeholder({K::None, classes}, DType::Float64);

    K::Tensor h = K::conv2d(images, kernel, {1, 1}, "same", "channels_last");
    K::BatchStatistics normal =
        K::normalize_batch_in_training(h, gamma, beta, {0, 1, 2}, 1e-3);
    mean = normal.mean;
    h = K::relu(normal.normalized);
    h = K::pool2d(h, {2, 2}, {2, 2}, "same", "channels_last", "max");
    h = K::bias_add(K::dot(K::batch_flatten(h), weights), bias,
                    "channels_last");
    loss = K::mean(K::categorical_crossentropy(labels, K::softmax(h)));
  }

  /// Bars, each class brighter in another column, with noise.
  std::vector<Array> samples() {
    Array x(DType::Float64, {batch, size, size, 1});
    Array y(DType::Float64, {batch, classes});
    for (int64_t n = 0; n < batch; ++n) {
      y.set(n * classes + n % classes, 1);
      for (int64_t i = 0; i < size * size; ++i)
        x.set(n * size * size + i,
              (i % size == 2 * (n % classes)) + 0.3 * number());
    }
    return {x, y};
  }

  K::Tensors parameters() const { return {kernel, gamma, beta, weights, bias}; }

  K::GraphScope scope;
  K::Tensor kernel, gamma, beta, weights, bias, movingMean;
  K::Tensor images, labels, mean, loss;

private:
  K::Tensor parameter(const K::Shape &shape) {
    Array value(DType::Float64, shape);
    for (int64_t i = 0; i < value.size(); ++i)
      value.set(i, 0.5 * number());
    return K::variable(value, DType::Float64);
  }

  double number() { return 2.0 * random() / 4294967295.0 - 1; }

  std::mt19937 random{7};
};

constexpr double rate = 0.1;

std::vector<K::Update> descent(const Network &network) {
  std::vector<K::Update> updates;
  K::Tensors parameters = network.parameters();
  K::Tensors gradients = K::gradients(network.loss, parameters);
  for (size_t i = 0; i < parameters.size(); ++i)
    updates.emplace_back(parameters[i], parameters[i] - gradients[i] * rate);
  updates.push_back(
      K::moving_average_update(network.movingMean, network.mean, 0.9));
  return updates;
}

TEST(TrainingStep, LowersTheLossOfAConvolutionalNetwork) {
  Network network;
  std::vector<Array> samples = network.samples();
  K::Function step = K::function({network.images, network.labels},
                                 {network.loss}, descent(network));
  double first = step(samples)[0].at(0), last = first;
  for (int i = 0; i < 30; ++i)
    last = step(samples)[0].at(0);
  EXPECT_LT(last, 0.2 * first);
}

TEST(TrainingStep, MovesParametersAgainstTheSlopeOfTheLoss) {
  Network network;
  std::vector<Array> samples = network.samples();
  K::FunctionOptions arguments;
  arguments.foldVariables = false; // they change between all calls
  K::Function lossOf = K::function({network.images, network.labels},
                                   {network.loss}, {}, {}, arguments);
  K::Function step = K::function({network.images, network.labels},
                                 {network.loss}, descent(network));

  // Central differences by some elements of each parameter.
  struct Slope {
    size_t parameter;
    int64_t element;
    double expected;
  };
  std::vector<Slope> slopes;
  K::Tensors parameters = network.parameters();
  std::vector<Array> before = K::batch_get_value(parameters);
  constexpr double h = 1e-5;
  for (size_t i = 0; i < parameters.size(); ++i)
    for (int64_t element = 0; element < before[i].size(); element += 3) {
      auto lossAt = [&](double change) {
        Array moved = before[i];
        moved.set(element, before[i].at(element) + change);
        K::set_value(parameters[i], moved);
        return lossOf(samples)[0].at(0);
      };
      double slope = (lossAt(h) - lossAt(-h)) / (2 * h);
      K::set_value(parameters[i], before[i]);
      slopes.push_back({i, element, slope});
    }

  step(samples);
  std::vector<Array> after = K::batch_get_value(parameters);
  for (const Slope &slope : slopes) {
    double change = after[slope.parameter].at(slope.element) -
                    before[slope.parameter].at(slope.element);
    EXPECT_NEAR(change, -rate * slope.expected, 1e-9)
        << "parameter " << slope.parameter << " element " << slope.element;
  }
}

TEST(TrainingStep, KeepsTheMovingMeanOfTheActivations) {
  Network network;
  std::vector<Array> samples = network.samples();
  K::Function meanOf =
      K::function({network.images, network.labels}, {network.mean});
  Array mean = meanOf(samples)[0];
  K::Function step = K::function({network.images, network.labels},
                                 {network.loss}, descent(network));
  step(samples);
  Array moving = K::get_value(network.movingMean);
  for (int64_t i = 0; i < moving.size(); ++i)
    EXPECT_NEAR(moving.at(i), 0.1 * mean.at(i), 1e-12);
}

} // namespace
