//===- ThreadsTest.cpp - functions on several threads ---------------------===//
#include "keratin/backend.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>

namespace K = keratin::backend;
using keratin::Array;
using keratin::DType;

namespace {

/// Numbers in [-1, 1) that look random.
Array numbers(const K::Shape &shape, uint32_t seed) {
  Array array(DType::Float32, shape);
  uint32_t state = seed;
  for (int64_t index = 0; index < array.size(); ++index) {
    state = state * 1664525u + 1013904223u;
    array.set(index, double(state >> 8) / 8388608.0 - 1);
  }
  return array;
}

bool sameBits(const Array &one, const Array &other) {
  return one.shape() == other.shape() &&
         std::memcmp(one.data(), other.data(),
                     sizeof(float) * static_cast<size_t>(one.size())) == 0;
}

class Threads : public testing::Test {
protected:
  void TearDown() override { K::set_num_threads(0); }

  K::Tensor weight(const K::Shape &shape) {
    return K::constant(numbers(shape, ++seed));
  }
  uint32_t seed = 1;
};

} // namespace

// Layers of all kinds with enough work to share; training too.
TEST_F(Threads, DoNotChangeABit) {
  K::Tensor image = K::placeholder({4, 40, 40, 24});
  K::Tensor kernel = K::variable(numbers({3, 3, 24, 48}, 7));
  K::Tensor convolved = K::relu(K::conv2d(image, kernel, {1, 1}, "same"));
  K::Tensor pooled = K::pool2d(convolved, {2, 2}, {2, 2}, "same");
  K::Tensor depthwise = K::depthwise_conv2d(image, weight({3, 3, 24, 1}));
  K::Tensor rows = K::reshape(pooled, {-1, 20 * 48});
  K::Tensor softmax = K::softmax(K::dot(rows, weight({960, 700})));
  K::Tensor norm = K::layer_normalization(rows, weight({960}), weight({960}));
  K::Tensor sums = K::sum(image, {0, 1, 2});
  K::Tensor loss = K::mean(K::square(softmax));
  K::Tensor slope = K::gradients(loss, {kernel})[0];
  K::Tensor sequence = K::reshape(norm, {80, 10, 96});
  K::Tensor recurrent = weight({96, 96});
  K::RnnResult rnn = K::rnn(
      [&](const K::Tensor &x, const K::Tensors &states) {
        K::Tensor next = K::tanh(x + K::dot(states[0], recurrent));
        return std::pair(next, K::Tensors{next});
      },
      sequence, {K::zeros({80, 96})});
  std::vector<K::Tensor> outputs = {convolved, pooled, depthwise,
                                    softmax,   norm,   sums,
                                    loss,      slope,  rnn.last_output};
  K::Function function = K::function({image}, outputs);
  Array input = numbers({4, 40, 40, 24}, 3);

  K::set_num_threads(1);
  std::vector<Array> expected = function({input});
  for (int threads : {2, 3, 8}) {
    K::set_num_threads(threads);
    std::vector<Array> results = function({input});
    for (size_t output = 0; output < outputs.size(); ++output)
      EXPECT_TRUE(sameBits(results[output], expected[output]))
          << "output " << output << " on " << threads << " threads";
  }
}

TEST_F(Threads, GiveWhatCodeWithoutThreadsGives) {
  K::Tensor x = K::placeholder({500, 500}), y = K::dot(x, weight({500, 500}));
  K::Function serial = K::function({x}, {y}), split = K::function({x}, {y});
  K::CompileSettings settings;
  settings.threads = 1;
  serial.configure(settings);
  Array input = numbers({500, 500}, 3);
  K::set_num_threads(3);
  EXPECT_TRUE(sameBits(serial({input})[0], split({input})[0]));
}

// Calls go through weights of some megabytes back and forth.
TEST_F(Threads, AndCallsInTurnsGiveTheSameBits) {
  K::Tensor x = K::placeholder({1, 784});
  K::Tensor y =
      K::dot(K::relu(K::dot(x, weight({784, 700}))), weight({700, 500}));
  K::Function plain = K::function({x}, {y});
  K::CompileSettings settings;
  settings.optimize = false;
  plain.configure(settings);
  Array input = numbers({1, 784}, 3);
  Array reference = plain({input})[0], first;
  double most = 0;
  for (int64_t index = 0; index < reference.size(); ++index)
    most = std::max(most, std::fabs(reference.at(index)));
  for (int threads : {1, 2, 3}) {
    K::set_num_threads(threads);
    for (int compiled : {0, 1}) {
      settings.optimize = true;
      settings.threads = compiled;
      K::Function function = K::function({x}, {y});
      function.configure(settings);
      for (int call = 0; call < 3; ++call) {
        Array result = function({input})[0];
        if (first.size() != result.size())
          first = result;
        EXPECT_TRUE(sameBits(result, first))
            << "call " << call << " on " << threads << " threads";
      }
    }
  }
  for (int64_t index = 0; index < reference.size(); ++index)
    EXPECT_NEAR(first.at(index), reference.at(index), 1e-5 * most);
}

TEST_F(Threads, AreSharedByCallers) {
  K::Tensor x = K::placeholder({300, 300}), y = K::dot(x, weight({300, 300}));
  K::Function function = K::function({x}, {y});
  Array input = numbers({300, 300}, 3);
  K::set_num_threads(1);
  Array expected = function({input})[0];
  K::set_num_threads(3);
  std::vector<std::thread> callers;
  std::atomic<int> wrong = 0;
  for (int caller = 0; caller < 3; ++caller)
    callers.emplace_back([&] {
      for (int turn = 0; turn < 20; ++turn)
        wrong += !sameBits(function({input})[0], expected);
    });
  for (std::thread &caller : callers)
    caller.join();
  EXPECT_EQ(wrong, 0);
}
