//===- ModelTest.cpp - model files as graphs ------------------------------===//
#include "keratin/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>

using namespace keratin;
namespace K = keratin::backend;
using testing::ElementsAre;
using testing::HasSubstr;
using Json = nlohmann::json;

namespace {

std::string sample(const std::string &name) {
  return (std::filesystem::path(__FILE__).parent_path().parent_path() /
          "models" / name)
      .string();
}

/// A model without weights, unpacked, of a configuration.
class ModelFile : public testing::Test {
protected:
  ModelFile()
      : path(std::filesystem::path(testing::TempDir()) / "ModelFileTest") {
    std::filesystem::remove_all(path);
    std::filesystem::create_directories(path);
    hid_t file = H5Fcreate((path / "model.weights.h5").c_str(), H5F_ACC_TRUNC,
                           H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(file);
  }
  ~ModelFile() override { std::filesystem::remove_all(path); }

  Model load(const Json &config, const std::string &kerasVersion = "3.15.1") {
    std::ofstream(path / "config.json") << config.dump();
    std::ofstream(path / "metadata.json")
        << Json{{"keras_version", kerasVersion}}.dump();
    return loadModel(path);
  }

  std::filesystem::path path;
};

Json layer(const std::string &className, const std::string &name, Json config,
           Json inboundNodes = Json::array()) {
  config["name"] = name;
  return {{"module", "keras.layers"},
          {"class_name", className},
          {"config", std::move(config)},
          {"name", name},
          {"inbound_nodes", std::move(inboundNodes)}};
}

Json input(const std::string &name, Json shape) {
  return layer("InputLayer", name,
               {{"batch_shape", std::move(shape)}, {"dtype", "float32"}});
}

Json functional(const std::string &name, Json layers, Json inputs,
                Json outputs) {
  return {{"module", "keras.src.models.functional"},
          {"class_name", "Functional"},
          {"config",
           {{"name", name},
            {"layers", std::move(layers)},
            {"input_layers", std::move(inputs)},
            {"output_layers", std::move(outputs)}}}};
}

Json tensor(const std::string &name, int call = 0, int output = 0) {
  return {{"class_name", "__keras_tensor__"},
          {"config",
           {{"shape", {nullptr, 2}},
            {"dtype", "float32"},
            {"keras_history", {name, call, output}}}}};
}

Json call(Json argument) {
  return {{"args", {std::move(argument)}}, {"kwargs", Json::object()}};
}

/// A call in Keras 2, of one tensor.
Json reads(const char *name, int call = 0, Json kwargs = Json::object()) {
  return Json::array({Json::array({name, call, 0, std::move(kwargs)})});
}

/// A model of one input that doubles it.
Json doubler(const std::string &version) {
  Json node = version[0] == '2' ? reads("x") : call(tensor("x"));
  return functional("doubler",
                    {input("x", {nullptr, 2}),
                     layer("Rescaling", "double", {{"scale", 2.0}}, {node})},
                    {"x", 0, 0}, {"double", 0, 0});
}

Json asLayer(Json model, Json inboundNodes) {
  model["name"] = model["config"]["name"];
  model["inbound_nodes"] = std::move(inboundNodes);
  return model;
}

std::vector<double> run(const Model &model, const std::vector<Array> &inputs,
                        size_t output = 0) {
  Array result = K::function(model.inputs, model.outputs)(inputs)[output];
  std::vector<double> values;
  for (int64_t i = 0; i < result.size(); ++i)
    values.push_back(result.at(i));
  return values;
}

Array row(float a, float b) { return Array::of<float>({1, 2}, {a, b}); }

std::vector<std::string> problems(const std::string &path,
                                  const ModelOptions &options = {}) {
  try {
    loadModel(path, options);
  } catch (const ModelError &error) {
    return error.problems();
  }
  return {};
}

} // namespace

//===----------------------------------------------------------------------===//
// Sample models
//===----------------------------------------------------------------------===//

TEST(Model, NamesInputsAndOutputsAsTheFileDoes) {
  Model model = loadModel(sample("siamese_shared.keras"));
  EXPECT_EQ(model.name, "functional_1");
  EXPECT_THAT(model.inputNames, ElementsAre("a", "b", "c"));
  EXPECT_THAT(model.outputNames, ElementsAre("score", "difference"));
  EXPECT_THAT(K::int_shape(model.inputs[2]), ElementsAre(K::None, 4));
  EXPECT_THAT(K::int_shape(model.outputs[0]), ElementsAre(K::None, 2));
  EXPECT_TRUE(K::is_keras_tensor(model.inputs[1]));
  EXPECT_TRUE(K::is_keras_tensor(model.outputs[0]));
  EXPECT_FALSE(K::is_keras_tensor(model.outputs[0] * 2.0));
}

TEST(Model, NumbersTheOutputsOfOneLayer) {
  Model model = loadModel(sample("rnn_masked.keras"));
  EXPECT_THAT(model.outputNames, ElementsAre("lstm_1", "lstm_1_1", "lstm_1_2"));
}

TEST(Model, SaysWhatAModelTakesWithoutBuildingIt) {
  std::vector<K::TensorInfo> inputs =
      readModelInputs(sample("transformer_block.keras"));
  ASSERT_EQ(inputs.size(), 2u);
  EXPECT_EQ(inputs[0].name, "query_tokens");
  EXPECT_EQ(inputs[0].dtype, DType::Int32);
  EXPECT_THAT(inputs[1].shape, ElementsAre(K::None, 7, 16));
}

TEST(Model, TakesExtentsThatTheFileLeavesOpen) {
  ModelOptions options;
  options.inputShapes["series"] = {2, 23, 5};
  Model model = loadModel(sample("tcn_dynamic_time.keras"), options);
  EXPECT_THAT(K::int_shape(model.inputs[0]), ElementsAre(K::None, 23, 5));
  EXPECT_THAT(K::int_shape(model.outputs[0]), ElementsAre(K::None, 12, 3));
}

TEST(Model, RefusesShapesThatTheFileDoesNotAllow) {
  std::string path = sample("tcn_dynamic_time.keras");
  EXPECT_THAT(problems(path, {{{"series", {2, 23, 6}}}}),
              ElementsAre(HasSubstr("takes (None, None, 5), but the shape "
                                    "(2, 23, 6) is given")));
  EXPECT_THAT(problems(path, {{{"series", {2, 23}}}}),
              ElementsAre(HasSubstr("the shape (2, 23) is given")));
  EXPECT_THAT(
      problems(path, {{{"series", {2, 23, 5}}, {"audio", {1}}}}),
      ElementsAre(HasSubstr("no input 'audio', for which the shape (1,) is "
                            "given; it has 'series'")));
}

TEST(Model, RefusesACustomClassByPathAndWithAWayOut) {
  EXPECT_THAT(problems(sample("nested_shared.keras")),
              ElementsAre(testing::AllOf(
                  testing::StartsWith("nested_shared.keras: layer 'scale' "),
                  HasSubstr("custom class 'demo>Scale'"),
                  HasSubstr("build it from Keras layers"))));
}

TEST(Model, RefusesAFileThatIsNotThere) {
  EXPECT_THAT(problems("no/such/model.keras"),
              ElementsAre(HasSubstr("cannot be opened")));
}

//===----------------------------------------------------------------------===//
// Calls of models
//===----------------------------------------------------------------------===//

TEST_F(ModelFile, CountsTheCallsOfANestedModelFromZeroInArguments) {
  Model model = load(
      functional("outer",
                 {input("a", {nullptr, 2}), input("b", {nullptr, 2}),
                  asLayer(doubler("3"), {call(tensor("a")), call(tensor("b"))}),
                  layer("Identity", "second", Json::object(),
                        {call(tensor("doubler", 1))})},
                 {{"a", 0, 0}, {"b", 0, 0}}, {"second", 0, 0}));
  EXPECT_THAT(run(model, {row(1, 2), row(3, 4)}), ElementsAre(6, 8));
}

TEST_F(ModelFile, CountsThemFromOneInTheOutputsOfAModel) {
  Model model = load(functional(
      "outer",
      {input("a", {nullptr, 2}), input("b", {nullptr, 2}),
       asLayer(doubler("3"), {call(tensor("a")), call(tensor("b"))})},
      {{"a", 0, 0}, {"b", 0, 0}}, {{"doubler", 2, 0}, {"doubler", 1, 0}}));
  EXPECT_THAT(run(model, {row(1, 2), row(3, 4)}, 0), ElementsAre(6, 8));
  EXPECT_THAT(run(model, {row(1, 2), row(3, 4)}, 1), ElementsAre(2, 4));
  EXPECT_THAT(model.outputNames, ElementsAre("doubler", "doubler_1"));
}

TEST_F(ModelFile, CountsThemFromOneEverywhereInKeras2) {
  Model model =
      load(functional("outer",
                      {input("a", {nullptr, 2}), input("b", {nullptr, 2}),
                       asLayer(doubler("2"), {reads("a", 0), reads("b", 0)}),
                       layer("Activation", "second", {{"activation", "linear"}},
                             {reads("doubler", 2)})},
                      {{"a", 0, 0}, {"b", 0, 0}}, {{"second", 0, 0}}),
           "2.15.0");
  EXPECT_THAT(run(model, {row(1, 2), row(3, 4)}), ElementsAre(6, 8));
}

TEST_F(ModelFile, ReadsTensorsInKeywordArgumentsOfKeras2) {
  Json node = reads("x", 0, {{"mask", {"keep", 0, 0}}});
  Json pooled = layer("GlobalAveragePooling1D", "pool",
                      {{"data_format", "channels_last"}}, {node});
  Json keep = layer("InputLayer", "keep",
                    {{"batch_input_shape", {nullptr, 2}}, {"dtype", "bool"}});
  Model model =
      load(functional("masked", {input("x", {nullptr, 2, 1}), keep, pooled},
                      {{"x", 0, 0}, {"keep", 0, 0}}, {{"pool", 0, 0}}),
           "2.15.0");
  Array x = Array::of<float>({1, 2, 1}, {5, 7});
  Array mask(DType::Bool, {1, 2});
  static_cast<bool *>(mask.mutableData())[1] = true;
  EXPECT_THAT(run(model, {x, mask}), ElementsAre(7));
}

TEST_F(ModelFile, OrdersDictionariesByTheirKeys) {
  Model model = load(functional(
      "dictionaries",
      {input("p", {nullptr, 2}), input("q", {nullptr, 2}),
       layer("Rescaling", "r", {{"scale", 3.0}}, {call(tensor("p"))})},
      {{"z", {"p", 0, 0}}, {"a", {"q", 0, 0}}},
      {{"out", {"r", 0, 0}}, {"also", {"q", 0, 0}}}));
  EXPECT_THAT(model.inputNames, ElementsAre("q", "p"));
  EXPECT_THAT(model.outputNames, ElementsAre("also", "out"));
  EXPECT_THAT(run(model, {row(1, 2), row(3, 4)}, 1), ElementsAre(9, 12));
}

TEST_F(ModelFile, ReadsLayersInAnyOrder) {
  Json layers = {
      layer("Identity", "last", Json::object(), {call(tensor("double"))}),
      layer("Rescaling", "double", {{"scale", 2.0}}, {call(tensor("x"))}),
      input("x", {nullptr, 2})};
  Model model =
      load(functional("backwards", layers, {"x", 0, 0}, {"last", 0, 0}));
  EXPECT_THAT(run(model, {row(1, 2)}), ElementsAre(2, 4));
}

TEST_F(ModelFile, ReadsShardsBesideTheirIndex) {
  std::filesystem::rename(path / "model.weights.h5", path / "x_0.weights.h5");
  std::filesystem::copy(path / "x_0.weights.h5", path / "x_1.weights.h5");
  std::ofstream index(path / "model.weights.json");
  index << Json{{"weight_map",
                 {{"/a/vars", {"x_0.weights.h5"}},
                  {"/b/vars", {"x_0.weights.h5", "x_1.weights.h5"}}}}};
  index.close();
  EXPECT_THAT(run(load(doubler("3")), {row(1, 2)}), ElementsAre(2, 4));
}

TEST_F(ModelFile, RefusesShardsElsewhere) {
  std::ofstream index(path / "model.weights.json");
  index << Json{{"weight_map", {{"/a/vars", {"../model.weights.h5"}}}}};
  index.close();
  try {
    load(doubler("3"));
    FAIL() << "was accepted";
  } catch (const ModelError &error) {
    EXPECT_THAT(error.what(), HasSubstr("the shard '../model.weights.h5'"));
  }
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

TEST_F(ModelFile, CarriesMasksThroughASequentialModel) {
  Json layers = {input("x", {nullptr, 3, 1}),
                 layer("Masking", "masking", {{"mask_value", 0.0}}),
                 layer("Dropout", "dropout", {{"rate", 0.5}}),
                 layer("Rescaling", "rescaling", {{"scale", 10.0}}),
                 layer("GlobalAveragePooling1D", "pool", Json::object())};
  Json config = {{"module", "keras"},
                 {"class_name", "Sequential"},
                 {"config", {{"name", "masked"}, {"layers", layers}}}};
  Array x = Array::of<float>({1, 3, 1}, {2, 4, 0});
  EXPECT_THAT(run(load(config), {x}), ElementsAre(30));
}

TEST_F(ModelFile, MergesMasksAsTheVersionOfKerasDoes) {
  auto masked = [](const char *name, const char *of, double value) {
    return layer("Masking", name, {{"mask_value", value}}, {call(tensor(of))});
  };
  Json sum = layer("Add", "sum", Json::object(),
                   {call(Json{tensor("one"), tensor("two")})});
  Json config = functional("merged",
                           {input("x", {nullptr, 3, 1}), masked("one", "x", 1),
                            masked("two", "x", 2), sum,
                            layer("GlobalAveragePooling1D", "pool",
                                  Json::object(), {call(tensor("sum"))})},
                           {"x", 0, 0}, {"pool", 0, 0});
  Array x = Array::of<float>({1, 3, 1}, {1, 2, 3});
  // The sum is 1, 2, 6; Keras 3 keeps all steps, Keras 2 only the last.
  EXPECT_THAT(run(load(config, "3.0.0"), {x}), ElementsAre(3));
  EXPECT_THAT(run(load(config, "2.15.0"), {x}), ElementsAre(6));
}

//===----------------------------------------------------------------------===//
// Problems
//===----------------------------------------------------------------------===//

TEST_F(ModelFile, ListsProblemsBehindALayerThatFailed) {
  Json layers = {
      input("x", {nullptr, 2}),
      layer("Hologram", "first", Json::object(), {call(tensor("x"))}),
      layer("RepeatVector", "second", {{"n", 0}}, {call(tensor("first"))}),
      layer("Lambda", "third", Json::object(), {call(tensor("second"))})};
  try {
    load(functional("wrong", layers, {"x", 0, 0}, {"third", 0, 0}));
    FAIL() << "was accepted";
  } catch (const ModelError &error) {
    EXPECT_THAT(error.problems(),
                ElementsAre(HasSubstr("'first' (Hologram)"),
                            HasSubstr("'second' (RepeatVector) has 'n': 0"),
                            HasSubstr("'third' (Lambda)")));
    EXPECT_EQ(error.what(), error.problems()[0] + "\n" + error.problems()[1] +
                                "\n" + error.problems()[2]);
  }
}

TEST_F(ModelFile, KeepsAProblemInOneLine) {
  Json config = doubler("3");
  config["config"]["layers"][1]["class_name"] = "Evil\n\x1b[31mLayer";
  try {
    load(config);
    FAIL() << "was accepted";
  } catch (const ModelError &error) {
    ASSERT_EQ(error.problems().size(), 1u);
    EXPECT_THAT(error.problems()[0], HasSubstr("Evil  [31mLayer"));
  }
}

TEST_F(ModelFile, SurvivesWhatIsNotOfTheExpectedType) {
  // Each place of a good configuration, replaced by values of other types.
  Json good = functional("outer",
                         {input("a", {nullptr, 2}),
                          asLayer(doubler("3"), {call(tensor("a"))}),
                          layer("Add", "sum", Json::object(),
                                {call(Json{tensor("a"), tensor("doubler")})})},
                         {"a", 0, 0}, {"sum", 0, 0});
  const Json places = good.flatten();
  for (const auto &[pointer, value] : places.items())
    for (const Json &wrong : {Json(nullptr), Json(-1), Json(1e30), Json("?"),
                              Json::array(), Json::object(), Json(true)}) {
      for (Json::json_pointer at(pointer); !at.empty();
           at = at.parent_pointer()) {
        Json bad = good;
        bad[at] = wrong;
        try {
          load(bad);
        } catch (const ModelError &error) {
          EXPECT_STRNE(error.what(), "");
        }
      }
    }
}
