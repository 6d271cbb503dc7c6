//===- UpdateTest.cpp - when variables change, and who sees it ------------===//
#include "Arrays.h"

#include "keratin/backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace K = keratin::backend;
using K::None;
using keratin::Array;
using keratin::DType;
using keratin::Error;
using keratin::test::valuesOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

namespace {

K::Tensor scalar(double value, std::string_view name = "") {
  return K::variable(Array::full({}, value), name);
}

double valueOf(const K::Tensor &x) { return K::get_value(x).at(0); }

/// A mean over all calls, as Keras' metrics are written.
struct Mean {
  K::Tensor total = scalar(0, "total"), count = scalar(0, "count");

  K::Tensor update(const K::Tensor &value) {
    K::Tensor added = K::update_add(total, value);
    K::ControlDependencies first({added});
    return K::update_add(count, 1.0);
  }
  K::Tensor result() { return total / count; }
  K::Tensor operator()(const K::Tensor &value) {
    K::ControlDependencies updated({update(value)});
    return K::identity(result());
  }
};

//===----------------------------------------------------------------------===//
// Updates
//===----------------------------------------------------------------------===//

TEST(Updates, AreMadeWhenTheyAreEvaluated) {
  K::Tensor v = scalar(3);
  EXPECT_EQ(K::eval(K::update(v, 5.0)).at(0), 5);
  EXPECT_EQ(valueOf(v), 5);
  EXPECT_EQ(K::eval(K::update_add(v, 2.0)).at(0), 7);
  EXPECT_EQ(K::eval(K::update_sub(v, K::constant(3))).at(0), 4);
  EXPECT_EQ(valueOf(v), 4);
}

TEST(Updates, AreNotMadeWhenNobodyEvaluatesThem) {
  K::Tensor v = scalar(3);
  K::Tensor unused = K::update_add(v, 1.0);
  EXPECT_EQ(K::eval(v * 2.0).at(0), 6);
  EXPECT_EQ(valueOf(v), 3);
}

TEST(Updates, AreMadeAtEachCall) {
  K::Tensor v = scalar(0);
  K::Function f = K::function({}, {}, {K::update_add(v, 2.0)});
  for (int call = 1; call <= 4; ++call) {
    EXPECT_TRUE(f({}).empty());
    EXPECT_EQ(valueOf(v), 2 * call);
  }
}

TEST(Updates, AreWrittenOverValuesThatNobodyHas) {
  K::Tensor v = K::variable(Array::full({1000}, 1));
  K::Function f = K::function({}, {}, {K::update(v, v * 2.0 + 1.0)});
  f({});
  const void *place = K::get_value(v).data();
  f({});
  EXPECT_EQ(K::get_value(v).data(), place);
  Array old = K::get_value(v);
  f({});
  EXPECT_EQ(old.at(5), 7);
  EXPECT_EQ(K::get_value(v).at(5), 15);
}

TEST(Updates, ReadAllOfTheOldValue) {
  std::vector<float> values(1000);
  std::iota(values.begin(), values.end(), 0.0f);
  K::Tensor v = K::variable(Array::of({1000}, values));
  K::Function f = K::function({}, {}, {K::update(v, v + K::reverse(v, {0}))});
  f({});
  EXPECT_EQ(K::get_value(v).at(1), 999);
  EXPECT_EQ(K::get_value(v).at(998), 999);
  f({});
  EXPECT_EQ(K::get_value(v).at(998), 1998);
}

TEST(Updates, MoveAverages) {
  K::Tensor v = scalar(1);
  K::eval(K::moving_average_update(v, K::constant(10), .9));
  EXPECT_NEAR(valueOf(v), 1.9, 1e-6);
}

TEST(Updates, OfOutputsAreMadeAsWell) {
  K::Tensor v = scalar(1);
  K::Tensor next = K::update_add(v, 1.0);
  K::Function f = K::function({}, {v, next * 10.0});
  std::vector<Array> values = f({});
  EXPECT_EQ(values[0].at(0), 1);
  EXPECT_EQ(values[1].at(0), 20);
  EXPECT_EQ(valueOf(v), 2);
}

TEST(Updates, StartFromTheOldValuesOfOtherVariables) {
  K::Tensor a = scalar(1), b = scalar(2);
  K::function({}, {}, {{a, b * 10.0}, {b, a * 10.0}})({});
  EXPECT_EQ(valueOf(a), 20);
  EXPECT_EQ(valueOf(b), 10);
}

TEST(Updates, OfOneVariableComposeInOrder) {
  K::Tensor v = scalar(1);
  K::function({}, {}, {{v, v + 1.0}, {v, v + 10.0}})({});
  EXPECT_EQ(valueOf(v), 12);
  K::function({}, {}, {K::update_add(v, 1.0), K::update(v, v * 2.0)})({});
  EXPECT_EQ(valueOf(v), 26);
}

TEST(Updates, ThatComposeSeeOldValuesOfOthers) {
  K::Tensor v = scalar(1), w = scalar(100);
  K::function({}, {}, {{v, v + 1.0}, {w, w + v}, {v, v + w}})({});
  EXPECT_EQ(valueOf(v), 102); // 1 + 1, then + the old w
  EXPECT_EQ(valueOf(w), 101);
}

TEST(Updates, GivenTwiceAreMadeOnce) {
  K::Tensor v = scalar(1);
  K::Tensor added = K::update_add(v, 1.0);
  K::function({}, {added}, {added, added})({});
  EXPECT_EQ(valueOf(v), 2);
}

TEST(Updates, OfUpdatesFollowEachOther) {
  K::Tensor v = scalar(1), w = scalar(0);
  K::eval(K::update(w, K::update_add(v, 1.0) * 5.0));
  EXPECT_EQ(valueOf(v), 2);
  EXPECT_EQ(valueOf(w), 10);
}

TEST(Updates, MayBeTensorsThatAssignNothing) {
  K::Tensor v = scalar(1);
  EXPECT_TRUE(K::function({}, {}, {v * 2.0})({}).empty());
  EXPECT_EQ(valueOf(v), 1);
}

TEST(Updates, TakeShapesThatAreKnownAtTheCall) {
  K::Tensor v = K::variable(Array::of<float>({2}, {1, 2}));
  K::Tensor x = K::placeholder({None});
  K::Function f = K::function({x}, {}, {{v, x * 2.0}});
  f({Array::of<float>({2}, {5, 6})});
  EXPECT_EQ(K::get_value(v).at(1), 12);
  EXPECT_THROW(f({Array::of<float>({3}, {5, 6, 7})}), Error);
  EXPECT_EQ(K::get_value(v).at(1), 12);
}

TEST(Updates, ShareTheNewValueWithTheVariable) {
  K::Tensor v = K::variable(Array::full({1000}, 1));
  K::function({}, {}, {K::update_add(v, 1.0)})({});
  EXPECT_EQ(K::get_value(v).data(), K::get_value(v).data());
}

TEST(UpdateErrors, NameVariableAndBothShapes) {
  K::Tensor v = K::variable(Array::of<float>({2}, {1, 2}), "moments");
  EXPECT_THAT(
      [&] { K::update(v, K::constant(Array::full({3}, 0))); },
      ThrowsMessage<Error>(HasSubstr(
          "'moments' has shape (2,) and dtype float32 but its new value "
          "has (3,)")));
  EXPECT_THAT([&] { K::update(v, 0.0); },
              ThrowsMessage<Error>(HasSubstr("has ()")));
  EXPECT_THAT([&] { K::update(v * 2.0, v); },
              ThrowsMessage<Error>(HasSubstr("not a variable")));
  EXPECT_THAT([&] { K::function({}, {}, {K::Update(2.0)}); },
              ThrowsMessage<Error>(HasSubstr("is a number")));
}

TEST(UpdateErrors, NameTheVariableThatALoopAssigns) {
  K::Tensor v = scalar(0, "inner");
  K::Tensor ys =
      K::map_fn([&](const K::Tensor &x) { return K::update_add(v, x) + x; },
                K::constant(Array::full({3}, 1)));
  EXPECT_THAT([&] { K::eval(ys); },
              ThrowsMessage<Error>(HasSubstr("'inner' is assigned inside")));
}

TEST(Updates, TrainWithoutCompilingAnew) {
  K::Tensor x = K::placeholder({None, 1}), y = K::placeholder({None, 1});
  K::Tensor w = K::variable(Array::full({1, 1}, 0)), b = scalar(0);
  K::Tensor loss = K::mean(K::square(K::dot(x, w) + b - y));
  K::Tensors slopes = K::gradients(loss, {w, b});
  K::Function step = K::function(
      {x, y}, {loss},
      {K::update_sub(w, slopes[0] * .1), K::update_sub(b, slopes[1] * .1)}, {},
      {.foldVariables = false});
  Array xs = Array::of<float>({4, 1}, {-1, 0, 1, 2});
  Array ys = Array::of<float>({4, 1}, {-1, 2, 5, 8});
  const ktn_model_info_t *code = step.compiled({{4, 1}, {4, 1}});
  for (int i = 0; i < 300; ++i)
    step({xs, ys});
  EXPECT_NEAR(valueOf(w), 3, 1e-3);
  EXPECT_NEAR(valueOf(b), 2, 1e-3);
  EXPECT_EQ(step.compiled({{4, 1}, {4, 1}}), code);
}

//===----------------------------------------------------------------------===//
// After the updates
//===----------------------------------------------------------------------===//

TEST(AfterUpdates, OutputsSeeNewValues) {
  K::Tensor v = scalar(1), w = scalar(10);
  K::Function f =
      K::function({}, {v + w, v + w, w}, {{v, v + 1.0}, {w, v * 100.0}}, {},
                  {.afterUpdates = {1}});
  std::vector<Array> values = f({});
  EXPECT_EQ(values[0].at(0), 11);
  EXPECT_EQ(values[1].at(0), 102);
  EXPECT_EQ(values[2].at(0), 10);
}

TEST(AfterUpdates, OutputsKeepWhatDependsOnInputsOnly) {
  K::Tensor x = K::placeholder({}), v = scalar(1);
  K::Tensor y = K::exp(x) + v;
  K::Function f =
      K::function({x}, {y}, {{v, v + 1.0}}, {}, {.afterUpdates = {0}});
  EXPECT_EQ(f({Array::full({}, 0)})[0].at(0), 3);
  EXPECT_EQ(f({Array::full({}, 0)})[0].at(0), 4);
}

TEST(AfterUpdates, OutputsSeeTheLastOfComposedValues) {
  K::Tensor v = scalar(1);
  K::Function f = K::function({}, {v * 1.0}, {{v, v + 1.0}, {v, v + 10.0}}, {},
                              {.afterUpdates = {0}});
  EXPECT_EQ(f({})[0].at(0), 12);
}

TEST(AfterUpdates, NameAnOutputThatIsNotThere) {
  K::Tensor v = scalar(1);
  EXPECT_THAT([&] { K::function({}, {v}, {}, {}, {.afterUpdates = {1}}); },
              ThrowsMessage<Error>(HasSubstr("output 1 after the updates")));
}

//===----------------------------------------------------------------------===//
// Control dependencies
//===----------------------------------------------------------------------===//

TEST(ControlDependencies, MakeReadersSeeNewValues) {
  K::Tensor v = scalar(1);
  K::Tensor before = v * 10.0, after;
  {
    K::ControlDependencies assigned({K::update_add(v, 1.0)});
    after = v * 10.0;
  }
  std::vector<Array> values = K::function({}, {before, after})({});
  EXPECT_EQ(values[0].at(0), 10);
  EXPECT_EQ(values[1].at(0), 20);
  EXPECT_EQ(valueOf(v), 2);
}

TEST(ControlDependencies, AreMadeByWhatReadsOtherValues) {
  K::Tensor v = scalar(1), x = scalar(5), y;
  {
    K::ControlDependencies assigned({K::update_add(v, 1.0)});
    y = K::identity(x);
  }
  EXPECT_EQ(K::eval(y).at(0), 5);
  EXPECT_EQ(valueOf(v), 2);
  EXPECT_EQ(K::eval(x * 2.0).at(0), 10);
  EXPECT_EQ(valueOf(v), 2);
}

TEST(ControlDependencies, AreMadeByUpdatesToConstants) {
  K::Tensor v = scalar(1), w = scalar(1), set;
  {
    K::ControlDependencies assigned({K::update_add(v, 1.0)});
    set = K::update(w, 0.0);
  }
  K::eval(set);
  EXPECT_EQ(valueOf(v), 2);
  EXPECT_EQ(valueOf(w), 0);
}

TEST(ControlDependencies, HaveKerasNameToo) {
  K::Tensor v = scalar(1), after;
  {
    auto assigned = K::control_dependencies({K::update_add(v, 1.0)});
    after = v * 10.0;
  }
  EXPECT_EQ(valueOf(after), 20);
}

TEST(ControlDependencies, Nest) {
  K::Tensor a = scalar(1), b = scalar(2), sum;
  {
    K::ControlDependencies outer({K::update_add(a, 10.0)});
    K::ControlDependencies inner({K::update_add(b, 20.0)});
    sum = a + b;
  }
  EXPECT_EQ(K::eval(sum).at(0), 33);
  EXPECT_EQ(valueOf(a), 11);
  EXPECT_EQ(valueOf(b), 22);
}

TEST(ControlDependencies, UpdateMetricsBeforeTheirResult) {
  Mean mean;
  EXPECT_EQ(K::eval(mean(K::constant(100))).at(0), 100);
  EXPECT_EQ(valueOf(mean.total), 100);
  EXPECT_EQ(valueOf(mean.count), 1);
  EXPECT_EQ(K::eval(mean(K::constant(50))).at(0), 75);
  EXPECT_EQ(K::eval(mean.result()).at(0), 75);
  EXPECT_EQ(valueOf(mean.count), 2);
}

TEST(ControlDependencies, AgreeWithOutputsAfterTheUpdates) {
  Mean mean;
  K::Tensor x = K::placeholder({});
  K::Tensor update = mean.update(x);
  K::Tensor result;
  {
    K::ControlDependencies updated({update});
    result = K::identity(mean.result());
  }
  for (bool flagged : {false, true}) {
    K::set_value(mean.total, Array::full({}, 0));
    K::set_value(mean.count, Array::full({}, 0));
    K::FunctionOptions options;
    if (flagged)
      options.afterUpdates = {0};
    K::Function f = K::function({x}, {result}, {update}, {}, options);
    EXPECT_EQ(f({Array::full({}, 4)})[0].at(0), 4);
    EXPECT_EQ(f({Array::full({}, 8)})[0].at(0), 6);
  }
}

TEST(ControlDependencies, EndWithTheirScope) {
  K::Tensor v = scalar(1);
  {
    K::ControlDependencies assigned({K::update_add(v, 1.0)});
  }
  EXPECT_EQ(K::eval(v * 10.0).at(0), 10);
  EXPECT_EQ(valueOf(v), 1);
}

TEST(ControlDependencies, ReachIntoLoops) {
  K::Tensor v = scalar(1), ys, twice;
  {
    K::ControlDependencies assigned({K::update_add(v, 1.0)});
    ys = K::map_fn([&](const K::Tensor &x) { return x * v; },
                   K::constant(Array::full({3}, 10)));
    twice = v * 2.0;
  }
  std::vector<Array> values = K::function({}, {ys, twice})({});
  EXPECT_EQ(values[0].at(2), 20);
  EXPECT_EQ(values[1].at(0), 4);
}

TEST(ControlDependencies, SurroundGradients) {
  K::Tensor v = scalar(1), w = scalar(3), gradient;
  {
    K::ControlDependencies assigned({K::update_add(v, 1.0)});
    gradient = K::gradients(w * w, {w})[0];
  }
  EXPECT_EQ(K::eval(gradient).at(0), 6);
  EXPECT_EQ(valueOf(v), 2);
}

TEST(ControlDependencies, HaveGradients) {
  K::Tensor v = scalar(1), w = scalar(3), loss;
  {
    K::ControlDependencies assigned({K::update_add(v, 1.0)});
    loss = w * w;
  }
  EXPECT_EQ(K::eval(K::gradients(loss, {w})[0]).at(0), 6);
}

//===----------------------------------------------------------------------===//
// The states of random ops
//===----------------------------------------------------------------------===//

TEST(RandomStates, AdvanceWithEachCall) {
  K::Tensor r = K::random_uniform({4}, 0., 1., DType::Float32, 7);
  K::Function f = K::function({}, {r});
  std::vector<double> first = valuesOf(f({})[0]);
  EXPECT_NE(valuesOf(f({})[0]), first);
  EXPECT_NE(valuesOf(K::eval(r)), first);
}

TEST(RandomStates, GiveOneValueACall) {
  K::Tensor r = K::random_uniform({4}, 0., 1., DType::Float32, 7);
  K::Function f = K::function({}, {r, r * 1.0, K::exp(r)});
  std::vector<Array> values = f({});
  EXPECT_EQ(valuesOf(values[0]), valuesOf(values[1]));
  EXPECT_NEAR(std::log(values[2].at(3)), values[0].at(3), 1e-5);
}

TEST(RandomStates, RepeatWithTheirSeed) {
  std::vector<std::vector<double>> runs;
  for (int run = 0; run < 2; ++run) {
    K::Tensor r = K::random_uniform({4}, 0., 1., DType::Float32, 7);
    K::Function f = K::function({}, {r});
    f({});
    runs.push_back(valuesOf(f({})[0]));
  }
  EXPECT_EQ(runs[0], runs[1]);
}

TEST(RandomStates, TakeSeedsFromTheSource) {
  auto draw = [] {
    uint64_t next = 40;
    K::set_seed_source([next]() mutable { return ++next; });
    K::Tensor a = K::random_uniform({4}), b = K::random_uniform({4});
    std::vector<Array> values = K::function({}, {a, b})({});
    K::set_seed_source(nullptr);
    EXPECT_NE(valuesOf(values[0]), valuesOf(values[1]));
    return valuesOf(values[0]);
  };
  EXPECT_EQ(draw(), draw());
  EXPECT_NE(valuesOf(K::eval(K::random_uniform({4}))),
            valuesOf(K::eval(K::random_uniform({4}))));
}

TEST(RandomStates, AdvanceOnlyWhereTheyAreRead) {
  K::GraphScope graph;
  K::Tensor x = K::constant(Array::full({4}, 0));
  K::Tensor r = K::random_uniform({4}, 0., 1., DType::Float32, 7);
  K::Function f = K::function({K::learning_phase()}, {K::in_train_phase(r, x)});
  Array test = Array::full({}, 0), train = Array::full({}, 1);
  f({test});
  std::vector<double> first = valuesOf(f({train})[0]);
  K::Tensor same = K::random_uniform({4}, 0., 1., DType::Float32, 7);
  EXPECT_EQ(valuesOf(K::eval(same)), first);
}

TEST(RandomStates, AreStateOfWhatIsSaved) {
  K::Tensor r = K::random_uniform({4}, 0., 1., DType::Float32, 7);
  std::string graph = K::function({}, {r}).lower("graph");
  EXPECT_THAT(graph, HasSubstr("tensor<2xi64> {ktn.name = \"random_state"));
  EXPECT_THAT(graph, testing::ContainsRegex("random_state[_0-9]*_next"));
}

//===----------------------------------------------------------------------===//
// Variables
//===----------------------------------------------------------------------===//

TEST(Variables, HaveNamesThatDiffer) {
  K::GraphScope graph;
  K::NameScope scope("foo");
  EXPECT_EQ(K::name(scalar(0, "b")), "foo/b");
  EXPECT_EQ(K::name(scalar(0, "b_1")), "foo/b_1");
  EXPECT_EQ(K::name(scalar(0, "b")), "foo/b_2");
}

TEST(Variables, StartWithTheValueOfATensor) {
  K::Tensor x = K::constant(3);
  EXPECT_EQ(valueOf(K::variable(x * 2.0)), 6);
  K::Tensor number = K::variable(2.5);
  EXPECT_EQ(valueOf(number), 2.5);
  EXPECT_EQ(K::dtype(number), K::floatx());
}

TEST(Variables, AreReadAndWrittenInBatches) {
  K::Tensor a = scalar(1), b = K::variable(Array::full({2}, 2));
  K::batch_set_value({{a, Array::full({}, 5, DType::Int64)},
                      {b, Array::of<double>({2}, {6, 7})}});
  std::vector<Array> values = K::batch_get_value({a, b, a + 1.0});
  EXPECT_EQ(values[0].at(0), 5);
  EXPECT_EQ(values[0].dtype(), DType::Float32);
  EXPECT_EQ(values[1].at(1), 7);
  EXPECT_EQ(values[2].at(0), 6);
}

TEST(Variables, AreToldFromOtherTensors) {
  K::Tensor v = scalar(1), p = K::placeholder({2}), c = K::constant(1);
  EXPECT_TRUE(K::is_variable(v));
  EXPECT_FALSE(K::is_variable(p));
  EXPECT_FALSE(K::is_variable(c));
  EXPECT_FALSE(K::is_variable(v + 1.0));
  EXPECT_FALSE(K::is_variable(1.0));
  EXPECT_TRUE(K::is_placeholder(p));
  EXPECT_FALSE(K::is_placeholder(v));
  EXPECT_TRUE(K::is_tensor(c));
  EXPECT_FALSE(K::is_tensor(2.0));
}

TEST(KerasTensors, AreWhatLayersMark) {
  K::Tensor p = K::placeholder({2}), q = p + 1.0;
  EXPECT_FALSE(K::is_keras_tensor(p));
  K::mark_as_keras_tensor(p);
  EXPECT_TRUE(K::is_keras_tensor(p));
  EXPECT_FALSE(K::is_keras_tensor(q)) << "made before";
  EXPECT_FALSE(K::is_keras_tensor(p * 2.0)) << "made after";
  EXPECT_THAT([] { K::is_keras_tensor(1.0); },
              ThrowsMessage<Error>(AllOf(HasSubstr("is_keras_tensor"),
                                         HasSubstr("the number 1"))));
  EXPECT_THROW(K::mark_as_keras_tensor({}), Error);
}

TEST(VariableErrors, NameBothShapes) {
  K::Tensor v = K::variable(Array::full({2}, 0), "weights");
  EXPECT_THAT([&] { K::set_value(v, Array::full({}, 0)); },
              ThrowsMessage<Error>("set_value: variable 'weights' has shape "
                                   "(2,) but the value has ()"));
  EXPECT_THAT([&] { K::eval(3.0); },
              ThrowsMessage<Error>(HasSubstr("is the number 3")));
}

TEST(Uids, CountForEachPrefix) {
  K::GraphScope graph;
  EXPECT_EQ(K::get_uid("dense"), 1);
  EXPECT_EQ(K::get_uid("dense"), 2);
  EXPECT_EQ(K::get_uid(), 1);
  EXPECT_EQ(K::get_uids().at("dense"), 2);
  K::reset_uids();
  EXPECT_EQ(K::get_uid("dense"), 1);
}

} // namespace
