//===- Json.cpp - parsing of untrusted JSON -------------------------------===//
#include "Json.h"

#include "keratin/array.h"

#include <algorithm>
#include <vector>

using namespace keratin;
using namespace keratin::model;

namespace {

/// Walks a document without building it: checks the depth and knows at each
/// point which key it is at, which nlohmann's parser does not tell.
class Inspector : public nlohmann::json_sax<Json> {
public:
  Inspector(std::string_view text, const std::string &what)
      : text(text), what(what) {}

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t) override { return value(); }
  bool number_unsigned(number_unsigned_t) override { return value(); }
  bool number_float(number_float_t, const string_t &) override {
    return value();
  }
  bool string(string_t &) override { return value(); }
  bool binary(binary_t &) override { return value(); }

  bool start_object(size_t) override { return enter(/*isArray=*/false); }
  bool start_array(size_t) override { return enter(/*isArray=*/true); }
  bool key(string_t &name) override {
    levels.back().key = name;
    return true;
  }
  bool end_object() override { return leave(); }
  bool end_array() override { return leave(); }
  bool parse_error(size_t position, const std::string &lastToken,
                   const nlohmann::detail::exception &) override;

private:
  struct Level {
    bool isArray;
    size_t index = 0;
    std::string key;
  };

  bool value() {
    if (!levels.empty())
      ++levels.back().index;
    return true;
  }
  bool enter(bool isArray) {
    if (levels.size() == maxJsonDepth)
      throw Error(what + " is nested more than " +
                  std::to_string(maxJsonDepth) + " levels deep at " +
                  place().substr(0, 60) +
                  "…: no model that Keras saves is, save it again");
    levels.push_back({isArray, 0, {}});
    return true;
  }
  bool leave() {
    levels.pop_back();
    return value();
  }
  std::string place() const;

  std::string_view text;
  const std::string &what;
  std::vector<Level> levels;
};

} // namespace

std::string Inspector::place() const {
  std::string path;
  for (const Level &level : levels)
    if (level.isArray)
      path += '[' + std::to_string(level.index) + ']';
    else
      path += (path.empty() ? "" : ".") + level.key;
  return path.empty() ? "its start" : path;
}

bool Inspector::parse_error(size_t position, const std::string &,
                            const nlohmann::detail::exception &error) {
  // `position` is one after the first character that no literal can have.
  std::string_view before = text.substr(0, std::min(position, text.size()));
  for (std::string_view word : {"-Infinity", "Infinity", "NaN"}) {
    size_t begin = before.size() - (word.starts_with('-') ? 2 : 1);
    if (begin < text.size() && text.substr(begin).starts_with(word))
      throw Error(what + " has " + std::string(word) + " at " + place() +
                  ", where a finite number is expected: give the layer a "
                  "finite value and save the model again");
  }
  if (error.id == 406)
    throw Error(what + " has a number beyond the range of double at " +
                place());
  if (text.empty())
    throw Error(what + " is empty: save the model again");
  if (position >= text.size())
    throw Error(what + " ends in the middle of " + place() +
                ": it is truncated, save the model again");
  throw Error(what + " is not JSON: unexpected '" +
              std::string(before.substr(before.size() - 1)) + "' at byte " +
              std::to_string(position) + ", in " + place());
}

Json model::parseJson(std::string_view text, const std::string &what) {
  Inspector inspector(text, what);
  Json::sax_parse(text, &inspector);
  return Json::parse(text);
}

std::string model::describeJson(const Json &value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::replace(text.begin(), text.end(), '\n', ' ');
  if (text.size() > 60)
    text = text.substr(0, 57) + "...";
  return text;
}
