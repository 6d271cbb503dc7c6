//===- RnnTest.cpp - loops over time and over elements --------------------===//
#include "Arrays.h"

#include "keratin/abi.h"
#include "keratin/backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace K = keratin::backend;
using K::None;
using keratin::Array;
using keratin::DType;
using keratin::Error;
using keratin::test::constant;
using keratin::test::evaluate;
using keratin::test::valuesOf;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pointwise;
using testing::ThrowsMessage;

namespace {

/// The example of the Keras contract: one sample, h += x.
struct Sums {
  K::RnnOptions options = {};
  K::Tensor x = constant({1, 3, 1}, {1, 10, 100});

  K::RnnResult run(const K::Tensor &inputs) const {
    return K::rnn(
        [](const K::Tensor &input, const K::Tensors &states) {
          K::Tensor h = states[0] + input;
          return std::pair(h, K::Tensors{h});
        },
        inputs, {constant({1, 1}, {0})}, options);
  }
  K::RnnResult run() const { return run(x); }
};

K::Tensor mask(std::vector<float> values, DType dtype = DType::Bool) {
  int64_t count = values.size();
  return K::cast(constant({1, count}, std::move(values)), dtype);
}

TEST(Rnn, AccumulatesOverTime) {
  K::RnnResult result = Sums().run();
  EXPECT_THAT(evaluate(result.outputs), ElementsAre(1, 11, 111));
  EXPECT_THAT(evaluate(result.last_output), ElementsAre(111));
  EXPECT_THAT(evaluate(result.states[0]), ElementsAre(111));
}

// The first state becomes what the second was, which others still read.
TEST(Rnn, StatesTradePlaces) {
  K::RnnResult result = K::rnn(
      [](const K::Tensor &input, const K::Tensors &states) {
        K::Tensor next = states[0] + states[1] + input;
        return std::pair(next, K::Tensors{states[1], next});
      },
      constant({1, 6, 1}, {0, 0, 0, 0, 0, 10}),
      {constant({1, 1}, {0}), constant({1, 1}, {1})});
  EXPECT_THAT(evaluate(result.outputs), ElementsAre(1, 2, 3, 5, 8, 23));
  EXPECT_THAT(evaluate(result.states[0]), ElementsAre(8));
  EXPECT_THAT(evaluate(result.states[1]), ElementsAre(23));
  K::RnnResult swapped = K::rnn(
      [](const K::Tensor &input, const K::Tensors &states) {
        return std::pair(states[0] + input,
                         K::Tensors{states[1], states[0] * 2.F});
      },
      constant({1, 3, 1}, {10, 20, 30}),
      {constant({1, 1}, {1}), constant({1, 1}, {3})});
  EXPECT_THAT(evaluate(swapped.outputs), ElementsAre(11, 23, 32));
  EXPECT_THAT(evaluate(swapped.states[0]), ElementsAre(6));
  EXPECT_THAT(evaluate(swapped.states[1]), ElementsAre(4));
}

TEST(Rnn, RepeatsThePreviousOutputAndHoldsStatesWhereMasked) {
  for (DType dtype : {DType::Bool, DType::Float32, DType::Int32}) {
    K::RnnResult result = Sums{{.mask = mask({0, 1, 0}, dtype)}}.run();
    EXPECT_THAT(evaluate(result.outputs), ElementsAre(0, 10, 10));
    EXPECT_THAT(evaluate(result.last_output), ElementsAre(10));
    EXPECT_THAT(evaluate(result.states[0]), ElementsAre(10));
  }
}

TEST(Rnn, GoesBackwardsThroughInputsAndMask) {
  K::RnnResult result = Sums{{.go_backwards = true}}.run();
  EXPECT_THAT(evaluate(result.outputs), ElementsAre(100, 110, 111));
  EXPECT_THAT(evaluate(result.last_output), ElementsAre(111));
  result = Sums{{.go_backwards = true, .mask = mask({1, 1, 0})}}.run();
  EXPECT_THAT(evaluate(result.outputs), ElementsAre(0, 10, 11));
}

TEST(Rnn, UnrolledComputesTheSame) {
  for (bool backwards : {false, true})
    for (bool masked : {false, true}) {
      K::RnnOptions options{.go_backwards = backwards};
      if (masked)
        options.mask = mask({0, 1, 0});
      K::RnnResult rolled = Sums{options}.run();
      options.unroll = true;
      K::RnnResult unrolled = Sums{options}.run();
      EXPECT_EQ(evaluate(unrolled.outputs), evaluate(rolled.outputs));
      EXPECT_EQ(evaluate(unrolled.last_output), evaluate(rolled.last_output));
      EXPECT_EQ(evaluate(unrolled.states[0]), evaluate(rolled.states[0]));
      EXPECT_EQ(K::int_shape(unrolled.outputs), K::Shape({1, 3, 1}));
    }
}

TEST(Rnn, UnrollsOneStep) {
  K::RnnResult result = Sums{{.unroll = true}}.run(constant({1, 1, 1}, {7}));
  EXPECT_THAT(evaluate(result.outputs), ElementsAre(7));
  EXPECT_THAT(evaluate(result.last_output), ElementsAre(7));
}

TEST(Rnn, UnrollsAKnownNumberOfStepsOnly) {
  K::Tensor x = K::placeholder({1, None, 1});
  EXPECT_THAT([&] { Sums{{.unroll = true}}.run(x); },
              ThrowsMessage<Error>(
                  HasSubstr("unrolling requires a fixed number of timesteps")));
  Sums told{{.unroll = true, .input_length = 3}};
  K::Function f = K::function({x}, {told.run(x).last_output});
  EXPECT_THAT(valuesOf(f({Array::of<float>({1, 3, 1}, {1, 2, 3})})[0]),
              ElementsAre(6));
}

TEST(Rnn, TakesAMaskWithoutStates) {
  auto step = [](const K::Tensor &input, const K::Tensors &states) {
    return std::pair(input * 2, states);
  };
  K::RnnResult result = K::rnn(step, constant({1, 3, 1}, {1, 10, 100}), {},
                               {.mask = mask({1, 0, 1})});
  EXPECT_THAT(evaluate(result.outputs), ElementsAre(2, 2, 200));
  EXPECT_TRUE(result.states.empty());
  result = K::rnn(step, constant({1, 3, 1}, {1, 10, 100}), {},
                  {.mask = mask({1, 0, 1}), .zero_output_for_mask = true});
  EXPECT_THAT(evaluate(result.outputs), ElementsAre(2, 0, 200));
}

TEST(Rnn, TakesOutputsAndStatesOfAnyRank) {
  auto step = [](const K::Tensor &input, const K::Tensors &states) {
    K::Tensor image = states[0] + input; // (samples, 2, 2)
    return std::pair(K::sum(image, K::Axes{1, 2}),
                     K::Tensors{image, states[1] + 1});
  };
  K::RnnResult result =
      K::rnn(step, constant({1, 2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}),
             {constant({1, 2, 2}, {0, 0, 0, 0}), constant({1}, {5})},
             {.mask = mask({1, 0})});
  EXPECT_THAT(evaluate(result.outputs), ElementsAre(10, 10));
  EXPECT_THAT(evaluate(result.states[0]), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(evaluate(result.states[1]), ElementsAre(6));
}

TEST(Rnn, HasAnyNumberOfStepsInEachCall) {
  K::Tensor x = K::placeholder({None, None, 1});
  K::Tensor m = K::placeholder({None, None});
  K::RnnResult result = K::rnn(
      [](const K::Tensor &input, const K::Tensors &states) {
        K::Tensor h = states[0] + input;
        return std::pair(h, K::Tensors{h});
      },
      x, {K::zeros_like(K::sum(x, 1))}, {.mask = m});
  EXPECT_EQ(K::int_shape(result.outputs), K::Shape({None, None, 1}));
  K::Tensor loss = K::sum(K::square(result.outputs));
  K::Function f =
      K::function({x, m}, {result.outputs, K::gradients(loss, {x})[0]});
  std::vector<Array> two = f(
      {Array::of<float>({1, 2, 1}, {3, 4}), Array::of<float>({1, 2}, {1, 1})});
  EXPECT_THAT(valuesOf(two[0]), ElementsAre(3, 7));
  EXPECT_THAT(valuesOf(two[1]), ElementsAre(20, 14));
  std::vector<Array> three = f({Array::of<float>({2, 3, 1}, {1, 2, 3, 4, 5, 6}),
                                Array::of<float>({2, 3}, {1, 0, 1, 1, 1, 0})});
  EXPECT_THAT(valuesOf(three[0]), ElementsAre(1, 1, 4, 4, 9, 9));
  // Outputs that repeat count again for the step that they come from.
  EXPECT_THAT(valuesOf(three[1]), ElementsAre(12, 0, 8, 44, 36, 0));
}

TEST(Rnn, KeepsAStateWhoseSamplesOnlyOneSideKnows) {
  K::Tensor x = K::placeholder({2, 3, 1});
  K::Tensor start = K::placeholder({None, 1});
  auto step = [](const K::Tensor &input, const K::Tensors &states) {
    K::Tensor h = states[0] + input;
    return std::pair(h, K::Tensors{h});
  };
  K::Function f =
      K::function({x, start}, {K::rnn(step, x, {start}).last_output});
  EXPECT_THAT(valuesOf(f({Array::of<float>({2, 3, 1}, {1, 2, 3, 4, 5, 6}),
                          Array::of<float>({2, 1}, {0, 1})})[0]),
              ElementsAre(6, 16));
}

TEST(Rnn, TakesConstantsAfterTheStates) {
  auto step = [](const K::Tensor &input, const K::Tensors &all) {
    K::Tensor h = all[0] + input * all[1];
    return std::pair(h, K::Tensors{h});
  };
  K::RnnResult result =
      K::rnn(step, constant({1, 2, 1}, {1, 2}), {constant({1, 1}, {0})},
             {.constants = {constant({1, 1}, {10})}});
  EXPECT_THAT(evaluate(result.outputs), ElementsAre(10, 30));
}

TEST(Rnn, MakesVariablesThatOutliveTheStep) {
  K::Tensor scale;
  auto step = [&](const K::Tensor &input, const K::Tensors &states) {
    if (!scale)
      scale = K::variable(Array::of<float>({1}, {2}));
    K::Tensor h = states[0] + input * scale;
    return std::pair(h, K::Tensors{h});
  };
  K::Tensor last =
      K::rnn(step, constant({1, 2, 1}, {1, 2}), {constant({1, 1}, {0})})
          .last_output;
  EXPECT_THAT(evaluate(last), ElementsAre(6));
  K::set_value(scale, Array::of<float>({1}, {3}));
  EXPECT_THAT(evaluate(last), ElementsAre(9));
  EXPECT_THAT(evaluate(K::gradients(last, {scale})[0]), ElementsAre(3));
}

TEST(Rnn, DrawsOtherRandomNumbersInEachStep) {
  auto step = [](const K::Tensor &input, const K::Tensors &states) {
    K::Tensor y = K::random_uniform({1, 8}, 0, 1, DType::Float32, 7) * input;
    return std::pair(y, states);
  };
  K::Tensor x = K::placeholder({1, None, 1});
  K::Function f = K::function({x}, {K::rnn(step, x, {}).outputs});
  Array ones = Array::full({1, 3, 1}, 1, DType::Float32);
  std::vector<double> first = valuesOf(f({ones})[0]);
  std::vector<double> again = valuesOf(f({ones})[0]);
  first.insert(first.end(), again.begin(), again.end());
  std::sort(first.begin(), first.end());
  EXPECT_EQ(std::adjacent_find(first.begin(), first.end()), first.end());
}

TEST(Rnn, UsesTheLearningPhaseWhenItsStepDoes) {
  auto run = [](bool phased) {
    auto step = [=](const K::Tensor &input, const K::Tensors &states) {
      K::Tensor h = states[0] + input;
      return std::pair(phased ? K::in_train_phase(h * 2, h) : h, K::Tensors{h});
    };
    return K::rnn(step, constant({1, 2, 1}, {1, 2}), {constant({1, 1}, {0})});
  };
  EXPECT_TRUE(K::uses_learning_phase(run(true).last_output));
  EXPECT_TRUE(K::uses_learning_phase(run(true).outputs));
  EXPECT_FALSE(K::uses_learning_phase(run(false).last_output));
}

TEST(Rnn, LeavesTheGraphUsableWhenTheStepThrows) {
  auto throws = [](const K::Tensor &,
                   const K::Tensors &) -> std::pair<K::Tensor, K::Tensors> {
    throw Error("not today");
  };
  K::Tensor x = constant({1, 2, 1}, {1, 2});
  EXPECT_THAT([&] { K::rnn(throws, x, {}); },
              ThrowsMessage<Error>(HasSubstr("not today")));
  EXPECT_THAT(evaluate(x + 1), ElementsAre(2, 3));
}

TEST(Rnn, RefusesWhatDoesNotFit) {
  Sums sums;
  EXPECT_THAT([&] { Sums{{.mask = constant({3}, {1, 1, 1})}}.run(); },
              ThrowsMessage<Error>(
                  HasSubstr("mask has shape (3,) but inputs (1, 3, 1) needs "
                            "(samples, time) (1, 3)")));
  EXPECT_THAT([&] { Sums{{.mask = mask({1, 1})}}.run(); },
              ThrowsMessage<Error>(HasSubstr("(1, 2)")));
  EXPECT_THAT([&] { sums.run(constant({3}, {1, 2, 3})); },
              ThrowsMessage<Error>(
                  HasSubstr("inputs has shape (3,) but must have samples")));
  auto stepTo = [&](const K::Tensors &next) {
    return [=](const K::Tensor &input, const K::Tensors &) {
      return std::pair(input, next);
    };
  };
  EXPECT_THAT([&] { K::rnn(stepTo({}), sums.x, {constant({1, 1}, {0})}); },
              ThrowsMessage<Error>(HasSubstr("returns 0 states but takes 1")));
  EXPECT_THAT(
      [&] {
        K::rnn(stepTo({constant({1, 2}, {0, 0})}), sums.x,
               {constant({1, 1}, {0})});
      },
      ThrowsMessage<Error>(HasSubstr("state 0 has shape (1, 1) but the step "
                                     "returns one of shape (1, 2)")));
  EXPECT_THAT(
      [&] {
        K::rnn(stepTo({K::cast(constant({1, 1}, {0}), DType::Int32)}), sums.x,
               {constant({1, 1}, {0})});
      },
      ThrowsMessage<Error>(HasSubstr("dtype int32")));
}

TEST(Rnn, CompilesToTheSameAmountOfCodeForAnyLength) {
  K::Tensor x = K::placeholder({None, None, 4});
  K::Tensor w = K::constant(Array::full({4, 4}, 0.1, DType::Float32));
  auto step = [&](const K::Tensor &input, const K::Tensors &states) {
    K::Tensor h = K::tanh(input + K::dot(states[0], w));
    return std::pair(h, K::Tensors{h});
  };
  K::Tensor loss = K::sum(
      K::square(K::rnn(step, x, {K::zeros_like(K::sum(x, 1))}).last_output));
  K::Function f = K::function({x}, {loss, K::gradients(loss, {x})[0]});
  auto lines = [&](int64_t steps) {
    K::SaveOptions options;
    options.inputShapes = {{2, steps, 4}};
    std::string text = f.lower("loops", options);
    return std::count(text.begin(), text.end(), '\n');
  };
  EXPECT_EQ(lines(10), lines(1000));
}

TEST(Rnn, TakesLessMemoryWithFewerStatesKept) {
  constexpr int64_t steps = 64, units = 32;
  auto run = [&](std::optional<int64_t> every) {
    K::GraphScope scope;
    K::Tensor x = K::placeholder({2, steps, 1});
    K::Tensor w =
        K::constant(Array::full({units, units}, 0.02, DType::Float32));
    auto step = [&](const K::Tensor &input, const K::Tensors &states) {
      K::Tensor h = K::tanh(input + K::dot(states[0], w));
      return std::pair(h, K::Tensors{h});
    };
    K::Tensor start = K::constant(Array::full({2, units}, 0, DType::Float32));
    K::Tensor loss = K::sum(K::square(
        K::rnn(step, x, {start}, {.checkpoint_every = every}).last_output));
    K::Function f = K::function({x}, {K::gradients(loss, {x})[0]});
    Array input(DType::Float32, {2, steps, 1});
    auto *values = static_cast<float *>(input.mutableData());
    for (int64_t i = 0; i < input.size(); ++i)
      values[i] = std::sin(float(i));
    std::vector<double> gradient = valuesOf(f({input})[0]);
    int64_t arena = f.compiled({{2, steps, 1}})->arena_bytes[0];
    return std::pair(gradient, arena);
  };
  auto [all, allBytes] = run(std::nullopt);
  auto [some, someBytes] = run(8);
  EXPECT_THAT(some, Pointwise(DoubleNear(1e-6), all));
  EXPECT_LT(someBytes, allBytes / 2);
}

TEST(Rnn, RefusesToKeepAStateInNoSteps) {
  EXPECT_THAT([] { Sums{{.checkpoint_every = 0}}.run(); },
              ThrowsMessage<Error>(HasSubstr("every 0 steps")));
}

TEST(Rnn, HasGradientsOfGradients) {
  // y = x^4 in four steps, from 1.
  K::Tensor x = K::placeholder({1});
  auto step = [&](const K::Tensor &, const K::Tensors &states) {
    K::Tensor h = states[0] * x;
    return std::pair(h, K::Tensors{h});
  };
  K::Tensor y = K::sum(
      K::rnn(step, constant({1, 4, 1}, {0, 0, 0, 0}), {constant({1}, {1})})
          .last_output);
  K::Tensor first = K::gradients(y, {x})[0];
  K::Tensor second = K::gradients(first, {x})[0];
  K::Tensor third = K::gradients(second, {x})[0];
  K::Function f = K::function({x}, {y, first, second, third});
  std::vector<Array> values = f({Array::of<float>({1}, {2})});
  EXPECT_NEAR(values[0].at(0), 16, 1e-4);
  EXPECT_NEAR(values[1].at(0), 32, 1e-4);
  EXPECT_NEAR(values[2].at(0), 48, 1e-4);
  EXPECT_NEAR(values[3].at(0), 48, 1e-4);
}

//===----------------------------------------------------------------------===//
// Loops over elements
//===----------------------------------------------------------------------===//

K::Tensor minus(const K::Tensor &a, const K::Tensor &b) { return a - b; }

TEST(Fold, GoesFromTheLeftAndFromTheRight) {
  K::Tensor x = constant({3}, {1, 2, 3});
  EXPECT_THAT(evaluate(K::foldl(minus, x)), ElementsAre(-4));
  EXPECT_THAT(evaluate(K::foldr(minus, x)), ElementsAre(0));
  EXPECT_THAT(evaluate(K::foldl(minus, x, 10)), ElementsAre(4));
  EXPECT_THAT(evaluate(K::foldr(minus, x, constant({}, {10}))), ElementsAre(4));
}

TEST(Fold, RefusesAStepOfAnotherShape) {
  auto grow = [](const K::Tensor &a, const K::Tensor &) {
    return K::expand_dims(a, 0);
  };
  EXPECT_THAT([&] { K::foldl(grow, constant({3}, {1, 2, 3})); },
              ThrowsMessage<Error>(HasSubstr("foldl: state 0 has shape ()")));
  EXPECT_THAT([&] { K::foldr(minus, K::Tensor()); },
              ThrowsMessage<Error>(HasSubstr("foldr: elems")));
}

TEST(MapFn, TakesSeveralTensors) {
  auto both = [](const K::Tensors &elements) {
    return K::Tensors{elements[0] + elements[1],
                      K::cast(elements[0] > elements[1], DType::Int32)};
  };
  K::Tensors results =
      K::map_fn(both, {constant({2}, {1, 4}), constant({2}, {2, 3})});
  EXPECT_THAT(evaluate(results[0]), ElementsAre(3, 7));
  EXPECT_THAT(evaluate(results[1]), ElementsAre(0, 1));
}

} // namespace
