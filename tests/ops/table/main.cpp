//===- main.cpp - what is tested of each function of the API --------------===//
//
//   keratin-op-table HEADER...
//
// Prints a table in Markdown: the functions that the headers declare and, of
// each, the rows of tests/ops that call it.
//
//===----------------------------------------------------------------------===//
#include "../OpRun.h"

#include <fstream>
#include <iostream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

using namespace keratin::optest;

static void readFunctions(const std::string &path,
                          std::set<std::string> &names) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  static const std::regex declaration(
      R"((?:^|\n)(?:[A-Z]\w*|bool|void|u?int64_t|std::[\w:<>, ]+) (\w+)\()");
  std::string content = text.str();
  for (std::sregex_iterator found(content.begin(), content.end(), declaration),
       end;
       found != end; ++found)
    names.insert((*found)[1]);
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

int main(int argc, char **argv) {
  std::set<std::string> functions;
  for (int i = 1; i < argc; ++i)
    readFunctions(argv[i], functions);
  std::map<std::string, std::vector<Row>> rows;
  for (const Row &row : allRows())
    rows[functionOf(row.name, functions)].push_back(row);

  std::cout << "# What is tested of the backend API\n\n"
               "Each row is checked at -O0 and -O2 against a formula in C++ "
               "doubles, its gradient against\ncentral differences; `any "
               "batch` rows also in an artefact, for batches of 1 and 5. "
               "Functions without a\nrow have tests of their own in "
               "tests/ops/KerasTest.cpp or tests/frontend.\n\n"
               "| function | row | value | gradient | second gradient | any "
               "batch |\n|---|---|---|---|---|---|\n";
  for (const std::string &function : functions) {
    if (rows[function].empty())
      std::cout << "| " << function << " | (own tests) | yes | | | |\n";
    for (const Row &row : rows[function])
      std::cout << "| " << function << " | " << row.name << " | yes | "
                << (row.hasGradient ? "yes" : "none") << " | "
                << (row.hasGradient && row.hasSecondGradient ? "yes" : "")
                << " | " << (row.hasBatch ? "yes" : "") << " |\n";
  }
  for (const Row &row : rows[""])
    std::cout << "| | " << row.name << " | yes | "
              << (row.hasGradient ? "yes" : "none") << " | | |\n";
  return 0;
}
