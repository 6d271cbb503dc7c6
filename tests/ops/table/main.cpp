//===- main.cpp - what is tested of each function of the API --------------===//
//
//   keratin-op-table HEADER... -- TEST...
//
// Prints a table in Markdown: the functions that the headers declare and, of
// each, the rows of tests/ops that call it. For one without a row the files
// among TEST that call it; exits with 1 where there is neither.
//
//===----------------------------------------------------------------------===//
#include "../OpRun.h"

#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

using namespace keratin::optest;

static std::string readFile(const std::string &path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Adds the functions that a header declares, and those that give tensors.
static void readFunctions(const std::string &path, std::set<std::string> &names,
                          std::set<std::string> &ofTensors) {
  static const std::regex declaration(
      R"((?:^|\n)(?:template <typename F> |\[\[nodiscard\]\] inline )?)"
      R"(([A-Z]\w*|bool|void|double|u?int64_t|std::[\w:<>, ]+)\s(\w+)\()");
  static const std::set<std::string> others = {"Array",
                                               "CompileCacheStatistics",
                                               "ControlDependencies",
                                               "DType",
                                               "Dim",
                                               "F",
                                               "Function",
                                               "NameScope",
                                               "Shape"};
  std::string content = readFile(path);
  for (std::sregex_iterator found(content.begin(), content.end(), declaration),
       end;
       found != end; ++found) {
    names.insert((*found)[2]);
    std::string type = (*found)[1];
    if (std::isupper(type[0]) && !others.count(type))
      ofTensors.insert((*found)[2]);
  }
}

/// The function that a row is named after: the longest that its name begins
/// with.
static std::string functionOf(const std::string &row,
                              const std::set<std::string> &functions) {
  std::string name = row;
  while (!functions.count(name) && !functions.count(name + "_")) {
    size_t end = name.rfind('_');
    if (end == std::string::npos)
      return "";
    name.resize(end);
  }
  return functions.count(name) ? name : name + "_";
}

/// The names of the files that call a function, "" for none.
static std::string callersOf(const std::string &function,
                             const std::map<std::string, std::string> &tests) {
  std::string callers;
  for (const auto &[name, text] : tests)
    if (text.find("K::" + function + "(") != std::string::npos)
      callers += (callers.empty() ? "" : ", ") + name;
  return callers;
}

/// Whether a test that is named after an artefact calls a function.
static bool isSaved(const std::string &function,
                    const std::map<std::string, std::string> &tests) {
  for (const auto &[name, text] : tests)
    for (size_t from = text.find("\nTEST"); from != std::string::npos;) {
      size_t to = text.find("\nTEST", from + 1);
      std::string test = text.substr(from, to - from);
      size_t opened = test.find('{');
      if (test.find("Artefact") < opened &&
          test.find("K::" + function + "(") != std::string::npos)
        return true;
      from = to;
    }
  return false;
}

int main(int argc, char **argv) {
  std::set<std::string> functions, ofTensors;
  std::map<std::string, std::string> tests;
  bool isTest = false;
  for (int i = 1; i < argc; ++i) {
    if (argv[i] == std::string("--"))
      isTest = true;
    else if (isTest)
      tests[std::filesystem::path(argv[i]).filename()] = readFile(argv[i]);
    else
      readFunctions(argv[i], functions, ofTensors);
  }
  std::map<std::string, std::vector<Row>> rows;
  for (const Row &row : allRows())
    rows[functionOf(row.name, functions)].push_back(row);

  std::cout << "# What is tested of the backend API\n\n"
               "Each row is checked at -O0 and -O2 against a formula in C++ "
               "doubles, its gradient against\ncentral differences, and in "
               "an artefact, for batches of 1 and 5 where there is one. "
               "`none` is the gradient of\nwhat has none. "
               "Functions that give no tensor, or do more than compute one, "
               "have tests of their own.\n\n"
               "| function | row | value | gradient | second gradient | "
               "artefact |\n|---|---|---|---|---|---|\n";
  // What each row is tested with.
  static const std::set<std::string> harness = {"function", "gradients",
                                                "placeholder"};
  int untested = 0;
  for (const std::string &function : functions) {
    if (rows[function].empty()) {
      std::string callers = callersOf(function, tests);
      untested += callers.empty();
      std::cout << "| " << function << " | "
                << (callers.empty() ? "**none**" : callers) << " | "
                << (callers.empty() ? "no" : "yes")
                << (harness.count(function) ? " | yes | yes | any batch |\n"
                    : !ofTensors.count(function) ? " | no tensor | | |\n"
                    // What is not a row gives values for the program alone:
                    // nothing can be computed from them.
                    : isSaved(function, tests) ? " | none | | yes |\n"
                                               : " | none | | no |\n");
    }
    for (const Row &row : rows[function])
      std::cout << "| " << function << " | " << row.name << " | yes | "
                << (row.hasGradient ? "yes" : "none") << " | "
                << (row.hasGradient && row.hasSecondGradient ? "yes" : "")
                << " | " << (row.hasBatch ? "any batch" : "yes") << " |\n";
  }
  for (const Row &row : rows[""])
    std::cout << "| | " << row.name << " | yes | "
              << (row.hasGradient ? "yes" : "none") << " | | |\n";
  if (untested)
    std::cerr << untested << " functions have neither a row nor a test\n";
  return untested != 0;
}
