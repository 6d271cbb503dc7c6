//===- Report.h - what the tools show on a terminal -------------*- C++ -*-===//
#ifndef KERATIN_TOOLS_REPORT_H
#define KERATIN_TOOLS_REPORT_H

#include "keratin/function.h"

#include <chrono>
#include <ostream>
#include <string>
#include <vector>

namespace keratin {

/// Columns as wide as their longest text; numbers to the right.
class Table {
public:
  /// A heading that begins with '>' is of a column of numbers.
  explicit Table(std::vector<std::string> headings);
  void addRow(std::vector<std::string> cells);
  void print(std::ostream &os) const;

private:
  std::vector<std::vector<std::string>> rows; // the first are the headings
  std::vector<bool> rightAligned;
};

/// `fixed + perBatch * batch` for people: "64 + 12544 b".
std::string batchSizeText(const int64_t (&size)[2]);

/// The table of `--print-kernels`, and what memory the kernels share.
void printKernels(std::ostream &os,
                  const std::vector<backend::KernelInfo> &kernels,
                  const backend::ArenaInfo &arena);

/// Prints one `error: ` line on stderr for each line of the message.
void printErrors(const std::string &message);

/// A bar on stderr, on terminals only, once a compilation takes a while.
class ProgressBar {
public:
  ProgressBar();
  ~ProgressBar();
  void show(std::string_view what, unsigned done, unsigned total);

private:
  bool isTerminal, shown = false;
  std::chrono::steady_clock::time_point start;
};

} // namespace keratin

#endif // KERATIN_TOOLS_REPORT_H
