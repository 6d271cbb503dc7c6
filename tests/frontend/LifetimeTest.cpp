//===- LifetimeTest.cpp - what nobody needs is freed ----------------------===//
#include "keratin/backend.h"

#include <gtest/gtest.h>

#include <thread>

namespace K = keratin::backend;
using keratin::Array;
using keratin::DType;
using keratin::Error;

namespace {

/// An array of many elements, whose memory tells whether it is still needed.
class Watched {
public:
  Array array() {
    auto elements = std::make_shared<std::vector<float>>(64, 1.0f);
    alive = elements;
    return Array(DType::Float32, {64}, elements->data(), elements);
  }
  bool isAlive() const { return !alive.expired(); }

private:
  std::weak_ptr<void> alive;
};

class Lifetime : public testing::Test {
protected:
  K::GraphScope graph;
  K::Tensor keepsTheGraph = K::constant(1);
  Watched memory;
};

TEST_F(Lifetime, OfConstantsEndsWithTheirTensors) {
  K::Tensor c = K::constant(memory.array());
  K::Tensor copy = c;
  c = {};
  EXPECT_TRUE(memory.isAlive());
  copy = {};
  EXPECT_FALSE(memory.isAlive());
}

TEST_F(Lifetime, OfVariablesEndsWithTheirTensors) {
  K::Tensor v = K::variable(memory.array());
  EXPECT_TRUE(memory.isAlive());
  v = {};
  EXPECT_FALSE(memory.isAlive());
}

TEST_F(Lifetime, OfOperandsEndsWithTheirResults) {
  K::Tensor sum = K::sum(K::exp(K::constant(memory.array())) * 2.0);
  EXPECT_TRUE(memory.isAlive());
  EXPECT_GT(K::eval(sum).at(0), 64);
  EXPECT_TRUE(memory.isAlive());
  sum = {};
  EXPECT_FALSE(memory.isAlive());
}

TEST_F(Lifetime, OfLongChainsEnds) {
  K::Tensor x = K::constant(memory.array());
  for (int i = 0; i < 100000; ++i)
    x = K::negative(x);
  EXPECT_TRUE(memory.isAlive());
  x = {};
  EXPECT_FALSE(memory.isAlive());
}

TEST_F(Lifetime, OfWhatFunctionsComputeEndsWithThem) {
  K::Function f;
  {
    K::Tensor x = K::placeholder({64});
    f = K::function({x}, {x + K::constant(memory.array())});
  }
  EXPECT_EQ(f({Array::full({64}, 2)})[0].at(63), 3);
  EXPECT_TRUE(memory.isAlive());
  f = {};
  EXPECT_FALSE(memory.isAlive());
}

TEST_F(Lifetime, OfUpdatedVariablesEndsWithTheirUpdates) {
  K::Tensor update;
  {
    K::Tensor v = K::variable(memory.array());
    update = K::update_add(v, 1.0);
  }
  EXPECT_TRUE(memory.isAlive());
  EXPECT_EQ(K::eval(update).at(0), 2);
  EXPECT_FALSE(memory.isAlive()); // the variable has another value now
  EXPECT_EQ(K::eval(update).at(0), 3);
}

TEST_F(Lifetime, OfOldValuesEndsWhenTheyAreReplaced) {
  K::Tensor v = K::variable(memory.array());
  K::Function f = K::function({}, {v * 2.0});
  EXPECT_EQ(f({})[0].at(0), 2);
  K::set_value(v, Array::full({64}, 5));
  EXPECT_FALSE(memory.isAlive());
  EXPECT_EQ(f({})[0].at(0), 10);
}

TEST_F(Lifetime, OfLoopsEndsWithTheirResults) {
  K::Tensor c = K::constant(memory.array()), inner;
  K::Tensor ys =
      K::map_fn([&](const K::Tensor &x) { return inner = x + K::sum(c); },
                K::constant(Array::full({3}, 1)));
  c = {};
  EXPECT_EQ(K::eval(ys).at(2), 65);
  ys = {};
  EXPECT_TRUE(memory.isAlive()); // a tensor of the body is held
  inner = {};
  EXPECT_FALSE(memory.isAlive());
}

TEST_F(Lifetime, OfBodiesThatFailedEndsWithTheirTensors) {
  K::Tensor c = K::constant(memory.array()), inner;
  EXPECT_THROW(K::map_fn(
                   [&](const K::Tensor &x) -> K::Tensor {
                     inner = x + K::sum(c);
                     throw Error("the step fails");
                   },
                   K::constant(Array::full({3}, 1))),
               Error);
  c = {};
  EXPECT_TRUE(memory.isAlive());
  inner = {};
  EXPECT_FALSE(memory.isAlive());
}

TEST_F(Lifetime, OfControlScopesEndsWithThem) {
  K::Tensor v = K::variable(memory.array()), w = K::variable(1.0);
  {
    K::ControlDependencies scope({K::update_add(w, 1.0)});
    K::Tensor unused = v * 2.0;
  }
  v = {};
  EXPECT_FALSE(memory.isAlive());
}

TEST_F(Lifetime, MayEndInAnyThread) {
  K::Tensor c = K::constant(memory.array());
  std::thread([c = std::move(c)] {}).join();
  EXPECT_FALSE(memory.isAlive());
}

TEST_F(Lifetime, EndsWhileOthersBuildAndCompile) {
  std::vector<K::Tensor> shared;
  K::Tensor x = K::placeholder({64});
  for (int i = 0; i < 400; ++i)
    shared.push_back(K::exp(x) * K::constant(memory.array()));
  std::thread dying([list = std::move(shared)]() mutable { list.clear(); });
  double sum = 0;
  for (int i = 0; i < 20; ++i) {
    K::Tensor y = K::constant(i) + 1.0;
    sum += K::eval(y * 2.0).at(0);
  }
  dying.join();
  EXPECT_EQ(sum, 420);
  EXPECT_EQ(K::function({x}, {x + 1.0})({Array::full({64}, 1)})[0].at(0), 2);
  EXPECT_FALSE(memory.isAlive());
}

TEST_F(Lifetime, OfTensorsThatArraysOwnEndsWithTheArrays) {
  K::Tensor inner = K::constant(memory.array());
  auto owner = std::make_shared<std::pair<std::vector<float>, K::Tensor>>(
      std::vector<float>(64, 2.0f), K::exp(inner));
  K::Tensor outer =
      K::constant(Array(DType::Float32, {64}, owner->first.data(), owner));
  owner = nullptr;
  inner = {};
  EXPECT_TRUE(memory.isAlive());
  outer = {};
  EXPECT_FALSE(memory.isAlive());
}

TEST_F(Lifetime, OfGraphsEndsAfterTheirSession) {
  K::Tensor v = K::variable(memory.array());
  K::clear_session();
  EXPECT_EQ(K::eval(v * 2.0).at(0), 2);
  keepsTheGraph = {};
  v = {};
  EXPECT_FALSE(memory.isAlive());
}

} // namespace
