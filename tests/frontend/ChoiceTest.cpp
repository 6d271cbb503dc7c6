//===- ChoiceTest.cpp - the learning phase and other choices --------------===//
#include "Arrays.h"

#include "keratin/backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace K = keratin::backend;
using K::None;
using keratin::Array;
using keratin::DType;
using keratin::Error;
using keratin::test::floats;
using keratin::test::valuesOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

namespace {

class LearningPhase : public testing::Test {
protected:
  K::GraphScope graph;
  K::Tensor x = K::placeholder({2});
};

//===----------------------------------------------------------------------===//
// The learning phase
//===----------------------------------------------------------------------===//

TEST_F(LearningPhase, IsChosenByTheValueThatIsFed) {
  K::Tensor y = K::in_train_phase(x * 2.0, x * 3.0);
  K::Function f = K::function({x, K::learning_phase()}, {y});
  Array one = floats({2}, {1, 1});
  EXPECT_EQ(f({one, Array::full({}, 0)})[0].at(0), 3);
  EXPECT_EQ(f({one, Array::full({}, 1)})[0].at(0), 2);
  EXPECT_EQ(f({one, Array::full({}, 1, DType::Int64)})[0].at(0), 2);
  EXPECT_EQ(f({one, Array::full({}, 1, DType::Bool)})[0].at(0), 2);
  EXPECT_EQ(f({one, Array::full({1}, 0, DType::Int32)})[0].at(0), 3);
  EXPECT_EQ(f.inputs()[1].name, "learning_phase");
}

TEST_F(LearningPhase, IsTheTestPhaseUnfed) {
  K::Function f = K::function({x}, {K::in_train_phase(x * 2.0, x * 3.0)});
  EXPECT_EQ(f({floats({2}, {1, 1})})[0].at(0), 3);
}

TEST_F(LearningPhase, IsAValueToo) {
  K::Tensor y = K::cast(K::learning_phase(), DType::Float32) * x;
  K::Function f = K::function({x, K::learning_phase()}, {y});
  EXPECT_EQ(f({floats({2}, {5, 5}), Array::full({}, 1)})[0].at(0), 5);
  EXPECT_EQ(f({floats({2}, {5, 5}), Array::full({}, 0)})[0].at(0), 0);
}

TEST_F(LearningPhase, MayBeFedWhereNobodyAsks) {
  K::Function f = K::function({K::learning_phase(), x}, {x + 1.0});
  EXPECT_EQ(f({Array::full({}, 1), floats({2}, {1, 1})})[0].at(0), 2);
  EXPECT_EQ(f({Array::full({}, 0), floats({2}, {1, 1})})[0].at(0), 2);
}

TEST_F(LearningPhase, IsOneTensorOfItsGraph) {
  K::Tensor phase = K::learning_phase();
  EXPECT_TRUE(phase.is(K::learning_phase()));
  EXPECT_EQ(K::int_shape(phase), K::Shape{});
  EXPECT_FALSE(K::fixed_learning_phase());
}

TEST_F(LearningPhase, IsANumberOnceItIsSet) {
  K::Tensor open = K::in_train_phase(x * 2.0, x * 3.0);
  K::set_learning_phase(1);
  EXPECT_EQ(K::fixed_learning_phase(), 1);
  ASSERT_TRUE(K::learning_phase().isNumber());
  EXPECT_EQ(K::learning_phase().number(), 1);
  K::Tensor set = K::in_train_phase(x * 2.0, x * 3.0);
  EXPECT_FALSE(K::uses_learning_phase(set));
  std::vector<Array> values =
      K::function({x}, {open, set})({floats({2}, {1, 1})});
  EXPECT_EQ(values[0].at(0), 3);
  EXPECT_EQ(values[1].at(0), 2);
  EXPECT_THAT([] { K::set_learning_phase(2); },
              ThrowsMessage<Error>("learning phase is 2 but must be 0 or 1"));
  K::clear_session();
  EXPECT_FALSE(K::fixed_learning_phase());
}

TEST_F(LearningPhase, IsKnownOfEverythingThatDependsOnIt) {
  K::Tensor y = K::in_train_phase(x * 2.0, x);
  EXPECT_TRUE(K::uses_learning_phase(y));
  EXPECT_TRUE(K::uses_learning_phase(K::sum(y + 1.0)));
  EXPECT_FALSE(K::uses_learning_phase(x + 1.0));
  EXPECT_FALSE(K::uses_learning_phase(1.0));
  auto timesY = [&](const K::Tensor &element) { return element * K::sum(y); };
  EXPECT_TRUE(K::uses_learning_phase(K::map_fn(timesY, x)));
  auto sine = [](const K::Tensor &element) { return K::sin(element); };
  EXPECT_TRUE(K::uses_learning_phase(K::map_fn(sine, y)));
  EXPECT_FALSE(K::uses_learning_phase(K::map_fn(sine, x)));
}

TEST_F(LearningPhase, DropsTheBranchThatIsNotTaken) {
  K::Tensor target = K::placeholder({2}, DType::Float32, "target");
  K::Tensor y = K::in_train_phase(x + target, x);
  EXPECT_EQ(K::function({x}, {y})({floats({2}, {1, 2})})[0].at(1), 2);
  K::Function f = K::function({x, K::learning_phase()}, {y});
  EXPECT_EQ(f({floats({2}, {1, 2}), Array::full({}, 0)})[0].at(1), 2);
  EXPECT_THAT([&] { f({floats({2}, {1, 2}), Array::full({}, 1)}); },
              ThrowsMessage<Error>(HasSubstr("placeholder 'target'")));
}

TEST_F(LearningPhase, UpdatesInTheBranchThatIsTaken) {
  K::Tensor count = K::variable(Array::full({}, 0));
  K::Tensor y = K::in_train_phase(K::update_add(count, 1.0), K::constant(0));
  K::Function f = K::function({K::learning_phase()}, {y});
  f({Array::full({}, 0)});
  EXPECT_EQ(K::get_value(count).at(0), 0);
  f({Array::full({}, 1)});
  EXPECT_EQ(K::get_value(count).at(0), 1);
}

TEST_F(LearningPhase, TakesBranchesOfDifferentShapes) {
  K::Tensor y = K::in_train_phase(K::constant(floats({2, 2}, {1, 2, 3, 4})),
                                  K::constant(floats({1, 2}, {5, 6})));
  EXPECT_EQ(K::int_shape(y), K::Shape({None, 2}));
  K::Function f = K::function({K::learning_phase()}, {y * 2.0});
  EXPECT_THAT(valuesOf(f({Array::full({}, 0)})[0]), ElementsAre(10, 12));
  EXPECT_THAT(valuesOf(f({Array::full({}, 1)})[0]), ElementsAre(2, 4, 6, 8));
}

TEST_F(LearningPhase, CallsOnlyTheBranchThatANumberChooses) {
  int calls = 0;
  auto counted = [&] {
    ++calls;
    return x * 2.0;
  };
  auto never = []() -> K::Tensor { throw Error("not to be called"); };
  for (const K::Tensor &yes : {K::Tensor(1), K::Tensor(true), K::Tensor(1.0)})
    K::in_train_phase(counted, never, yes);
  for (const K::Tensor &no : {K::Tensor(0), K::Tensor(false)})
    K::in_test_phase(counted, never, no);
  EXPECT_EQ(calls, 5);
}

TEST_F(LearningPhase, CallsBothBranchesOnceWhereItIsOpen) {
  int xCalls = 0, altCalls = 0;
  K::in_train_phase([&] { return ++xCalls, x; }, [&] { return ++altCalls, x; });
  EXPECT_EQ(xCalls, 1);
  EXPECT_EQ(altCalls, 1);
}

TEST_F(LearningPhase, MayBeAnotherTensor) {
  K::Tensor flag = K::placeholder({}, DType::Bool);
  K::Function f =
      K::function({x, flag}, {K::in_train_phase(x * 2.0, x * 3.0, flag)});
  Array one = floats({2}, {1, 1});
  EXPECT_EQ(f({one, Array::full({}, 1, DType::Bool)})[0].at(0), 2);
  EXPECT_EQ(f({one, Array::full({}, 0, DType::Bool)})[0].at(0), 3);
}

TEST_F(LearningPhase, IsRefusedWhenItIsNoNumber) {
  K::Function f = K::function({K::learning_phase()}, {K::constant(1)});
  EXPECT_THAT([&] { f({floats({2}, {0, 1})}); },
              ThrowsMessage<Error>("input 'learning_phase' has shape (2,) but "
                                   "must be one number"));
}

//===----------------------------------------------------------------------===//
// switch
//===----------------------------------------------------------------------===//

TEST(Switch, ChoosesBetweenShapesByAnInput) {
  K::Tensor c = K::placeholder({});
  K::Tensor y =
      K::switch_(K::greater(c, 0.0), K::constant(floats({3}, {1, 2, 3})),
                 K::constant(floats({1}, {4})));
  EXPECT_EQ(K::int_shape(y), K::Shape({None}));
  K::Function f = K::function({c}, {y, K::sum(y), K::shape(y)});
  for (int round = 0; round < 2; ++round) {
    std::vector<Array> big = f({Array::full({}, 1)});
    EXPECT_THAT(valuesOf(big[0]), ElementsAre(1, 2, 3));
    EXPECT_THAT(valuesOf(big[1]), ElementsAre(6));
    std::vector<Array> small = f({Array::full({}, -1)});
    EXPECT_THAT(valuesOf(small[0]), ElementsAre(4));
    EXPECT_THAT(valuesOf(small[2]), ElementsAre(1));
  }
}

TEST(Switch, ChoosesByWhatWasChosen) {
  K::Tensor c = K::placeholder({});
  K::Tensor first =
      K::switch_(K::greater(c, 0.0), K::constant(floats({3}, {1, 2, 3})),
                 K::constant(floats({1}, {4})));
  K::Tensor second = K::switch_(K::greater(K::sum(first), 5.0), first * 10.0,
                                K::constant(floats({2}, {7, 8})));
  K::Function f = K::function({c}, {second});
  EXPECT_THAT(valuesOf(f({Array::full({}, 1)})[0]), ElementsAre(10, 20, 30));
  EXPECT_THAT(valuesOf(f({Array::full({}, -1)})[0]), ElementsAre(7, 8));
}

TEST(Switch, ChoosesByAVariableBeforeItsUpdate) {
  K::Tensor v = K::variable(Array::full({}, 0));
  K::Tensor y = K::switch_(K::less(v, 2.0), K::constant(floats({2}, {1, 2})),
                           K::constant(floats({1}, {3})));
  K::Function f = K::function({}, {y}, {K::update_add(v, 1.0)});
  EXPECT_EQ(f({})[0].size(), 2);
  EXPECT_EQ(f({})[0].size(), 2);
  EXPECT_EQ(f({})[0].size(), 1);
  EXPECT_EQ(K::get_value(v).at(0), 3);
}

TEST(Switch, UpdatesWhatIsChosen) {
  K::Tensor v = K::variable(floats({2}, {0, 0})), c = K::placeholder({});
  K::Tensor y = K::switch_(
      K::greater(c, 0.0), [&] { return K::update_add(v, 1.0); },
      [&] { return K::constant(floats({1}, {3})); });
  K::Function f = K::function({c}, {y});
  f({Array::full({}, -1)});
  EXPECT_THAT(valuesOf(K::get_value(v)), ElementsAre(0, 0));
  f({Array::full({}, 1)});
  EXPECT_THAT(valuesOf(K::get_value(v)), ElementsAre(1, 1));
}

TEST(Switch, UpdatesWhatIsChosenWithoutOutputs) {
  K::Tensor v = K::variable(floats({2}, {0, 0})), c = K::placeholder({});
  K::Tensor y = K::switch_(
      K::greater(c, 0.0), [&] { return K::update_add(v, 1.0); },
      [&] { return K::constant(floats({1}, {3})); });
  K::Function f = K::function({c}, {}, {y});
  f({Array::full({}, 1)});
  EXPECT_THAT(valuesOf(K::get_value(v)), ElementsAre(1, 1));
  f({Array::full({}, -1)});
  EXPECT_THAT(valuesOf(K::get_value(v)), ElementsAre(1, 1));
}

TEST(Switch, SeesTheLearningPhaseInItsBranches) {
  K::Tensor c = K::placeholder({}), x = K::constant(floats({2}, {1, 2}));
  K::Tensor y =
      K::switch_(K::greater(c, 0.0), K::in_train_phase(x * 10.0, x * 20.0),
                 K::constant(floats({1}, {3})));
  K::Function f = K::function({c, K::learning_phase()}, {y});
  Array yes = Array::full({}, 1), no = Array::full({}, 0);
  EXPECT_THAT(valuesOf(f({yes, yes})[0]), ElementsAre(10, 20));
  EXPECT_THAT(valuesOf(f({yes, no})[0]), ElementsAre(20, 40));
  EXPECT_THAT(valuesOf(f({no, no})[0]), ElementsAre(3));
}

TEST(Switch, HasNoCodeBeforeItsConditionIsKnown) {
  K::Tensor c = K::placeholder({});
  K::Function f =
      K::function({c}, {K::switch_(c, K::constant(floats({3}, {1, 2, 3})),
                                   K::constant(floats({1}, {4})))});
  EXPECT_THAT([&] { f.compiled({{}}); },
              ThrowsMessage<Error>(HasSubstr("chooses between shapes")));
  EXPECT_THAT(valuesOf(f({Array::full({}, 0)})[0]), ElementsAre(4));
}

TEST(Switch, OfEqualShapesIsOneFunction) {
  K::Tensor c = K::placeholder({}), x = K::placeholder({None});
  K::Function f = K::function({c, x}, {K::switch_(c, x * 2.0, x * 3.0)});
  EXPECT_THAT(valuesOf(f({Array::full({}, 1), floats({2}, {1, 2})})[0]),
              ElementsAre(2, 4));
  EXPECT_THAT(valuesOf(f({Array::full({}, 0), floats({2}, {1, 2})})[0]),
              ElementsAre(3, 6));
}

TEST(Switch, HasGradients) {
  K::Tensor c = K::placeholder({});
  K::Tensor v = K::variable(floats({2}, {3, 4}));
  K::Tensor same = K::switch_(c, v * v, v * 5.0);
  K::Function f = K::function({c}, K::gradients(same, {v}));
  EXPECT_THAT(valuesOf(f({Array::full({}, 1)})[0]), ElementsAre(6, 8));
  EXPECT_THAT(valuesOf(f({Array::full({}, 0)})[0]), ElementsAre(5, 5));

  K::Tensor other = K::switch_(c, v * v, K::sum(v, 0, /*keepdims=*/true));
  K::Function g = K::function({c}, K::gradients(other * 2.0, {v}));
  EXPECT_THAT(valuesOf(g({Array::full({}, 1)})[0]), ElementsAre(12, 16));
  EXPECT_THAT(valuesOf(g({Array::full({}, 0)})[0]), ElementsAre(2, 2));
}

TEST(Switch, TakesNumbersAndRowsOfConditions) {
  K::Tensor x = K::constant(floats({2, 2}, {1, 2, 3, 4}));
  EXPECT_THAT(valuesOf(K::eval(K::switch_(K::constant(0), x, 7.0))),
              ElementsAre(7, 7, 7, 7));
  K::Tensor rows = K::constant(Array::of<int32_t>({2}, {0, 2}));
  EXPECT_THAT(valuesOf(K::eval(K::switch_(rows, x, x * 10.0))),
              ElementsAre(10, 20, 3, 4));
}

TEST(Switch, RefusesWhatDoesNotFit) {
  K::Tensor c = K::constant(1);
  K::Tensor x = K::constant(floats({2}, {1, 2}));
  EXPECT_THAT([&] { K::switch_(c, x, K::constant(floats({1, 2}, {1, 2}))); },
              ThrowsMessage<Error>(HasSubstr("(2,) and the other (1, 2)")));
  K::Tensor wide = K::constant(Array::full({2, 2}, 1));
  EXPECT_THAT([&] { K::switch_(wide, x, x); },
              ThrowsMessage<Error>(HasSubstr("condition has shape (2, 2)")));
}

TEST(Switch, IsSavedWhereItsConditionIsKnown) {
  K::Tensor x = K::placeholder({None}), c = K::constant(1);
  K::Tensor y = K::switch_(K::greater(c, 0.0), K::concatenate({x, x}, 0), x);
  K::Function f = K::function({x}, {y});
  EXPECT_THAT(f.lower("core"), testing::Not(HasSubstr("ktn.choose")));
  K::Tensor open = K::placeholder({});
  K::Function g =
      K::function({x, open}, {K::switch_(open, K::concatenate({x, x}, 0),
                                         K::constant(floats({1}, {3})))});
  EXPECT_THAT([&] { g.lower("core", {.inputShapes = {{4}, {}}}); },
              ThrowsMessage<Error>(HasSubstr("one choice has shape (8,)")));
}

} // namespace
