//===- Print.cpp - values of tensors for people ---------------------------===//
//
// NumPy's form: floats in the fewest digits that tell them, at most 8 behind
// the point, aligned at the point; long arrays are cut in the middle.
//
//===----------------------------------------------------------------------===//
#include "../Emit.h"
#include "keratin/backend.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <mutex>

namespace keratin::backend {

namespace {

constexpr int precision = 8;
constexpr int64_t mostElements = 1000, edge = 3;
constexpr size_t lineWidth = 75;

template <typename... Format> std::string digits(double value, Format... how) {
  char text[512];
  auto [end, error] = std::to_chars(text, text + sizeof text, value, how...);
  return error == std::errc() ? std::string(text, end) : std::to_string(value);
}

/// The fewest digits for the dtype, in one of two forms.
std::string shortest(double value, DType dtype, std::chars_format form) {
  bool wide = dtype == DType::Float64;
  std::string text = wide ? digits(value, form) : [&] {
    char buffer[512];
    auto number = static_cast<float>(value);
    auto result = std::to_chars(buffer, buffer + sizeof buffer, number, form);
    return std::string(buffer, result.ptr);
  }();
  size_t mark = text.find('e');
  std::string exponent = mark == std::string::npos ? "" : text.substr(mark);
  text = text.substr(0, mark);
  size_t point = text.find('.');
  if (point != std::string::npos && text.size() - point - 1 > precision) {
    text = digits(std::strtod(text.c_str(), nullptr), std::chars_format::fixed,
                  precision);
    text.erase(text.find_last_not_of('0') + 1);
  }
  if (text.find('.') == std::string::npos)
    text += '.';
  return text + exponent;
}

/// Texts of equal width of the elements that are shown.
class Elements {
public:
  Elements(const Array &array, const std::vector<int64_t> &shown) {
    DType dtype = array.dtype();
    std::vector<double> values;
    for (int64_t i : shown)
      values.push_back(array.at(i));
    form = needsExponent(values) ? std::chars_format::scientific
                                 : std::chars_format::fixed;
    for (double value : values)
      texts.push_back(plain(value, dtype));
    if (isFloat(dtype))
      alignPoints();
    size_t width = 0;
    for (const std::string &text : texts)
      width = std::max(width, text.size());
    for (std::string &text : texts)
      text.insert(0, width - text.size(), ' ');
  }

  std::vector<std::string> texts;

private:
  static bool needsExponent(const std::vector<double> &values) {
    double least = INFINITY, largest = 0;
    for (double value : values)
      if (std::isfinite(value) && value != 0) {
        least = std::min(least, std::abs(value));
        largest = std::max(largest, std::abs(value));
      }
    return largest > 0 &&
           (largest >= 1e8 || least < 1e-4 || largest / least > 1000);
  }

  std::string plain(double value, DType dtype) const {
    if (dtype == DType::Bool)
      return value != 0 ? "True" : "False";
    if (!isFloat(dtype))
      return std::to_string(static_cast<int64_t>(value));
    if (std::isnan(value))
      return "nan";
    if (std::isinf(value))
      return value > 0 ? "inf" : "-inf";
    return shortest(value, dtype, form);
  }

  /// Points are below each other; an exponent follows digits, not blanks.
  void alignPoints() {
    auto partsOf = [](const std::string &text) {
      size_t point = text.find('.'), mark = text.find('e');
      size_t end = mark == std::string::npos ? text.size() : mark;
      return std::pair(point, end);
    };
    size_t longest = 0;
    for (const std::string &text : texts)
      if (auto [point, end] = partsOf(text); point != std::string::npos)
        longest = std::max(longest, end - point - 1);
    bool scientific = form == std::chars_format::scientific;
    for (std::string &text : texts)
      if (auto [point, end] = partsOf(text); point != std::string::npos)
        text.insert(end, longest - (end - point - 1), scientific ? '0' : ' ');
  }

  std::chars_format form;
};

class Printer {
public:
  explicit Printer(const Array &array)
      : array(array), cut(array.size() > mostElements) {
    collect(0, 0);
    texts = Elements(array, shown).texts;
    print(0);
  }

  std::string text;

private:
  /// The positions on an axis that are shown; -1 is the gap between them.
  std::vector<int64_t> positionsOn(size_t axis) const {
    int64_t extent = array.shape()[axis];
    std::vector<int64_t> result;
    bool gap = cut && extent > 2 * edge;
    for (int64_t i = 0; i < (gap ? edge : extent); ++i)
      result.push_back(i);
    if (gap) {
      result.push_back(-1);
      for (int64_t i = extent - edge; i < extent; ++i)
        result.push_back(i);
    }
    return result;
  }

  void collect(size_t axis, int64_t offset) {
    if (axis == array.shape().size()) {
      shown.push_back(offset);
      return;
    }
    for (int64_t position : positionsOn(axis))
      if (position >= 0)
        collect(axis + 1, offset * array.shape()[axis] + position);
  }

  void print(size_t axis) {
    size_t rank = array.shape().size();
    if (axis == rank) {
      text += texts[next++];
      return;
    }
    text += '[';
    size_t line = axis + 1;
    bool first = true;
    for (int64_t position : positionsOn(axis)) {
      size_t width = position < 0 ? 3 : texts.empty() ? 0 : texts[next].size();
      if (axis + 1 == rank) {
        bool breaks = line + width + !first >= lineWidth;
        if (!first)
          text += breaks ? "\n" + std::string(axis + 1, ' ') : " ";
        line = (breaks ? axis + 1 : line + !first) + width;
      } else if (!first) {
        text += std::string(rank - axis - 1, '\n') + std::string(axis + 1, ' ');
      }
      first = false;
      if (position < 0)
        text += "...";
      else
        print(axis + 1);
    }
    text += ']';
  }

  const Array &array;
  bool cut;
  std::vector<int64_t> shown;
  std::vector<std::string> texts;
  size_t next = 0;
};

void printToOutput(const std::string &message, const Array &value) {
  std::string line =
      message + (message.empty() ? "" : " ") + array_string(value) + "\n";
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

std::mutex sinkMutex;
PrintSink sink;

} // namespace

std::string array_string(const Array &value) {
  if (!value.shape().empty())
    return Printer(value).text;
  std::string text = Printer(value).text;
  return text.back() == '.' ? text + "0" : text;
}

void set_print_sink(PrintSink given) {
  std::lock_guard<std::mutex> lock(sinkMutex);
  sink = std::move(given);
}

Tensor print_tensor(const Tensor &x, std::string_view message) {
  CalledAs function("print_tensor");
  requireTensor(x, "print_tensor", "x");
  Tensor tensor = x.id() ? x : constant(x.number());
  auto print = [message =
                    std::string(message)](const std::vector<Array> &values) {
    PrintSink present;
    {
      std::lock_guard<std::mutex> lock(sinkMutex);
      present = sink;
    }
    (present ? present : printToOutput)(message, values[0]);
    return values;
  };
  Tensors printed =
      emitHost(print, {tensor}, {{int_shape(tensor), dtype(tensor)}});
  return emitAfter(tensor, printed);
}

} // namespace keratin::backend
