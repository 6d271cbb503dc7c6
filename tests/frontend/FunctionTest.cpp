//===- FunctionTest.cpp - what functions compute and refuse ---------------===//
#include "Arrays.h"

#include "keratin/backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

namespace K = keratin::backend;
using K::None;
using keratin::Array;
using keratin::DType;
using keratin::Error;
using keratin::test::evaluate;
using keratin::test::floats;
using keratin::test::valuesOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

namespace {

K::Tensor constant(std::vector<int64_t> shape, std::vector<float> values) {
  return K::constant(floats(std::move(shape), std::move(values)));
}

void expectNear(const K::Tensor &x, std::vector<double> expected,
                double tolerance = 1e-5) {
  EXPECT_THAT(evaluate(x),
              testing::Pointwise(testing::DoubleNear(tolerance), expected));
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

TEST(Function, ComputesForAnyBatch) {
  K::Tensor x = K::placeholder({None, 2});
  K::Tensor w = constant({2, 2}, {1, 2, 3, 4});
  K::Function f = K::function({x}, {K::dot(x, w)});
  EXPECT_THAT(valuesOf(f({floats({1, 2}, {1, 1})})[0]), ElementsAre(4, 6));
  Array two = f({floats({2, 2}, {1, 0, 0, 1})})[0];
  EXPECT_EQ(two.shape(), K::Shape({2, 2}));
  EXPECT_THAT(valuesOf(two), ElementsAre(1, 2, 3, 4));
}

TEST(Function, ConvertsInputsOfAnotherWidth) {
  K::Tensor x = K::placeholder({2});
  K::Function f = K::function({x}, {x * 2.0});
  EXPECT_THAT(valuesOf(f({Array::of<double>({2}, {1, 2})})[0]),
              ElementsAre(2, 4));
  EXPECT_THAT(valuesOf(f({Array::of<int32_t>({2}, {1, 2})})[0]),
              ElementsAre(2, 4));
}

TEST(Function, TakesIntermediateTensorsAsInputs) {
  K::Tensor x = K::placeholder({2}), h = K::exp(x);
  K::Function f = K::function({h}, {h + 1.0});
  EXPECT_THAT(valuesOf(f({floats({2}, {1, 2})})[0]), ElementsAre(2, 3));
}

TEST(Function, GivesInputsConstantsAndTheSameOutputTwice) {
  K::Tensor x = K::placeholder({2});
  K::Function f = K::function({x}, {x, constant({1}, {7}), x + x, x});
  std::vector<Array> results = f({floats({2}, {1, 2})});
  EXPECT_THAT(valuesOf(results[0]), ElementsAre(1, 2));
  EXPECT_THAT(valuesOf(results[1]), ElementsAre(7));
  EXPECT_THAT(valuesOf(results[2]), ElementsAre(2, 4));
  EXPECT_THAT(valuesOf(results[3]), ElementsAre(1, 2));
}

TEST(Function, ComputesOutputsBeforeUpdates) {
  K::Tensor v = K::variable(floats({}, {1}));
  K::Function f = K::function({}, {v * 10.0}, {K::update_add(v, 1.0)});
  EXPECT_EQ(f({})[0].at(0), 10);
  EXPECT_EQ(f({})[0].at(0), 20);
  EXPECT_EQ(K::get_value(v).at(0), 3);
}

TEST(Function, IgnoresInputsThatNothingDependsOn) {
  K::Tensor x = K::placeholder({2}), unused = K::placeholder({None, 3});
  K::Function f = K::function({unused, x}, {x + 1.0});
  EXPECT_THAT(valuesOf(f({Array::full({5, 3}, 0), floats({2}, {1, 2})})[0]),
              ElementsAre(2, 3));
}

TEST(Function, GivesVariablesAndWithoutOutputsNothing) {
  K::Tensor v = K::variable(floats({2}, {1, 2}));
  EXPECT_THAT(valuesOf(K::function({}, {v})({})[0]), ElementsAre(1, 2));
  EXPECT_TRUE(K::function({}, {})({}).empty());
}

TEST(Function, TakesVariablesAsInputs) {
  K::Tensor v = K::variable(floats({2}, {1, 2}));
  K::Function f = K::function({v}, {v * 10.0});
  EXPECT_THAT(valuesOf(f({floats({2}, {5, 6})})[0]), ElementsAre(50, 60));
  EXPECT_THAT(valuesOf(K::get_value(v)), ElementsAre(1, 2));
}

TEST(Function, SwapsVariables) {
  K::Tensor a = K::variable(floats({}, {1})), b = K::variable(floats({}, {2}));
  K::function({}, {}, {K::update(a, b), K::update(b, a)})({});
  EXPECT_EQ(K::get_value(a).at(0), 2);
  EXPECT_EQ(K::get_value(b).at(0), 1);
}

TEST(Function, SeesValuesThatAreSetBetweenCalls) {
  K::Tensor v = K::variable(floats({}, {1}));
  K::Function f = K::function({}, {v + 1.0});
  EXPECT_EQ(f({})[0].at(0), 2);
  for (float value : {5.0f, 6.0f, 7.0f}) {
    K::set_value(v, floats({}, {value}));
    EXPECT_EQ(f({})[0].at(0), value + 1);
  }
}

TEST(Function, MayBeCalledByManyThreads) {
  K::Tensor x = K::placeholder({None});
  K::Tensor count = K::variable(floats({}, {0}));
  K::Function f = K::function({x}, {K::exp(x)}, {K::update_add(count, 0.0)});
  std::atomic<int> wrong = 0;
  auto call = [&](int thread) {
    K::GraphScope scope; // what a thread builds does not disturb others
    K::Tensor y = K::placeholder({2}) * 2.0;
    for (int64_t size = 1; size < 4; ++size) {
      Array result = f({Array::full({size}, thread)})[0];
      wrong += result.size() != size ||
               std::abs(result.at(0) / std::exp(double(thread)) - 1) > 1e-5;
    }
  };
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back(call, thread);
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
}

//===----------------------------------------------------------------------===//
// Refusals
//===----------------------------------------------------------------------===//

TEST(FunctionErrors, NameTheMissingInput) {
  K::Tensor x = K::placeholder({2}, DType::Float32, "left_out");
  EXPECT_THAT([&] { K::function({}, {x + 1.0}); },
              ThrowsMessage<Error>(HasSubstr("placeholder 'left_out'")));
}

TEST(FunctionErrors, NameTheInputThatDoesNotFit) {
  K::Tensor x = K::placeholder({None, 3}, DType::Float32, "fitting");
  K::Tensor i = K::placeholder({None}, DType::Int32, "index");
  K::Function f = K::function({x, i}, {K::sum(x)});
  EXPECT_THAT([&] { f({}); }, ThrowsMessage<Error>(HasSubstr(
                                  "takes 2 inputs ('fitting', 'index') "
                                  "but 0 are given")));
  EXPECT_THAT(
      [&] { f({floats({1, 4}, {1, 2, 3, 4}), Array(DType::Int32, {1})}); },
      ThrowsMessage<Error>("input 'fitting' has shape (1, 4) but the function "
                           "takes (None, 3)"));
  EXPECT_THAT([&] { f({floats({1, 3}, {1, 2, 3}), floats({1}, {0})}); },
              ThrowsMessage<Error>("input 'index' has dtype float32 but the "
                                   "function takes int32"));
}

TEST(FunctionErrors, NameTheVariableWhoseUpdateDoesNotFit) {
  K::Tensor v = K::variable(floats({2}, {1, 2}), "state");
  EXPECT_THAT([&] { K::function({}, {}, {{v, constant({3}, {1, 2, 3})}}); },
              ThrowsMessage<Error>(HasSubstr("'state' has shape (2,)")));
  EXPECT_THAT([&] { K::set_value(v, floats({3}, {1, 2, 3})); },
              ThrowsMessage<Error>(HasSubstr("but the value has (3,)")));
}

TEST(FunctionErrors, SayWhatCanBeSaved) {
  K::Tensor x = K::placeholder({None, None, 3}, DType::Float32, "sequence");
  K::Function f = K::function({x}, {K::exp(x)});
  EXPECT_THAT([&] { f.save("out"); },
              ThrowsMessage<Error>(HasSubstr("say the extent of axis 1")));
  EXPECT_THAT([&] { f.save("out", {.batch = 0}); },
              ThrowsMessage<Error>(HasSubstr("batch is 0")));
  EXPECT_THAT([&] { f.lower("fast"); },
              ThrowsMessage<Error>(HasSubstr("graph, core")));
}

//===----------------------------------------------------------------------===//
// Values, as Keras computes them
//===----------------------------------------------------------------------===//

TEST(Values, OfElementwiseFunctions) {
  expectNear(K::round(constant({5}, {-1.5, -.5, .5, 1.5, 2.5})),
             {-2, 0, 0, 2, 2});
  expectNear(K::sqrt(constant({2}, {-1, 4})), {0, 2});
  expectNear(K::clip(constant({2}, {0, 5}), 3., 1.), {3, 3});
  expectNear(K::relu(constant({5}, {-2, .5, 1, 3, 9}), .1, 6., 1.),
             {-.3, -.05, 1, 3, 6});
  expectNear(K::hard_sigmoid(constant({3}, {-3, 0, 1})), {0, .5, .7});
  expectNear(K::elu(constant({3}, {-1, 0, 1}), .5), {-.3160603, 0, 1});
  expectNear(K::l2_normalize(constant({2, 2}, {0, 0, 3, 4}), 1),
             {0, 0, .6, .8});
  expectNear(K::gelu(constant({3}, {-1, 0, 2})), {-.15865525, 0, 1.9544997});
}

TEST(Values, OfReductions) {
  K::Tensor x = constant({2, 3}, {0, 1, 2, 3, 4, 5});
  expectNear(K::std(x), {1.7078251});
  expectNear(K::var(x, 0), {2.25, 2.25, 2.25});
  expectNear(K::logsumexp(constant({2}, {1e4, 1e4}), 0), {10000.693}, 1e-2);
  expectNear(K::cumsum(x), {0, 1, 2, 3, 5, 7});
  expectNear(K::cumprod(constant({3}, {2, 3, 4})), {2, 6, 24});
  expectNear(K::softmax(constant({2}, {1, 2})), {.2689414, .7310586});
}

TEST(Values, OfIndices) {
  K::Tensor x = constant({5}, {0, 1, 2, 3, 4});
  expectNear(K::getitem(x, {K::Slice{3, 0, -2}}), {3, 1});
  expectNear(K::getitem(x, {K::Slice{-2, {}}}), {3, 4});
  expectNear(K::one_hot(K::constant(Array::of<int32_t>({3}, {0, 5, 1})), 2),
             {1, 0, 0, 0, 0, 1});
  expectNear(K::tile(constant({1, 2}, {1, 2}), {2, 2}),
             {1, 2, 1, 2, 1, 2, 1, 2});
  expectNear(K::repeat_elements(constant({2}, {1, 2}), 2, 0), {1, 1, 2, 2});
  expectNear(K::switch_(K::constant(Array::of<bool>({2}, {true, false})),
                        constant({2, 2}, {1, 2, 3, 4}),
                        constant({2, 2}, {5, 6, 7, 8})),
             {1, 2, 7, 8});
}

TEST(Values, OnAxesOfUnknownExtent) {
  K::Tensor x = K::placeholder({None});
  K::Function f =
      K::function({x}, {K::getitem(x, {-2}), K::getitem(x, {K::Slice{1, -1}}),
                        K::getitem(x, {K::Slice{-2, {}}}),
                        K::repeat_elements(x, 2, 0), K::mean(x)});
  std::vector<Array> y = f({floats({4}, {1, 2, 3, 4})});
  EXPECT_EQ(y[0].at(0), 3);
  EXPECT_THAT(valuesOf(y[1]), ElementsAre(2, 3));
  EXPECT_THAT(valuesOf(y[2]), ElementsAre(3, 4));
  EXPECT_THAT(valuesOf(y[3]), ElementsAre(1, 1, 2, 2, 3, 3, 4, 4));
  EXPECT_EQ(y[4].at(0), 2.5);
}

TEST(Values, OfConvolutions) {
  K::Tensor x = constant({1, 5, 1}, {1, 2, 3, 4, 5});
  K::Tensor k = constant({3, 1, 1}, {1, 10, 100});
  expectNear(K::conv1d(x, k, 1, "same"), {210, 321, 432, 543, 54});
  expectNear(K::conv1d(x, k, 2, "same"), {210, 432, 54});
  expectNear(K::conv1d(x, k, 1, "same", "", 2), {310, 420, 531, 42, 53});
  expectNear(K::conv1d(x, k, 1, "causal", "", 2), {100, 200, 310, 420, 531});
  expectNear(K::conv1d(x, constant({2, 1, 1}, {1, 10}), 1, "same"),
             {21, 32, 43, 54, 5});
  K::Tensor kernel = constant({3, 3, 1, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  expectNear(K::conv2d_transpose(constant({1, 2, 2, 1}, {1, 1, 1, 1}), kernel,
                                 {1, 4, 4, 1}, {2, 2}, "same"),
             {1, 2, 4, 2, 4, 5, 10, 5, 8, 10, 20, 10, 4, 5, 10, 5});
}

TEST(Values, OfPools) {
  K::Tensor x = constant({1, 3, 3, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  expectNear(K::pool2d(x, {2, 2}, {1, 1}, "same", "", "avg"),
             {3, 4, 4.5, 6, 7, 7.5, 7.5, 8.5, 9});
  expectNear(K::pool2d(-x, {2, 2}, {2, 2}, "same"), {-1, -3, -7, -9});
  expectNear(K::resize_images(constant({1, 1, 3, 1}, {1, 2, 3}), 1, 2,
                              "channels_last", "bilinear"),
             {1, 1.5, 2, 2.5, 3, 3});
}

TEST(Values, OfLosses) {
  expectNear(K::categorical_crossentropy(constant({1, 2}, {0, 1}),
                                         constant({1, 2}, {2, 2})),
             {.6931472});
  expectNear(K::categorical_crossentropy(constant({1, 2}, {0, 1}),
                                         constant({1, 2}, {1, 0})),
             {16.118}, 1e-2);
  expectNear(K::sparse_categorical_crossentropy(
                 constant({2, 1}, {0, 1}), constant({2, 2}, {.2, .8, .4, .6})),
             {1.6094379, .5108256});
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

struct RnnRow {
  bool mask, backwards, unroll;
  std::vector<double> outputs;
  double state;
};

class Rnn : public testing::TestWithParam<RnnRow> {};

TEST_P(Rnn, AddsUpAsKerasDoes) {
  const RnnRow &row = GetParam();
  K::Tensor x = constant({1, 3, 1}, {1, 10, 100});
  K::RnnOptions options{.go_backwards = row.backwards, .unroll = row.unroll};
  if (row.mask)
    options.mask = constant({1, 3}, {0, 1, 0});
  K::RnnResult result = K::rnn(
      [](const K::Tensor &input, const K::Tensors &states) {
        K::Tensor next = states[0] + input;
        return std::pair(next, K::Tensors{next});
      },
      x, {constant({1, 1}, {0})}, options);
  expectNear(result.outputs, row.outputs);
  expectNear(result.last_output, {row.outputs.back()});
  expectNear(result.states[0], {row.state});
}

INSTANTIATE_TEST_SUITE_P(
    Options, Rnn,
    testing::Values(RnnRow{false, false, false, {1, 11, 111}, 111},
                    RnnRow{false, true, false, {100, 110, 111}, 111},
                    RnnRow{true, false, false, {0, 10, 10}, 10},
                    RnnRow{true, true, false, {0, 10, 10}, 10},
                    RnnRow{false, true, true, {100, 110, 111}, 111},
                    RnnRow{true, false, true, {0, 10, 10}, 10}));

TEST(Values, OfFolds) {
  auto minus = [](const K::Tensor &a, const K::Tensor &b) { return a - b; };
  K::Tensor x = constant({3}, {1, 2, 3});
  expectNear(K::foldl(minus, x), {-4});
  expectNear(K::foldr(minus, x), {0});
  expectNear(K::foldl(minus, constant({2}, {1, 2}), 10.0), {7});
  expectNear(K::map_fn([](const K::Tensor &e) { return e * 2.0; }, x),
             {2, 4, 6});
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

TEST(Gradients, AreNoneWhereNothingDepends) {
  K::Tensor w = K::variable(floats({2}, {1, 2}));
  K::Tensor other = K::variable(floats({2}, {1, 2}));
  K::Tensors found = K::gradients(K::sum(w * w), {other, w});
  EXPECT_FALSE(found[0]);
  expectNear(found[1], {2, 4});
}

TEST(Gradients, StopWhereTheyAreToldTo) {
  K::Tensor w = K::variable(floats({2}, {1, 2}));
  EXPECT_FALSE(K::gradients(K::sum(K::stop_gradient(w)), {w})[0]);
  expectNear(K::gradients(K::sum(K::stop_gradient(w) * w), {w})[0], {1, 2});
}

TEST(Gradients, OfGradients) {
  K::Tensor w = K::variable(floats({2}, {1, 2}));
  K::Tensor first = K::gradients(K::sum(w * w * w), {w})[0];
  expectNear(K::gradients(first, {w})[0], {6, 12});
}

TEST(Gradients, AreNoneThroughWhatHasNoDerivative) {
  K::Tensor w = K::variable(floats({2}, {1.2, 2.7}));
  for (const K::Tensor &blocked :
       {K::round(w), K::floor(w), K::ceil(w), K::floor_divide(w, 2.0),
        K::cast(K::argmax(w), DType::Float32),
        K::cast(K::greater(w, 2.0), DType::Float32),
        K::cast(K::cast(w, DType::Int32), DType::Float32)}) {
    EXPECT_FALSE(K::gradients(K::sum(blocked), {w})[0]);
    expectNear(K::gradients(K::sum(blocked + w), {w})[0], {1, 1});
  }
}

TEST(Gradients, OfSignsAreZeros) {
  K::Tensor w = K::variable(floats({2}, {-1, 2}));
  expectNear(K::gradients(K::sum(K::sign(w)), {w})[0], {0, 0});
}

TEST(Gradients, AreNoneForIntegersAndNumbers) {
  K::Tensor i = K::variable(Array::of<int32_t>({2}, {1, 2}));
  K::Tensor w = K::variable(floats({2}, {1, 2}));
  K::Tensors found =
      K::gradients(K::sum(w * K::cast(i, DType::Float32)), {i, 3.0, w});
  EXPECT_FALSE(found[0]);
  EXPECT_FALSE(found[1]);
  expectNear(found[2], {1, 2});
}

TEST(Gradients, OfManyElementsAreThoseOfTheirSum) {
  K::Tensor w = K::variable(floats({2}, {3, 4}));
  expectNear(K::gradients(w * w, {w})[0], {6, 8});
}

TEST(Gradients, AreTakenByPlaceholdersAndWhatIsComputed) {
  K::Tensor x = K::placeholder({None}), h = x * 3.0;
  K::Tensor loss = K::sum(h * h);
  K::Function f = K::function({x}, K::gradients(loss, {x, h}));
  std::vector<Array> found = f({floats({1}, {2})});
  EXPECT_EQ(found[0].at(0), 36);
  EXPECT_EQ(found[1].at(0), 12);
}

//===----------------------------------------------------------------------===//
// Artefacts
//===----------------------------------------------------------------------===//

class Save : public testing::Test {
protected:
  void SetUp() override {
    directory = std::filesystem::path(testing::TempDir()) / "keratin-save";
    std::filesystem::create_directories(directory);
    K::Tensor x = K::placeholder({None, 4}, DType::Float32, "features");
    K::Tensor w = K::variable(Array::full({4, 8}, 0.5));
    function = K::function({x}, {K::relu(K::dot(x, w))}, {},
                           {.function = "tiny", .outputs = {"scores"}});
  }
  void TearDown() override { std::filesystem::remove_all(directory); }

  std::filesystem::path directory;
  K::Function function;
};

TEST_F(Save, WritesObjectAndHeader) {
  function.save((directory / "tiny-net").string());
  EXPECT_TRUE(std::filesystem::exists(directory / "tiny-net.o"));
  std::ifstream header(directory / "tiny-net.h");
  std::string text{std::istreambuf_iterator<char>(header), {}};
  EXPECT_THAT(text, testing::AllOf(HasSubstr("tiny_net"), HasSubstr("features"),
                                   HasSubstr("scores")));
}

TEST_F(Save, WritesTheTextOfAStage) {
  function.save((directory / "tiny").string(), {.emit = "linalg"});
  std::ifstream file(directory / "tiny.mlir");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(text, HasSubstr("linalg.generic"));
  EXPECT_THAT(function.lower("graph"), HasSubstr("ktn.dot_general"));
  EXPECT_THAT(function.lower("graph", {.batch = 3}), HasSubstr("tiny"));
}

TEST_F(Save, ListsKernels) {
  std::vector<K::KernelInfo> kernels = function.kernels();
  ASSERT_FALSE(kernels.empty());
  EXPECT_GT(kernels[0].flops[1], 0);
}

TEST_F(Save, RefusesWhatCannotBeWritten) {
  auto save = [&](K::SaveOptions options) {
    return [this, options] { function.save("never", options); };
  };
  EXPECT_THAT(save({.emit = "elf"}),
              ThrowsMessage<Error>(HasSubstr("'elf' is nothing")));
  EXPECT_THAT(save({.weights = "outside"}),
              ThrowsMessage<Error>(HasSubstr("'embed' or 'external'")));
  EXPECT_THAT(save({.name = "1st"}),
              ThrowsMessage<Error>(HasSubstr("not a C identifier")));
  EXPECT_THAT([&] { function.save((directory / "no" / "where").string()); },
              ThrowsMessage<Error>(HasSubstr("where")));
  K::SaveOptions options;
  options.target = "z80";
  EXPECT_THAT(save(options), ThrowsMessage<Error>(HasSubstr("z80")));
}

TEST_F(Save, CallsTheProfileHookAroundKernels) {
  K::CompileSettings settings;
  settings.profile = true;
  function.configure(settings);
  int calls = 0;
  function.setProfileHook(
      {{2, 4}},
      [](void *user, int32_t, int32_t) { ++*static_cast<int *>(user); },
      &calls);
  function({Array::full({2, 4}, 1)});
  EXPECT_GT(calls, 0);
  EXPECT_EQ(calls % 2, 0);
}

} // namespace
