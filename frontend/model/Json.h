//===- Json.h - parsing of untrusted JSON -----------------------*- C++ -*-===//
#ifndef KERATIN_FRONTEND_MODEL_JSON_H
#define KERATIN_FRONTEND_MODEL_JSON_H

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace keratin::model {

using Json = nlohmann::json;

/// Levels of nested lists and objects a document may have. A model nested in a
/// model takes about six.
inline constexpr size_t maxJsonDepth = 256;

/// Parses `text`; `what` names the document in errors. Throws Error, in one
/// line with the place, for a syntax error, for more than maxJsonDepth levels
/// and for the NaN and Infinity that Python writes but JSON does not have.
Json parseJson(std::string_view text, const std::string &what);

/// A value in few characters, for messages.
std::string describeJson(const Json &value);

} // namespace keratin::model

#endif // KERATIN_FRONTEND_MODEL_JSON_H
