//===- IrText.cpp - IR text that the parser would not survive -------------===//
#include "IrText.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <unordered_map>

namespace keratin {

namespace {

constexpr unsigned maxDepth = 256;
constexpr std::streamoff maxBytes = std::streamoff(64) << 30;
constexpr unsigned maxRank = 64;
/// Bytes between the brackets of an affine map, whose parser recurses by term.
constexpr size_t maxAffineLength = 1 << 14;
/// Attributes and types that an alias stands for when it is written out.
constexpr uint64_t maxAliasSize = 1 << 20;

/// What an alias stands for.
struct Alias {
  unsigned depth = 0;
  uint64_t size = 1;
};

/// Goes through the text once, token by token as far as it needs.
class Scanner {
public:
  explicit Scanner(std::string_view text) : text(text) {}

  std::string scan();

private:
  void step();
  void skipString();
  void skipComment();
  void open();
  void close();
  void readNumber();
  void readWord();
  void readAlias(char kind);
  void endAlias();

  bool isAt(std::string_view word) const {
    return text.substr(at).starts_with(word);
  }
  static bool isWordPart(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' ||
           c == '$' || c == '.';
  }
  std::string_view takeWord() {
    size_t begin = at;
    while (at < text.size() && isWordPart(text[at]))
      ++at;
    return text.substr(begin, at - begin);
  }
  void fail(const std::string &what) {
    if (problem.empty())
      problem = what;
  }
  std::string place() const;

  std::string_view text;
  size_t at = 0;
  std::string problem;
  unsigned depth = 0;
  /// Where the outermost bracket of an affine map was opened, at which depth.
  size_t affineBegin = 0;
  unsigned affineDepth = 0;
  bool isAffine = false;
  std::unordered_map<std::string, Alias> aliases;
  std::string defined; // the alias whose value comes now
  Alias value;
};

} // namespace

std::string Scanner::place() const {
  std::string_view before = text.substr(0, std::min(at, text.size()));
  auto line = 1 + std::count(before.begin(), before.end(), '\n');
  size_t start = before.rfind('\n');
  size_t column =
      start == before.npos ? before.size() + 1 : before.size() - start;
  return std::to_string(line) + ":" + std::to_string(column) + ": ";
}

std::string Scanner::scan() {
  while (at < text.size() && problem.empty())
    step();
  return problem.empty() ? "" : place() + problem;
}

void Scanner::step() {
  char c = text[at];
  if (isAffine && at - affineBegin > maxAffineLength)
    fail("an affine map has more than " + std::to_string(maxAffineLength) +
         " characters");
  if (c == '\n' && depth == 0)
    endAlias();
  if (c == '"')
    skipString();
  else if (isAt("//"))
    skipComment();
  else if (isAt("->") || isAt(">=") || isAt("<=") || isAt("=="))
    at += 2;
  else if (c == '(' || c == '[' || c == '{' || c == '<')
    open();
  else if (c == ')' || c == ']' || c == '}' || c == '>')
    close();
  else if (c == '#' || c == '!')
    readAlias(c);
  else if (std::isdigit(static_cast<unsigned char>(c)) || c == '?')
    readNumber();
  else if (isWordPart(c))
    readWord();
  else
    ++at;
}

void Scanner::skipString() {
  for (++at; at < text.size() && text[at] != '"' && text[at] != '\n'; ++at)
    if (text[at] == '\\')
      ++at;
  ++at;
}

void Scanner::skipComment() { at = std::min(text.find('\n', at), text.size()); }

void Scanner::open() {
  ++at;
  if (++depth > maxDepth)
    fail("brackets are nested more than " + std::to_string(maxDepth) + " deep");
  value.depth = std::max(value.depth, depth);
}

void Scanner::close() {
  ++at;
  depth -= depth > 0;
  isAffine &= depth >= affineDepth;
}

/// A number, or extents of a shape.
void Scanner::readNumber() {
  unsigned extents = 0;
  for (; at < text.size(); ++at) {
    char c = text[at];
    extents += c == 'x';
    if (!std::isdigit(static_cast<unsigned char>(c)) && c != '?' && c != 'x')
      break;
  }
  if (extents > maxRank)
    fail("a shape has more than " + std::to_string(maxRank) + " axes");
}

void Scanner::readWord() {
  std::string_view word = takeWord();
  size_t next = std::min(text.find_first_not_of(" \t\n", at), text.size());
  if (next == text.size() || text[next] != '<')
    return;
  if (word == "affine_map" || word == "affine_set") {
    at = affineBegin = next;
    affineDepth = depth + 1;
    isAffine = true;
  }
  if (word != "array")
    return;
  // The parser asks the type for its width, which an index has not.
  at = std::min(text.find_first_not_of(" \t\n", next + 1), text.size());
  if (takeWord() == "index")
    fail("an array cannot have elements of type index");
  at = next;
}

/// `#name = …` at the start of a line defines one, any other is a use.
void Scanner::readAlias(char kind) {
  bool startsLine = at == 0 || text[at - 1] == '\n';
  ++at;
  std::string name = kind + std::string(takeWord());
  size_t next = std::min(text.find_first_not_of(" \t", at), text.size());
  if (startsLine && next < text.size() && text[next] == '=') {
    endAlias();
    defined = name;
    depth = 0;
    at = next + 1;
    return;
  }
  auto found = aliases.find(name);
  if (found == aliases.end())
    return;
  unsigned total = depth + found->second.depth;
  if (total > maxDepth)
    fail("'" + name + "' makes brackets nested more than " +
         std::to_string(maxDepth) + " deep");
  if (defined.empty())
    return;
  value.depth = std::max(value.depth, total);
  value.size += found->second.size;
  if (value.size > maxAliasSize)
    fail("'" + defined + "' stands for more than " +
         std::to_string(maxAliasSize) + " attributes");
}

void Scanner::endAlias() {
  if (!defined.empty())
    aliases[defined] = value;
  defined.clear();
  value = Alias();
}

std::string findUnparsable(std::string_view text) {
  return Scanner(text).scan();
}

std::string findUnparsableFile(const std::string &path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    return path + ": is a directory, not a file of IR";
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  std::streamoff size = file.tellg();
  if (size <= 0) // a pipe can be read only once
    return "";
  if (size > maxBytes)
    return path + ": has more than the limit of " +
           std::to_string(maxBytes >> 30) + " GiB";
  std::string text(static_cast<size_t>(size), '\0');
  file.seekg(0);
  if (!file.read(text.data(), size) || text.starts_with("ML\xefR"))
    return "";
  std::string problem = findUnparsable(text);
  return problem.empty() ? "" : path + ":" + problem;
}

} // namespace keratin
