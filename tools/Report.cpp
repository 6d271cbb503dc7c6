//===- Report.cpp - what the tools show on a terminal ---------------------===//
#include "Report.h"

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <unistd.h>

namespace keratin {

Table::Table(std::vector<std::string> headings) {
  for (std::string &heading : headings) {
    rightAligned.push_back(heading.starts_with('>'));
    if (rightAligned.back())
      heading.erase(0, 1);
  }
  rows.push_back(std::move(headings));
}

void Table::addRow(std::vector<std::string> cells) {
  rows.push_back(std::move(cells));
}

/// Characters, not bytes, of UTF-8: `×` takes one column.
static size_t columnsOf(const std::string &text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (c & 0xC0) != 0x80; });
}

void Table::print(std::ostream &os) const {
  std::vector<size_t> widths(rightAligned.size());
  for (const auto &row : rows)
    for (size_t column = 0; column < row.size(); ++column)
      widths[column] = std::max(widths[column], columnsOf(row[column]));
  for (const auto &row : rows) {
    std::string line;
    for (size_t column = 0; column < row.size(); ++column) {
      std::string padding(widths[column] - columnsOf(row[column]), ' ');
      line += column ? "  " : "";
      line +=
          rightAligned[column] ? padding + row[column] : row[column] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    os << line << '\n';
  }
}

std::string batchSizeText(const int64_t (&size)[2]) {
  if (size[1] == 0)
    return std::to_string(size[0]);
  std::string perBatch = std::to_string(size[1]) + " b";
  return size[0] == 0 ? perBatch : std::to_string(size[0]) + " + " + perBatch;
}

void printKernels(std::ostream &os,
                  const std::vector<backend::KernelInfo> &kernels,
                  const backend::ArenaInfo &arena) {
  Table table({"name", "op", "shapes", ">FLOPs", ">bytes", ">arena offset"});
  for (const backend::KernelInfo &kernel : kernels)
    table.addRow({kernel.name, kernel.op, kernel.shapes,
                  batchSizeText(kernel.flops), batchSizeText(kernel.bytes),
                  kernel.arenaOffset[0] < 0
                      ? "output"
                      : batchSizeText(kernel.arenaOffset)});
  table.print(os);
  if (!kernels.empty())
    os << "arena " << batchSizeText(arena.bytes) << " bytes, of which "
       << batchSizeText(arena.least) << " are in use at the same time\n";
}

void printErrors(const std::string &message) {
  std::istringstream lines(message);
  for (std::string line; std::getline(lines, line);)
    std::fprintf(stderr, "error: %s\n", line.c_str());
}

ProgressBar::ProgressBar()
    : isTerminal(isatty(STDERR_FILENO)),
      start(std::chrono::steady_clock::now()) {}

ProgressBar::~ProgressBar() {
  if (shown)
    std::fputs("\r\033[K", stderr);
}

void ProgressBar::show(std::string_view what, unsigned done, unsigned total) {
  constexpr unsigned width = 30;
  auto elapsed = std::chrono::steady_clock::now() - start;
  if (!isTerminal || total == 0 || elapsed < std::chrono::milliseconds(500))
    return;
  unsigned filled = width * std::min(done, total) / total;
  std::fprintf(stderr, "\r\033[K[%s%s] %.*s", std::string(filled, '#').c_str(),
               std::string(width - filled, ' ').c_str(),
               static_cast<int>(what.size()), what.data());
  std::fflush(stderr);
  shown = true;
}

} // namespace keratin
