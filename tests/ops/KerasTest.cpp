//===- KerasTest.cpp - what Keras gives -----------------------------------===//
//
// Values measured with Keras 2.3.1 on TensorFlow: the cases in which backends
// are known to differ, ties and edges. Rows of the table have the rest.
//
//===----------------------------------------------------------------------===//
#include "OpRun.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <random>

using namespace keratin;
using namespace keratin::optest;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::FloatNear;
using testing::Pointwise;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan_ = std::numeric_limits<float>::quiet_NaN();

class Keras : public testing::Test {
protected:
  K::GraphScope scope;
};

std::vector<double> valuesOf(const Array &array) {
  std::vector<double> values;
  for (int64_t i = 0; i < array.size(); ++i)
    values.push_back(array.at(i));
  return values;
}

std::vector<double> evaluated(const K::Tensor &x) {
  return valuesOf(K::eval(x));
}

K::Tensor floats(K::Shape shape, const std::vector<float> &values) {
  return K::variable(Array::of(std::move(shape), values));
}

K::Tensor floats(const std::vector<float> &values) {
  return floats({static_cast<int64_t>(values.size())}, values);
}

void expectNear(const std::vector<double> &actual,
                const std::vector<double> &expected, double margin = 1e-5) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i)
    EXPECT_NEAR(actual[i], expected[i], margin) << "element " << i;
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

TEST_F(Keras, RoundsHalvesToEven) {
  EXPECT_THAT(evaluated(K::round(floats({0.5, 1.5, 2.5, -0.5, -1.5}))),
              ElementsAre(0, 2, 2, 0, -2));
}

TEST_F(Keras, ClampsBeforeTheSquareRoot) {
  EXPECT_THAT(evaluated(K::sqrt(floats({-1, 4}))), ElementsAre(0, 2));
}

TEST_F(Keras, LetsTheLowerBoundOfClipWin) {
  EXPECT_THAT(evaluated(K::clip(floats({1, 5}), 3, 2)), ElementsAre(3, 3));
  EXPECT_THAT(evaluated(K::clip(floats({1, 5}), 3, {})), ElementsAre(3, 5));
}

TEST_F(Keras, KeepsTheThresholdOfRelu) {
  expectNear(evaluated(K::relu(floats({-2, 0.5, 1, 3, 9}), 0.1, 6, 1)),
             {-0.3, -0.05, 1, 3, 6});
}

TEST_F(Keras, DividesIntegersTruly) {
  K::Tensor x = K::constant(Array::of<int32_t>({2}, {3, 2}));
  K::Tensor half = x / 2;
  EXPECT_EQ(K::dtype(half), DType::Float64);
  EXPECT_THAT(evaluated(half), ElementsAre(1.5, 1));
}

TEST_F(Keras, RefusesToMixDtypes) {
  K::Tensor x = floats({1}), y = K::cast(x, DType::Float64);
  EXPECT_THROW(x * y, Error);
  EXPECT_THROW(K::constant(Array::of<int32_t>({1}, {3})) + 1.5, Error);
  EXPECT_EQ(K::dtype(y * 2), DType::Float64);
}

TEST_F(Keras, SplitsTheGradientOfMaxEvenly) {
  K::Tensor x = floats({3, 3, 1});
  EXPECT_THAT(evaluated(K::gradients(K::max(x), {x})[0]),
              ElementsAre(0.5, 0.5, 0));
  K::Tensor y = floats({3, 2, 9});
  K::Tensors both = K::gradients(K::sum(K::maximum(x, y)), {x, y});
  EXPECT_THAT(evaluated(both[0]), ElementsAre(1, 1, 0));
  EXPECT_THAT(evaluated(both[1]), ElementsAre(0, 0, 1));
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

TEST_F(Keras, KeepsTheMeanOfIntegersInteger) {
  K::Tensor mean = K::mean(K::constant(Array::of<int32_t>({2}, {1, 2})));
  EXPECT_EQ(K::dtype(mean), DType::Int32);
  EXPECT_THAT(evaluated(mean), ElementsAre(1));
  EXPECT_EQ(K::dtype(K::mean(K::greater(floats({1, -1}), 0))), DType::Float32);
}

TEST_F(Keras, AddsExponentialsWithoutOverflow) {
  expectNear(evaluated(K::logsumexp(floats({1e4, 1e4}))), {10000.693}, 1e-3);
}

TEST_F(Keras, TakesFloatsAsTruth) {
  EXPECT_THAT(evaluated(K::any(floats({0, 2}))), ElementsAre(1));
  EXPECT_THAT(evaluated(K::all(floats({0, 2}))), ElementsAre(0));
}

TEST_F(Keras, CountsParameters) {
  EXPECT_EQ(K::count_params(K::ones({2, 3, 4})), 24);
  EXPECT_EQ(evaluated(K::size(K::ones({2, 3}))), std::vector<double>{6});
  EXPECT_EQ(K::dtype(K::size(K::ones({2, 3}))), DType::Int32);
  EXPECT_EQ(K::dtype(K::shape(K::ones({2, 3}))), DType::Int32);
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

TEST_F(Keras, KnowsWhatTheGraphKnowsOfShapes) {
  K::Tensor p = K::placeholder({K::None, 3});
  K::Tensor x = K::ones({2, 5});
  K::Tensor batch = K::getitem(K::shape(p), {0});
  K::Tensor five = K::getitem(K::shape(x), {1});
  EXPECT_EQ(K::int_shape(K::reshape(p, K::shape(p))), K::Shape({K::None, 3}));
  EXPECT_EQ(K::int_shape(K::reshape(K::ones({2, 10}), {-1, five * 2, 1})),
            K::Shape({2, 10, 1}));
  EXPECT_EQ(K::int_shape(K::random_normal({batch, 4})), K::Shape({K::None, 4}));
  EXPECT_EQ(K::int_shape(K::arange(five)), K::Shape({5}));
  EXPECT_EQ(K::int_shape(K::arange(batch)), K::Shape({K::None}));
  EXPECT_EQ(K::int_shape(K::tile(p, {batch, five})), K::Shape({K::None, 15}));
  EXPECT_EQ(K::int_shape(K::gather(K::ones({2, 3}),
                                   K::placeholder({K::None, 4}, DType::Int32))),
            K::Shape({K::None, 4, 3}));
}

TEST_F(Keras, CountsLikeNumPy) {
  EXPECT_THAT(evaluated(K::arange(3)), ElementsAre(0, 1, 2));
  EXPECT_THAT(evaluated(K::arange(5, 1, -2)), ElementsAre(5, 3));
  EXPECT_TRUE(evaluated(K::arange(-3)).empty());
  EXPECT_EQ(K::dtype(K::arange(3)), DType::Int32);
  K::Tensor n = K::placeholder({K::None});
  K::Tensor length = K::getitem(K::shape(n), {0});
  K::Function count = K::function(
      {n}, {K::arange(length), K::arange(length, 1, -2), K::arange(2, length)});
  std::vector<Array> found = count({Array::full({5}, 0)});
  EXPECT_THAT(valuesOf(found[0]), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(valuesOf(found[1]), ElementsAre(5, 3));
  EXPECT_THAT(valuesOf(found[2]), ElementsAre(2, 3, 4));
}

TEST_F(Keras, SlicesFromComputedPlaces) {
  K::Tensor x = floats({3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  K::Tensor start = K::placeholder({}, DType::Int32);
  K::Function slice = K::function({start}, {K::slice(x, {start, 1}, {2, 2})});
  EXPECT_THAT(valuesOf(slice({Array::of<int32_t>({}, {1})})[0]),
              ElementsAre(5, 6, 9, 10));
  EXPECT_THROW(K::slice(x, {1}, {2}), Error);
}

TEST_F(Keras, RefusesExtentsThatDependOnValues) {
  K::Tensor n = K::placeholder({}, DType::Int32);
  K::Function count = K::function({n}, {K::arange(n)});
  EXPECT_THROW(count({Array::of<int32_t>({}, {4})}), Error);
}

TEST_F(Keras, MakesTheIdentityMatrix) {
  EXPECT_THAT(evaluated(K::eye(2)), ElementsAre(1, 0, 0, 1));
  EXPECT_FALSE(K::is_variable(K::eye(2)));
  EXPECT_TRUE(K::is_variable(K::zeros({2})));
}

TEST_F(Keras, RepeatsAndTiles) {
  K::Tensor x = floats({1, 2}, {1, 2});
  EXPECT_THAT(evaluated(K::repeat_elements(x, 2, 1)), ElementsAre(1, 1, 2, 2));
  EXPECT_THAT(evaluated(K::tile(x, {2, 2})),
              ElementsAre(1, 2, 1, 2, 1, 2, 1, 2));
  EXPECT_THAT(evaluated(K::repeat(x, 2)), ElementsAre(1, 2, 1, 2));
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

TEST_F(Keras, InfersTheShapeOfBatchDot) {
  auto open = [](K::Shape shape) {
    shape.insert(shape.begin(), K::None);
    return K::placeholder(shape);
  };
  auto shapeOf = [&](K::Shape a, K::Shape b, std::vector<int64_t> axes) {
    return K::int_shape(K::batch_dot(open(a), open(b), axes));
  };
  EXPECT_EQ(shapeOf({4}, {4}, {1, 1}), K::Shape({K::None, 1}));
  EXPECT_EQ(shapeOf({3, 4}, {4}, {2, 1}), K::Shape({K::None, 3}));
  EXPECT_EQ(shapeOf({4}, {3, 4}, {1, 2}), K::Shape({K::None, 3}));
  EXPECT_EQ(shapeOf({2, 3, 4}, {4, 5}, {3, 1}), K::Shape({K::None, 2, 3, 5}));
  EXPECT_THROW(shapeOf({4}, {4}, {0, 1}), Error);
  EXPECT_THROW(shapeOf({3}, {4}, {1, 1}), Error);
  EXPECT_THROW(K::batch_dot(K::placeholder({3}), open({3}), {}), Error);
  EXPECT_EQ(K::int_shape(K::dot(K::ones({2, 3}), K::ones({4, 3, 5}))),
            K::Shape({2, 4, 5}));
}

TEST_F(Keras, MultipliesSparseMatrices) {
  // [[1, 0, 2], [0, 0, 0], [0, 3, 0]]
  K::CsrArray csr = {Array::of<float>({3}, {1, 2, 3}),
                     Array::of<int32_t>({3}, {0, 2, 1}),
                     Array::of<int32_t>({4}, {0, 2, 2, 3}),
                     {3, 3}};
  K::Tensor x = K::variable(csr);
  EXPECT_TRUE(K::is_sparse(x));
  EXPECT_FALSE(K::is_sparse(K::to_dense(x)));
  EXPECT_FALSE(K::is_sparse(floats({1})));
  EXPECT_THAT(evaluated(x), ElementsAre(1, 0, 2, 0, 0, 0, 0, 3, 0));
  EXPECT_THAT(evaluated(K::to_dense(x)),
              ElementsAre(1, 0, 2, 0, 0, 0, 0, 3, 0));
  K::Tensor y = K::dot(x, floats({3, 2}, {1, 2, 3, 4, 5, 6}));
  EXPECT_THAT(evaluated(y), ElementsAre(11, 14, 0, 0, 9, 12));

  K::Tensor joined = K::concatenate({x, x}, 0);
  EXPECT_TRUE(K::is_sparse(joined));
  EXPECT_THAT(evaluated(joined), ElementsAre(1, 0, 2, 0, 0, 0, 0, 3, 0, 1, 0, 2,
                                             0, 0, 0, 0, 3, 0));
  EXPECT_THAT(
      evaluated(K::concatenate({x, x}, 1)),
      ElementsAre(1, 0, 2, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 3, 0));
  csr.indices = Array::of<int32_t>({3}, {0, 3, 1});
  EXPECT_THROW(K::variable(csr), Error);
}

//===----------------------------------------------------------------------===//
// Losses
//===----------------------------------------------------------------------===//

TEST_F(Keras, ClipsProbabilities) {
  K::Tensor target = floats({1, 2}, {1, 0}), output = floats({1, 2}, {0, 1});
  expectNear(evaluated(K::categorical_crossentropy(target, output)), {16.118},
             1e-3);
  expectNear(evaluated(K::binary_crossentropy(target, output)),
             {15.4249, 15.3332}, 1e-3);
}

TEST_F(Keras, LooksBehindSigmoidAndSoftmax) {
  K::Tensor logit = floats({1, 1}, {50});
  expectNear(
      evaluated(K::binary_crossentropy(floats({1, 1}, {0}), K::sigmoid(logit))),
      {50});
  K::Tensor logits = floats({1, 2}, {100, -100});
  K::Tensor p = K::softmax(logits);
  expectNear(evaluated(K::categorical_crossentropy(floats({1, 2}, {0, 1}), p)),
             {200});
  K::Tensor label = K::constant(Array::of<int32_t>({1}, {1}));
  expectNear(evaluated(K::sparse_categorical_crossentropy(label, p)), {200});
  expectNear(evaluated(K::sparse_categorical_crossentropy(label, p * 1)),
             {16.118}, 1e-3);
}

TEST_F(Keras, TakesLabelsAsFloatsToo) {
  K::Tensor p = floats({2, 2}, {0.25, 0.75, 0.5, 0.5});
  expectNear(
      evaluated(K::sparse_categorical_crossentropy(floats({2, 1}, {1, 0}), p)),
      {-std::log(0.75), -std::log(0.5)});
}

TEST_F(Keras, RanksTiesAlike) {
  K::Tensor p = floats({1, 4}, {0.5, 0.5, 0.5, 0.1});
  auto isTop = [&](int32_t target, const K::Tensor &predictions) {
    K::Tensor t = K::constant(Array::of<int32_t>({1}, {target}));
    return evaluated(K::in_top_k(predictions, t, 2))[0] != 0;
  };
  EXPECT_TRUE(isTop(0, p) && isTop(1, p) && isTop(2, p));
  EXPECT_FALSE(isTop(3, p));
  EXPECT_FALSE(isTop(4, p));
  EXPECT_FALSE(isTop(0, floats({1, 3}, {nan_, 0, 1})));
  EXPECT_FALSE(isTop(0, floats({1, 3}, {inf, 0, 1})));
}

TEST_F(Keras, NormalizesZeroRowsToZero) {
  EXPECT_THAT(evaluated(K::l2_normalize(floats({2, 2}, {0, 0, 3, 4}), 1)),
              Pointwise(testing::DoubleNear(1e-6),
                        std::vector<double>{0, 0, 0.6, 0.8}));
}

//===----------------------------------------------------------------------===//
// Connectionist temporal classification
//===----------------------------------------------------------------------===//

// The probabilities and costs of TensorFlow's own test, which Keras' has too.
TEST_F(Keras, GivesTheCostsOfCtc) {
  K::Tensor p = floats(
      {2, 5, 6},
      {0.633766,  0.221185, 0.0917319, 0.0129757,  0.0142857,  0.0260553,
       0.111121,  0.588392, 0.278779,  0.0055756,  0.00569609, 0.010436,
       0.0357786, 0.633813, 0.321418,  0.00249248, 0.00272882, 0.0037688,
       0.0663296, 0.643849, 0.280111,  0.00283995, 0.0035545,  0.00331533,
       0.458235,  0.396634, 0.123377,  0.00648837, 0.00903441, 0.00623107,
       0.30176,   0.28562,  0.0831517, 0.0862751,  0.0816851,  0.161508,
       0.24082,   0.397533, 0.0557226, 0.0546814,  0.0557528,  0.19549,
       0.230246,  0.450868, 0.0389607, 0.038309,   0.0391602,  0.202456,
       0.280884,  0.429522, 0.0326593, 0.0339046,  0.0326856,  0.190345,
       0.423286,  0.315517, 0.0338439, 0.0393744,  0.0339315,  0.154046});
  K::Tensor labels = floats({2, 5}, {0, 1, 2, 1, 0, 0, 1, 1, 0, 0});
  K::Tensor inputs = K::constant(Array::of<int32_t>({2, 1}, {5, 5}));
  K::Tensor lengths = K::constant(Array::of<int32_t>({2, 1}, {5, 4}));
  expectNear(evaluated(K::ctc_batch_cost(labels, p, inputs, lengths)),
             {3.34211, 5.42262}, 1e-4);
  // Five labels, two of them repeated, need seven steps.
  K::Tensor two = floats({2, 5}, {0, 1, 1, 1, 0, 0, 1, 1, 0, 0});
  EXPECT_EQ(evaluated(K::ctc_batch_cost(two, p, inputs, lengths))[0], inf);
}

TEST_F(Keras, DecodesTheLikeliestPath) {
  K::Tensor p =
      floats({2, 6, 4}, {1,   0,   0,   0,   0,   0,   0.4, 0.6, 0, 0, 0.4, 0.6,
                         0,   0.9, 0.1, 0,   0,   0,   0,   0,   0, 0, 0,   0,
                         0.1, 0.9, 0,   0,   0,   0.9, 0.1, 0,   0, 0, 0.1, 0.9,
                         0,   0.9, 0.1, 0.1, 0.9, 0.1, 0,   0,   0, 0, 0,   0});
  K::Tensor lengths = K::constant(Array::of<int32_t>({2}, {4, 5}));
  K::CtcPaths paths = K::ctc_decode(p, lengths);
  ASSERT_EQ(paths.decoded.size(), 1u);
  Array labels = K::eval(paths.decoded[0]);
  EXPECT_EQ(labels.shape(), K::Shape({2, 3}));
  EXPECT_THAT(valuesOf(labels), ElementsAre(0, 1, -1, 1, 1, 0));
  Array scores = K::eval(paths.log_prob);
  EXPECT_EQ(scores.shape(), K::Shape({2, 1}));
  expectNear(
      valuesOf(scores),
      {-std::log(1.0) - 2 * std::log(0.6) - std::log(0.9), -5 * std::log(0.9)});
}

/// What a saved function has room for: a label at each step.
TEST_F(Keras, DecodesGreedilyInAnArtefact) {
  constexpr int64_t samples = 7, steps = 9, classes = 4;
  std::mt19937 random(5);
  std::vector<float> values;
  for (int64_t i = 0; i < samples * steps * classes; ++i)
    values.push_back(static_cast<float>(random() % 1000) / 1000);
  Array given = Array::of<float>({samples, steps, classes}, values);
  Array lengths = Array::of<int32_t>({samples}, {9, 1, 0, 5, 9, 7, 3});
  K::Tensor p = K::placeholder({K::None, steps, classes});
  K::Tensor length = K::placeholder({K::None}, DType::Int32);
  K::CtcPaths paths = K::ctc_decode(p, length);
  K::Function decode =
      K::function({p, length}, {paths.log_prob, paths.decoded[0]});
  std::vector<Array> expected = decode({given, lengths});

  TemporaryDirectory directory;
  K::SaveOptions options;
  options.name = "decode";
  options.emit = "so";
  decode.save(directory.path / "decode", options);
  std::vector<Array> outputs = {Array(DType::Float32, {samples, 1}),
                                Array(DType::Int64, {samples, steps})};
  runArtefact(directory.path / "decode.so", samples, {given, lengths}, outputs);
  expectNear(valuesOf(outputs[0]), valuesOf(expected[0]), 1e-5);
  int64_t longest = expected[1].shape()[1];
  ASSERT_GT(longest, 3);
  for (int64_t sample = 0; sample < samples; ++sample)
    for (int64_t i = 0; i < steps; ++i)
      EXPECT_EQ(outputs[1].at(sample * steps + i),
                i < longest ? expected[1].at(sample * longest + i) : -1);
}

TEST_F(Keras, DecodesWithABeam) {
  std::vector<float> logits = {
      0.30999,  0.309938, 0.0679938, 0.0673362, 0.0708352, 0.173908,
      0.215136, 0.439699, 0.0370931, 0.0393967, 0.0381581, 0.230517,
      0.199959, 0.489485, 0.0233221, 0.0251417, 0.0233289, 0.238763,
      0.279611, 0.452966, 0.0204795, 0.0209126, 0.0194803, 0.20655,
      0.51286,  0.288951, 0.0243026, 0.0220788, 0.0219297, 0.129878};
  for (float &value : logits)
    value = std::exp(value + 2);
  K::Tensor lengths = K::constant(Array::of<int32_t>({1}, {5}));
  K::CtcPaths paths = K::ctc_decode(floats({1, 5, 6}, logits), lengths,
                                    /*greedy=*/false, /*beam_width=*/2,
                                    /*top_paths=*/2);
  std::vector<Array> found =
      K::function({}, {paths.decoded[0], paths.decoded[1], paths.log_prob})({});
  EXPECT_THAT(valuesOf(found[0]), ElementsAre(1, 0));
  EXPECT_THAT(valuesOf(found[1]), ElementsAre(1));
  expectNear(valuesOf(found[2]), {-5.811451, -6.63339}, 1e-4);
}

TEST_F(Keras, MergesRepeatedLabelsOfABeamWhenAsked) {
  std::vector<float> p = {0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 0,
                          0, 0, 1, 0, 0, 0, 1, 0, 1, 0};
  K::Tensor lengths = K::constant(Array::of<int32_t>({1}, {7}));
  auto decode = [&](bool merge) {
    return evaluated(
        K::ctc_decode(floats({1, 7, 3}, p), lengths, false, 1, 1, merge)
            .decoded[0]);
  };
  EXPECT_THAT(decode(true), ElementsAre(0, 1));
  EXPECT_THAT(decode(false), ElementsAre(0, 0, 1, 1));
}

TEST_F(Keras, RefusesToComputeOnWithPaths) {
  K::Tensor p = K::placeholder({2, 3, 4});
  K::Tensor lengths = K::placeholder({2}, DType::Int32);
  K::CtcPaths paths = K::ctc_decode(p, lengths);
  EXPECT_THROW(K::function({p, lengths}, {paths.decoded[0] + 1}), Error);
  K::Function decode = K::function({p, lengths}, paths.decoded);
  K::CtcPaths beam = K::ctc_decode(p, lengths, /*greedy=*/false);
  K::Function search = K::function({p, lengths}, beam.decoded);
  EXPECT_THAT([&] { search.save("never"); },
              testing::ThrowsMessage<Error>(testing::HasSubstr(
                  "save a function of what it is made of, and decode where "
                  "that is called")));
  EXPECT_THROW(
      decode({Array::full({2, 3, 4}, 1), Array::of<int32_t>({2}, {3, 4})}),
      Error);
  EXPECT_THROW(K::ctc_decode(p, lengths, false, 1, 2), Error);
}

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

// Half of 1 + tanh y is the sigmoid of 2 y, and powers that overflow are
// harmless.
TEST_F(Keras, ApproximateGeluIsTimesASigmoid) {
  K::Tensor x = K::placeholder({K::None});
  std::string graph = K::function({x}, {K::gelu(x, true)}).lower("graph");
  EXPECT_THAT(graph, testing::HasSubstr("ktn.sigmoid"));
  EXPECT_THAT(graph, testing::Not(testing::HasSubstr("tanh")));
  for (DType dtype : {DType::Float16, DType::BFloat16, DType::Float32}) {
    K::Tensor large = K::cast(floats({4}, {-512, 16, 64, 512}), dtype);
    EXPECT_THAT(evaluated(K::cast(K::gelu(large, true), DType::Float32)),
                ElementsAre(0, 16, 64, 512));
  }
}

// One power and one division, without a logarithm, and no overflow.
TEST_F(Keras, MishTakesOnePower) {
  K::Tensor x = K::placeholder({K::None});
  std::string graph = K::function({x}, {K::mish(x)}).lower("graph");
  EXPECT_THAT(graph, testing::HasSubstr("ktn.exp"));
  EXPECT_THAT(graph, testing::Not(testing::HasSubstr("log")));
  EXPECT_THAT(graph, testing::Not(testing::HasSubstr("tanh")));
  for (DType dtype : {DType::Float16, DType::BFloat16, DType::Float32}) {
    K::Tensor large = K::cast(floats({4}, {-512, 16, 64, 512}), dtype);
    EXPECT_THAT(evaluated(K::cast(K::mish(large), DType::Float32)),
                ElementsAre(0, 16, 64, 512));
  }
}

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

TEST_F(Keras, PrintsWhatIsComputed) {
  std::vector<std::string> lines;
  K::set_print_sink([&](const std::string &message, const Array &value) {
    lines.push_back(message + " " + K::array_string(value));
  });
  K::Tensor x = floats({1, 1}, {1});
  K::Tensor shown = K::print_tensor(x, "msg");
  EXPECT_TRUE(lines.empty());
  EXPECT_THAT(evaluated(shown * 2), ElementsAre(2));
  EXPECT_THAT(lines, ElementsAre("msg [[1.]]"));
  EXPECT_THAT(evaluated(K::gradients(K::sum(K::square(shown)), {x})[0]),
              ElementsAre(2));
  K::set_print_sink(nullptr);
}

// An artefact has nobody to print: the value is all that it gives.
TEST_F(Keras, SavesWhatPrintsWithoutIt) {
  K::Tensor x = K::placeholder({K::None, 2});
  K::Function shown = K::function({x}, {K::print_tensor(x, "msg") * 2});
  EXPECT_EQ(shown.lower("core"), K::function({x}, {x * 2}).lower("core"));
}

TEST_F(Keras, PrintsArraysAsNumPyDoes) {
  auto text = [](const Array &array) { return K::array_string(array); };
  EXPECT_EQ(text(Array::of<float>({2, 2}, {1, 2.5f, -3, 0.125f})),
            "[[ 1.     2.5  ]\n [-3.     0.125]]");
  EXPECT_EQ(text(Array::of<int32_t>({3}, {1, -20, 300})), "[  1 -20 300]");
  EXPECT_EQ(text(Array::of<bool>({2}, {true, false})), "[ True False]");
  EXPECT_EQ(text(Array::of<float>({}, {1})), "1.0");
  EXPECT_EQ(text(Array::of<float>({2}, {1.5f, 1e9f})), "[1.5e+00 1.0e+09]");
  EXPECT_EQ(text(Array::of<double>({1}, {1.0 / 3})), "[0.33333333]");
  EXPECT_EQ(text(Array::of<float>({3}, {1, NAN, INFINITY})), "[ 1. nan inf]");
  EXPECT_EQ(text(Array(DType::Float32, {1001})), "[0. 0. 0. ... 0. 0. 0.]");
  EXPECT_EQ(text(Array(DType::Float32, {0})), "[]");
}

//===----------------------------------------------------------------------===//
// Images
//===----------------------------------------------------------------------===//

TEST_F(Keras, SamplesBetweenPixels) {
  K::Tensor x = floats({1, 1, 3, 1}, {1, 2, 3});
  expectNear(evaluated(K::resize_images(x, 1, 2, "channels_last", "bilinear")),
             {1, 1.5, 2, 2.5, 3, 3});
}

TEST_F(Keras, TakesComputedOutputShapes) {
  K::Tensor x = K::placeholder({K::None, 2, 2, 1});
  K::Tensor batch = K::getitem(K::shape(x), {0});
  K::Tensor height = K::getitem(K::shape(x), {1}) * 2;
  std::vector<float> numbers = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  K::Tensor y = K::conv2d_transpose(x, floats({3, 3, 1, 1}, numbers),
                                    {batch, height, 4, 1}, {2, 2}, "same");
  EXPECT_EQ(K::int_shape(y), K::Shape({K::None, 4, 4, 1}));
  EXPECT_THAT(
      valuesOf(K::function({x}, {y})({Array::full({1, 2, 2, 1}, 1)})[0]),
      ElementsAre(1, 2, 4, 2, 4, 5, 10, 5, 8, 10, 20, 10, 4, 5, 10, 5));
}

K::Tensor sequence(const K::Shape &shape) {
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  Array array(DType::Float32, shape);
  for (int64_t i = 0; i < count; ++i)
    array.set(i, std::sin(1.0 + static_cast<double>(i)));
  return K::variable(array);
}

void expectSame(const K::Tensor &a, const K::Tensor &b) {
  EXPECT_EQ(K::int_shape(a), K::int_shape(b));
  expectNear(evaluated(a), evaluated(b), 1e-6);
}

// The rows of the table are of the functions for any number of axes.
TEST_F(Keras, HasAFunctionForEachNumberOfAxes) {
  const char *last = "channels_last";
  K::Tensor x1 = sequence({2, 9, 4}), x2 = sequence({2, 6, 5, 4}),
            x3 = sequence({2, 4, 5, 3, 4});
  K::Tensor k1 = sequence({3, 4, 2}), k2 = sequence({3, 2, 4, 2}),
            k3 = sequence({2, 3, 2, 4, 2});
  expectSame(K::conv1d(x1, k1, 2, "same", last),
             K::conv(x1, k1, {2}, "same", last, {1}));
  expectSame(K::conv2d(x2, k2, {1, 2}, "same", last),
             K::conv(x2, k2, {1, 2}, "same", last, {1, 1}));
  expectSame(K::conv3d(x3, k3, {1, 2, 1}, "valid", last),
             K::conv(x3, k3, {1, 2, 1}, "valid", last, {1, 1, 1}));
  expectSame(K::pool3d(x3, {2, 2, 2}, {1, 2, 1}, "same", last, "avg"),
             K::pool(x3, {2, 2, 2}, {1, 2, 1}, "same", last, "avg"));

  // One channel in, so that the kernel has the same form both ways.
  K::Tensor t1 = sequence({3, 4, 4}), t3 = sequence({2, 3, 2, 4, 4});
  K::Shape shape1 =
      K::conv_transpose_output_shape(x1, t1, {2}, "same", {}, last, {1});
  EXPECT_EQ(shape1, K::Shape({2, 18, 4}));
  expectSame(K::conv1d_transpose(x1, t1, shape1, 2, "same", last),
             K::conv_transpose(x1, t1, shape1, {2}, "same", last, {1}));
  expectSame(
      K::conv3d_transpose(x3, t3, {2, 8, 10, 6, 4}, {2, 2, 2}, "same", last),
      K::conv_transpose(x3, t3, {2, 8, 10, 6, 4}, {2, 2, 2}, "same", last,
                        {1, 1, 1}));

  // A channel at a time, and then a product of channels.
  K::Tensor d1 = sequence({3, 4, 2}), p1 = sequence({1, 8, 5});
  K::Tensor deep = K::depthwise_conv1d(x1, d1, 1, "same", last);
  EXPECT_EQ(K::int_shape(deep), K::Shape({2, 9, 8}));
  K::Tensor image = K::depthwise_conv2d(
      K::expand_dims(x1, 1), K::expand_dims(d1, 0), {1, 1}, "same", last);
  expectSame(deep, K::squeeze(image, 1));
  expectSame(K::separable_conv1d(x1, d1, p1, 1, "same", last),
             K::conv1d(deep, p1, 1, "valid", last));
}

TEST_F(Keras, KeepsNamesAndFlags) {
  K::NameScope block("block1");
  EXPECT_EQ(K::current_name_scope(), "block1");
  K::manual_variable_initialization(true);
  EXPECT_TRUE(K::is_manual_variable_initialization());
  K::manual_variable_initialization(false);
  K::set_seed_source([] { return uint64_t(7); });
  EXPECT_EQ(K::draw_seed(), 7u);
  K::set_seed_source(nullptr);
}

TEST_F(Keras, FillsAndParts) {
  EXPECT_THAT(evaluated(K::full({2, 1}, 3)), ElementsAre(3, 3));
  EXPECT_THAT(evaluated(K::full_like(floats({1, 2}), 4)), ElementsAre(4, 4));
  EXPECT_THAT(evaluated(K::divide(floats({1, 2}), 4)), ElementsAre(0.25, 0.5));
  K::Tensors rows = K::unstack(floats({2, 2}, {1, 2, 3, 4}), 0);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_THAT(evaluated(rows[1]), ElementsAre(3, 4));
}

TEST_F(Keras, ChecksLocalConvolutions) {
  K::Tensor x = K::placeholder({K::None, 5, 2});
  EXPECT_THROW(K::local_conv1d(x, K::ones({5, 6, 1}), {3}, {1}), Error);
  EXPECT_THROW(K::local_conv1d(x, K::ones({3, 4, 1}), {3}, {1}), Error);
  EXPECT_THROW(K::local_conv1d(x, K::ones({3}), {3}, {1}), Error);
}

} // namespace
