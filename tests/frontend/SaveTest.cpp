//===- SaveTest.cpp - functions that become one artefact ------------------===//
#include "keratin/backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace K = keratin::backend;
namespace fs = std::filesystem;
using keratin::Array;
using keratin::DType;
using keratin::Error;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

namespace {

/// A model that counts its steps, and a directory to save it in.
class SavedTogether : public testing::Test {
protected:
  void SetUp() override {
    std::string model = fs::path(testing::TempDir()) / "keratin-save-XXXXXX";
    directory = mkdtemp(model.data());
    K::Tensor w = K::variable(Array::of<float>({2}, {3, 4}), "w");
    K::Tensor scale = K::variable(Array::of<float>({2}, {1, 2}), "scale");
    x = K::placeholder({K::None, 2}, DType::Float32, "x");
    predict = K::function({x}, {x * w * scale});
    step = K::function({x}, {K::sum(x)}, {K::update_add(w, K::sum(x, {0}))});
  }
  void TearDown() override { fs::remove_all(directory); }

  std::string prefix() { return (directory / "model").string(); }
  std::string read(const std::string &name) {
    std::ifstream file(directory / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  auto saving(std::vector<K::SavedFunction> functions,
              K::SaveOptions options = {}) {
    return
        [this, functions, options] { K::save(prefix(), functions, options); };
  }

  K::GraphScope scope;
  fs::path directory;
  K::Tensor x;
  K::Function predict, step;
};

TEST_F(SavedTogether, ShareTheirState) {
  K::save(prefix(), {{"predict", predict}, {"step", step}});
  EXPECT_TRUE(fs::exists(directory / "model.o"));
  std::string header = read("model.h");
  EXPECT_THAT(header, HasSubstr("model_predict(const model_t *model"));
  EXPECT_THAT(header, HasSubstr("model_step(model_t *model"));
  EXPECT_THAT(header, HasSubstr("#define MODEL_STATE_BYTES ((size_t)64)"))
      << "one variable: what no step changes is a constant";
}

TEST_F(SavedTogether, AreAModuleWithVariables) {
  K::save(prefix(), {{"predict", predict}, {"step", step}}, {.emit = "graph"});
  EXPECT_THAT(read("model.mlir"),
              AllOf(HasSubstr("ktn.variable @w"), HasSubstr("@predict("),
                    HasSubstr("@step("), HasSubstr("ktn.assign @w"),
                    Not(HasSubstr("ktn.variable @scale"))));
}

TEST_F(SavedTogether, KeepThePresentValuesOfOthers) {
  step.save(prefix());
  EXPECT_THAT(read("model.h"), AllOf(HasSubstr("model_step(model_t *model"),
                                     Not(HasSubstr("model_predict("))));
}

TEST_F(SavedTogether, TellWhatIsWrong) {
  EXPECT_THAT(saving({}), ThrowsMessage<Error>(HasSubstr("no function")));
  EXPECT_THAT(saving({{"predict", {}}}),
              ThrowsMessage<Error>(HasSubstr("'predict' is empty")));
  EXPECT_THAT(saving({{"predict", predict}}),
              ThrowsMessage<Error>(HasSubstr("updates nothing")));
  EXPECT_THAT(saving({{"a", predict}, {"a", step}}),
              ThrowsMessage<Error>(HasSubstr("function 1 is called 'a'")));
  EXPECT_THAT(saving({{"1st", predict}, {"step", step}}),
              ThrowsMessage<Error>(HasSubstr("'1st', which is no C")));
  EXPECT_THAT(saving({{"init", predict}, {"step", step}}),
              ThrowsMessage<Error>(HasSubstr("'init' is one that every")));
  EXPECT_THAT(
      saving({{"predict", predict}, {"step", step}}, {.emit = "linalg"}),
      ThrowsMessage<Error>(HasSubstr("'linalg' is a stage of one")));
  K::SaveOptions shapes;
  shapes.inputShapes = {{4, 2}};
  EXPECT_THAT(saving({{"predict", predict}, {"step", step}}, shapes),
              ThrowsMessage<Error>(HasSubstr("which of the 2 functions")));
  K::GraphScope other;
  K::Tensor v = K::variable(Array::of<float>({}, {1}));
  K::Function elsewhere = K::function({}, {}, {K::update_add(v, 1.0)});
  EXPECT_THAT(saving({{"predict", predict}, {"step", elsewhere}}),
              ThrowsMessage<Error>(HasSubstr("another graph")));
  EXPECT_FALSE(fs::exists(directory / "model.o"));
}

} // namespace
