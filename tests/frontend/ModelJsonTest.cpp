//===- ModelJsonTest.cpp - parsing of untrusted JSON ----------------------===//
#include "frontend/model/Config.h"
#include "frontend/model/Json.h"

#include "keratin/array.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace keratin;
using namespace keratin::model;
using testing::HasSubstr;

/// What parsing says, or an empty string when it says nothing.
static std::string complaint(std::string_view text) {
  try {
    parseJson(text, "'config.json'");
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

TEST(ModelJson, ParsesWhatKerasWrites) {
  Json json = parseJson(R"({"a": [1, -2.5e3, null, true, "\u00e9"]})", "x");
  EXPECT_EQ(json["a"][1], -2500.0);
  EXPECT_EQ(json["a"][4], "é");
}

TEST(ModelJson, AllowsModelsInModels) {
  std::string deep = std::string(200, '[') + std::string(200, ']');
  EXPECT_EQ(complaint(deep), "");
}

TEST(ModelJson, RefusesDeepNestingBeforeBuildingIt) {
  std::string open(1'000'000, '[');
  EXPECT_THAT(complaint(open), HasSubstr("nested more than 256 levels"));
  std::string objects;
  for (int i = 0; i < 1000; ++i)
    objects += R"({"key":)";
  EXPECT_THAT(complaint(objects), HasSubstr("at key.key.key"));
}

TEST(ModelJson, NamesTheKeyOfNumbersThatJsonDoesNotHave) {
  EXPECT_THAT(complaint(R"({"a": {"rate": NaN}})"), HasSubstr("NaN at a.rate"));
  EXPECT_THAT(complaint(R"({"a": [0, Infinity]})"),
              HasSubstr("has Infinity at a[1]"));
  EXPECT_THAT(complaint(R"([{"b": -Infinity}])"),
              HasSubstr("has -Infinity at [0].b"));
  EXPECT_THAT(complaint("NaN"), HasSubstr("NaN at its start"));
}

TEST(ModelJson, NamesTheKeyOfANumberBeyondDouble) {
  EXPECT_THAT(complaint(R"({"a": 1e999})"), HasSubstr("range of double at a"));
  EXPECT_THAT(complaint("1e999"), HasSubstr("range of double at its start"));
}

TEST(ModelJson, SaysWhereTheSyntaxIsWrong) {
  EXPECT_THAT(complaint(R"({"a": [1, 2)"),
              HasSubstr("ends in the middle of a"));
  EXPECT_THAT(complaint(""), HasSubstr("is empty"));
  EXPECT_THAT(complaint(R"({"a": Nope})"), HasSubstr("not JSON"));
  EXPECT_THAT(complaint(R"({"a" 1})"), HasSubstr("byte 6"));
  EXPECT_THAT(complaint("\xff\xfe"), HasSubstr("not JSON"));
}

TEST(ModelJson, DescribesAValueInFewCharacters) {
  EXPECT_EQ(describeJson(Json{1, "two", nullptr}), R"([1,"two",null])");
  EXPECT_LE(describeJson(Json(std::string(1000, 'x'))).size(), 60u);
  EXPECT_EQ(describeJson(Json("line\nbreak")), R"("line\nbreak")");
}

namespace {
/// A configuration that collects what it complains of.
struct Checked {
  explicit Checked(Json json) : json(std::move(json)) {}
  Json json;
  std::vector<std::string> complaints;
  Config config{
      json, [this](const std::string &text) { complaints.push_back(text); }};
};
} // namespace

TEST(ModelConfig, TakesTheFallbackForWhatIsMissingOrNull) {
  Checked checked(Json{{"strides", nullptr}});
  EXPECT_EQ(checked.config.integer("units", 1, 7), 7);
  EXPECT_EQ(checked.config.integers("strides", 2, 1, {{1, 1}}),
            (std::vector<int64_t>{1, 1}));
  EXPECT_TRUE(checked.config.flag("use_bias", true));
  EXPECT_THAT(checked.complaints, testing::IsEmpty());
}

TEST(ModelConfig, LetsOneIntegerStandForAllAxes) {
  Checked checked(Json{{"strides", 3}, {"size", {2.0}}});
  EXPECT_EQ(checked.config.integers("strides", 2, 1),
            (std::vector<int64_t>{3, 3}));
  EXPECT_EQ(checked.config.integers("size", 3, 1),
            (std::vector<int64_t>{2, 2, 2}));
  EXPECT_THAT(checked.complaints, testing::IsEmpty());
}

TEST(ModelConfig, ReportsEachWrongValueAndGoesOn) {
  Checked checked(Json{{"units", -1},
                       {"rate", "much"},
                       {"padding", "some"},
                       {"strides", {1, 2, 3}},
                       {"huge", 1e300}});
  EXPECT_EQ(checked.config.integer("units", 1), 1);
  checked.config.number("rate");
  EXPECT_EQ(checked.config.choice("padding", {"valid", "same"}), "valid");
  EXPECT_EQ(checked.config.integers("strides", 2, 1).size(), 2u);
  checked.config.integer("huge", 1);
  checked.config.integer("missing", 1);
  EXPECT_THAT(checked.complaints,
              testing::ElementsAre(
                  HasSubstr("'units': -1, but an integer of at least 1"),
                  HasSubstr("'rate': \"much\", but a number is expected"),
                  HasSubstr("but 'valid' or 'same' is expected"),
                  HasSubstr("a list of 2 integers of at least 1 is expected"),
                  HasSubstr("'huge': 1e+300, but an integer"),
                  HasSubstr("'missing': null, but an integer")));
}
