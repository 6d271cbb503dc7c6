//===- HeaderTest.cpp - names in the typed header -------------------------===//
#include "codegen/Header.h"
#include "codegen/Artefact.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace keratin;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(ParameterNames, KeepsIdentifiers) {
  EXPECT_THAT(parameterNames({"image", "dense_2", "a1"}),
              ElementsAre("image", "dense_2", "a1"));
}

TEST(ParameterNames, MakesIdentifiersOfAnything) {
  EXPECT_THAT(parameterNames({"block1/conv:0", "3d", "", "über", "__x"}),
              ElementsAre("block1_conv_0", "x3d", "x", "ber", "x_2"));
}

TEST(ParameterNames, AvoidsKeywordsMacrosTypesAndOwnWords) {
  EXPECT_THAT(
      parameterNames({"int", "class", "linux", "NULL", "uint8_t", "model"}),
      ElementsAre("int_2", "class_2", "linux_2", "null", "uint8_t_",
                  "model_2"));
}

TEST(ParameterNames, TellsEqualOnesApart) {
  EXPECT_THAT(parameterNames({"x", "x", "x_2", "x"}),
              ElementsAre("x", "x_2", "x_2_2", "x_3"));
}

static ModelSignature signature(int64_t batch) {
  Signature function;
  function.function = "f";
  function.inputs.push_back({"x", KTN_F32, {-1, 4}});
  function.outputs.push_back({"y */", KTN_BOOL, {-1}});
  function.arenaBytes[0] = 64;
  function.arenaBytes[1] = 128;
  function.batch = batch;
  ModelSignature model;
  model.weightsBytes = 256;
  model.functions.push_back(function);
  return model;
}

/// With a step that reads and writes a variable of two numbers.
static ModelSignature trained() {
  ModelSignature model = signature(-1);
  Signature step = model.functions[0];
  step.entry = "step";
  step.inputs.push_back({"w", KTN_F32, {2}});
  step.outputs.push_back({"w_next", KTN_F32, {2}});
  step.inputState = {-1, 0};
  step.outputState = {-1, 0};
  step.updateBytes = 64;
  model.functions.push_back(step);
  model.state.push_back({{"w", KTN_F32, {2}}, 0});
  model.stateBytes = 64;
  return model;
}

TEST(Header, SaysShapesTypesAndSizes) {
  std::string header = makeHeader(signature(-1), {"digits", "a target", false});
  EXPECT_THAT(header, HasSubstr("x: input [batch][4], float32"));
  EXPECT_THAT(header, HasSubstr("y___: output [batch], bool, each 0 or 1"));
  EXPECT_THAT(header, HasSubstr("const float *x"));
  EXPECT_THAT(header, HasSubstr("uint8_t *y___"));
  EXPECT_THAT(header, HasSubstr("#define DIGITS_ARENA_BYTES(batch)"));
  EXPECT_THAT(header, HasSubstr("(size_t)64 + (size_t)128 * (size_t)(batch)"));
  EXPECT_THAT(header, Not(HasSubstr("DIGITS_WEIGHTS_BYTES")));
  EXPECT_THAT(header, Not(HasSubstr("y */\"")));
}

TEST(Header, AsksForWeightsThatAreExternal) {
  std::string header = makeHeader(signature(-1), {"digits", "a target", true});
  EXPECT_THAT(header, HasSubstr("#define DIGITS_WEIGHTS_BYTES ((size_t)256)"));
  EXPECT_THAT(header, HasSubstr("const void *weights, size_t weights_bytes,"));
}

TEST(Header, NamesThePinnedBatch) {
  std::string header = makeHeader(signature(8), {"digits", "a target", false});
  EXPECT_THAT(header, HasSubstr("#define DIGITS_BATCH 8"));
}

TEST(Header, KeepsStateOutOfTheParameters) {
  std::string header = makeHeader(trained(), {"digits", "a target", false});
  EXPECT_THAT(header, HasSubstr("digits_predict(const digits_t *model"));
  EXPECT_THAT(header, HasSubstr("digits_step(digits_t *model"));
  EXPECT_THAT(header, HasSubstr("  w: [2], float32"));
  EXPECT_THAT(header, Not(HasSubstr("w_next")));
  EXPECT_THAT(header, HasSubstr("#define DIGITS_STATE_BYTES ((size_t)64)"));
  EXPECT_THAT(header,
              HasSubstr("#define DIGITS_STATE_EXPORT_BYTES ((size_t)128)"));
  EXPECT_THAT(header, HasSubstr("(size_t)128 + (size_t)128 * (size_t)(batch)"))
      << "the new values wait behind the arena";
}

TEST(Header, NamesThePinnedBatchOfEachFunction) {
  ModelSignature model = trained();
  model.functions[1].batch = 32;
  std::string header = makeHeader(model, {"digits", "a target", false});
  EXPECT_THAT(header, HasSubstr("#define DIGITS_STEP_BATCH 32"));
  EXPECT_THAT(header, Not(HasSubstr("#define DIGITS_BATCH")));
}

TEST(ModelName, IsAnIdentifierThatIsNotReserved) {
  auto refused = [](llvm::StringRef name) {
    return llvm::errorToBool(checkModelName(name));
  };
  EXPECT_FALSE(refused("digits"));
  EXPECT_FALSE(refused("v2_final"));
  for (llvm::StringRef name :
       {"", "3d", "a-b", "a.b", "ktn_hash", "keratin", "_x", "naïve"})
    EXPECT_TRUE(refused(name)) << name.str();
}
