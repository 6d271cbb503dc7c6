//===- keratin-opgen.cpp - the op table as C++ functions ------------------===//
//
// Reads what `llvm-tblgen --dump-json` prints of ir/Ops.td and writes the
// functions of the backend API that are one op: those with a `kerasName`.
//
//===----------------------------------------------------------------------===//
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

using nlohmann::json;

namespace {

/// An operand, or an attribute with its C++ type.
struct Argument {
  std::string name;
  std::string attributeType; ///< empty for an operand
  std::string defaultValue;
  std::string attribute = ""; ///< the op's own name
};

struct Op {
  std::string function, mnemonic, summary, description;
  std::vector<Argument> arguments;
};

bool isA(const json &record, std::string_view superclass) {
  const json &all = record.at("!superclasses");
  return std::find(all.begin(), all.end(), superclass) != all.end();
}

/// The C++ type of an attribute by its storage; a type that no function can
/// show in its signature is an error of the op table.
std::string attributeType(const json &record, const std::string &where) {
  static const std::pair<std::string_view, const char *> types[] = {
      {"::mlir::IntegerAttr", "int64_t"},
      {"::mlir::BoolAttr", "bool"},
      {"::mlir::FloatAttr", "double"},
      {"::mlir::DenseI64ArrayAttr", "const std::vector<int64_t> &"}};
  std::string storage = record.at("storageType");
  for (auto [known, type] : types)
    if (storage.find(known) != std::string::npos)
      return type;
  throw std::runtime_error(where + " has storage type " + storage +
                           ", for which there is no C++ type: give the op an "
                           "empty kerasName");
}

Argument readArgument(const json &table, const json &argument,
                      const std::string &op) {
  const json &record = table.at(argument[0].at("def").get<std::string>());
  Argument result{argument[1], "", ""};
  if (isA(record, "Variadic") || isA(record, "Optional"))
    throw std::runtime_error(op + ": operand " + result.name +
                             " is variadic: give the op an empty kerasName");
  if (!isA(record, "Attr"))
    return result;
  result.attributeType = attributeType(record, op + ": " + result.name);
  if (record.at("defaultValue").is_string())
    result.defaultValue = record.at("defaultValue");
  return result;
}

using Renaming = std::map<std::string, std::string>;

/// What the operands and the result are called in the API: Keras' names.
Renaming readRenaming(const json &record, const std::string &op) {
  Renaming renaming;
  const json &names = record.at("kerasArguments");
  const json &arguments = record.at("arguments").at("args");
  if (names.size() > arguments.size())
    throw std::runtime_error(op + ": more kerasArguments than arguments");
  for (size_t i = 0; i < names.size(); ++i)
    renaming[arguments[i][1]] = names[i];
  // A result keeps its name unless an argument has it now.
  std::string result = record.at("results").at("args")[0][1];
  for (const json &name : names)
    if (name == result && !renaming.contains(result))
      renaming[result] = "z";
  return renaming;
}

/// Renames the words of the formulas, which stand between backquotes.
std::string rename(const std::string &text, const Renaming &renaming) {
  std::string result, word;
  bool formula = false;
  auto endWord = [&] {
    auto found = renaming.find(word);
    result += formula && found != renaming.end() ? found->second : word;
    word.clear();
  };
  for (char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') {
      word += c;
      continue;
    }
    endWord();
    result += c;
    formula ^= c == '`';
  }
  endWord();
  return result;
}

/// The description without its example of IR and without indentation.
std::string readDescription(const std::string &text) {
  std::istringstream lines(text.substr(0, text.find("```")));
  std::string result, line;
  while (std::getline(lines, line)) {
    size_t begin = line.find_first_not_of(' ');
    if (begin != std::string::npos)
      result += (result.empty() ? "" : "\n") + line.substr(begin);
  }
  return result;
}

std::vector<Op> readOps(const json &table) {
  std::vector<Op> ops;
  for (const json &key : table.at("!instanceof").at("Ktn_Op")) {
    const json &record = table.at(key.get<std::string>());
    std::string mnemonic = record.at("opName");
    if (record.at("kerasName") == "")
      continue;
    if (record.at("results").at("args").size() != 1)
      throw std::runtime_error(mnemonic + ": a function has one result");
    Renaming renaming = readRenaming(record, mnemonic);
    Op op{record.at("kerasName"),
          mnemonic,
          record.at("summary"),
          rename(readDescription(record.at("description")), renaming),
          {}};
    for (const json &item : record.at("arguments").at("args")) {
      Argument argument = readArgument(table, item, mnemonic);
      argument.attribute = argument.name;
      if (auto found = renaming.find(argument.name); found != renaming.end())
        argument.name = found->second;
      op.arguments.push_back(std::move(argument));
    }
    ops.push_back(std::move(op));
  }
  std::sort(ops.begin(), ops.end(),
            [](const Op &a, const Op &b) { return a.function < b.function; });
  return ops;
}

std::string signature(const Op &op, bool withDefaults) {
  std::string text = "Tensor " + op.function + "(";
  for (const Argument &argument : op.arguments) {
    std::string type = argument.attributeType.empty() ? "const Tensor &"
                                                      : argument.attributeType;
    text += &argument == op.arguments.data() ? "" : ", ";
    text += type + (type.back() == '&' ? "" : " ") + argument.name;
    if (withDefaults && !argument.defaultValue.empty())
      text += " = " + argument.defaultValue;
  }
  return text + ")";
}

void writeComment(std::ostream &out, const std::string &text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    out << "/// " << line << '\n';
}

void writeDeclarations(std::ostream &out, const std::vector<Op> &ops) {
  out << "// Written by keratin-opgen from the op table. Do not edit.\n"
         "#ifndef KERATIN_OPS_H\n#define KERATIN_OPS_H\n\n"
         "#include \"keratin/tensor.h\"\n\n"
         "namespace keratin::backend {\n\n";
  for (const Op &op : ops) {
    std::string title = op.summary + ".";
    title[0] = static_cast<char>(std::toupper(title[0]));
    writeComment(out, title);
    writeComment(out, op.description);
    out << signature(op, /*withDefaults=*/true) << ";\n\n";
  }
  out << "} // namespace keratin::backend\n\n#endif // KERATIN_OPS_H\n";
}

void writeDefinitions(std::ostream &out, const std::vector<Op> &ops) {
  out << "// Written by keratin-opgen from the op table. Do not edit.\n";
  for (const Op &op : ops) {
    std::string operands, attributes;
    for (const Argument &argument : op.arguments) {
      if (argument.attributeType.empty())
        operands += (operands.empty() ? "" : ", ") + argument.name;
      else
        attributes += (attributes.empty() ? "" : ", ") +
                      ("{\"" + argument.attribute) + "\", " + argument.name +
                      "}";
    }
    out << signature(op, /*withDefaults=*/false) << " {\n";
    if (op.function != op.mnemonic)
      out << "  CalledAs function(\"" << op.function << "\");\n";
    out << "  return emit(\"" << op.mnemonic << "\", {" << operands << "}";
    if (!attributes.empty())
      out << ", {" << attributes << "}";
    out << ");\n}\n";
  }
}

/// Writes a file unless it says so already: what includes it is built again
/// only when it changed.
bool update(const std::string &path, const std::string &text) {
  std::ifstream present(path);
  std::ostringstream old;
  old << present.rdbuf();
  if (present && old.str() == text)
    return true;
  std::ofstream file(path);
  file << text;
  return static_cast<bool>(file.flush());
}

} // namespace

int main(int argc, char **argv) try {
  CLI::App app("Writes the C++ functions of the ops with a kerasName.",
               "keratin-opgen");
  std::string input, declarations, definitions;
  app.add_option("input", input, "output of llvm-tblgen --dump-json")
      ->required()
      ->check(CLI::ExistingFile);
  app.add_option("--declarations", declarations, "header to write")->required();
  app.add_option("--definitions", definitions, "source to write")->required();
  CLI11_PARSE(app, argc, argv);

  std::ifstream file(input);
  std::vector<Op> ops = readOps(json::parse(file));
  std::ostringstream header, source;
  writeDeclarations(header, ops);
  writeDefinitions(source, ops);
  if (update(declarations, header.str()) && update(definitions, source.str()))
    return EXIT_SUCCESS;
  std::cerr << "keratin-opgen: cannot write " << declarations << " and "
            << definitions << '\n';
  return EXIT_FAILURE;
} catch (const std::exception &error) {
  std::cerr << "keratin-opgen: " << error.what() << '\n';
  return EXIT_FAILURE;
}
