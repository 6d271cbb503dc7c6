//===- Einsum.cpp - sums of products by the names of axes -----------------===//
#include "../Emit.h"
#include "keratin/backend.h"

#include <algorithm>
#include <cctype>

namespace keratin::backend {

namespace {

/// A tensor and the letter of each of its axes.
struct Term {
  Tensor tensor;
  std::string labels;
};

bool has(std::string_view labels, char label) {
  return labels.find(label) != std::string_view::npos;
}

/// Stands for the axes of `...`, which are letters that nobody can write.
constexpr char firstEllipsisLabel = '\x01';

class Einsum {
public:
  Einsum(std::string_view equation, const Tensors &operands)
      : equation(equation) {
    parse(operands);
  }

  Tensor run() {
    Term result = terms[0];
    for (size_t next = 1; next < terms.size(); ++next) {
      std::string later = output;
      for (size_t i = next + 1; i < terms.size(); ++i)
        later += terms[i].labels;
      result = multiply(sumOut(result, later + terms[next].labels),
                        sumOut(terms[next], later + result.labels), later);
    }
    return permute(sumOut(result, output));
  }

private:
  [[noreturn]] void fail(const std::string &message) const {
    throw Error("einsum: '" + std::string(equation) + "': " + message);
  }

  void parse(const Tensors &operands) {
    std::string text;
    for (char c : equation)
      if (c != ' ')
        text += c;
    size_t arrow = text.find("->");
    std::string inputs = text.substr(0, arrow);
    std::vector<std::string> parts(1);
    for (char c : inputs)
      if (c == ',')
        parts.emplace_back();
      else
        parts.back() += c;
    if (parts.size() != operands.size())
      fail("there are " + std::to_string(parts.size()) + " terms but " +
           std::to_string(operands.size()) + " tensors");
    for (size_t i = 0; i < parts.size(); ++i)
      terms.push_back({operands[i], expand(parts[i], ndim(operands[i]))});
    if (arrow == std::string::npos)
      output = impliedOutput();
    else
      output = expand(text.substr(arrow + 2), -1);
    checkOutput();
  }

  /// The labels with `...` written out; `rank` -1 for as many as there were.
  std::string expand(const std::string &text, int64_t rank) {
    size_t dots = text.find("...");
    std::string labels = text;
    if (dots != std::string::npos) {
      int64_t count = rank < 0 ? ellipsisRank
                               : rank - static_cast<int64_t>(text.size() - 3);
      std::string axes;
      for (int64_t i = 0; i < count; ++i)
        axes += static_cast<char>(firstEllipsisLabel + i);
      labels.replace(dots, 3, axes);
      ellipsisRank = std::max(ellipsisRank, count);
    }
    for (char label : labels) {
      if (!std::isalpha(static_cast<unsigned char>(label)) &&
          label >= firstEllipsisLabel + maxEllipsisRank)
        fail(std::string("'") + label + "' is not a letter");
      if (std::count(labels.begin(), labels.end(), label) > 1)
        fail(std::string("'") + label +
             "' occurs twice in one term, diagonals are not supported");
    }
    if (rank >= 0 && static_cast<int64_t>(labels.size()) != rank)
      fail("the term '" + text + "' does not fit a tensor of " +
           std::to_string(rank) + " axes");
    return labels;
  }

  /// Without an arrow: the labels that occur once, in alphabetical order.
  std::string impliedOutput() const {
    std::string all, result;
    for (const Term &term : terms)
      all += term.labels;
    std::sort(all.begin(), all.end());
    for (char label : all)
      if (std::count(all.begin(), all.end(), label) == 1 ||
          (label < 'A' && !has(result, label)))
        result += label;
    return result;
  }

  void checkOutput() const {
    for (char label : output)
      if (std::none_of(terms.begin(), terms.end(), [&](const Term &term) {
            return has(term.labels, label);
          }))
        fail(std::string("'") + label + "' of the result is in no term");
  }

  /// Sums over the axes that nobody needs.
  static Term sumOut(const Term &term, std::string_view needed) {
    std::vector<int64_t> axes;
    std::string kept;
    for (size_t axis = 0; axis < term.labels.size(); ++axis)
      if (has(needed, term.labels[axis]))
        kept += term.labels[axis];
      else
        axes.push_back(static_cast<int64_t>(axis));
    if (axes.empty())
      return term;
    return {sum(term.tensor, axes), kept};
  }

  /// The product of two terms: axes that both have are summed over unless
  /// `needed` has them, too.
  static Term multiply(const Term &a, const Term &b, std::string_view needed) {
    std::vector<int64_t> aBatch, bBatch, aContract, bContract;
    std::string batch, aFree, bFree;
    for (size_t axis = 0; axis < a.labels.size(); ++axis) {
      char label = a.labels[axis];
      size_t other = b.labels.find(label);
      if (other == std::string::npos) {
        aFree += label;
        continue;
      }
      bool kept = has(needed, label);
      (kept ? aBatch : aContract).push_back(static_cast<int64_t>(axis));
      (kept ? bBatch : bContract).push_back(static_cast<int64_t>(other));
      if (kept)
        batch += label;
    }
    for (char label : b.labels)
      if (!has(a.labels, label))
        bFree += label;
    return {emit("dot_general", {a.tensor, b.tensor},
                 {{"lhs_batch", aBatch},
                  {"rhs_batch", bBatch},
                  {"lhs_contract", aContract},
                  {"rhs_contract", bContract}}),
            batch + aFree + bFree};
  }

  Tensor permute(const Term &term) const {
    std::vector<int64_t> axes;
    for (char label : output)
      axes.push_back(static_cast<int64_t>(term.labels.find(label)));
    return std::is_sorted(axes.begin(), axes.end())
               ? term.tensor
               : permute_dimensions(term.tensor, axes);
  }

  static constexpr int maxEllipsisRank = 8;

  std::string_view equation;
  std::vector<Term> terms;
  std::string output;
  int64_t ellipsisRank = 0;
};

} // namespace

Tensor einsum(std::string_view equation, const Tensors &operands) {
  CalledAs function("einsum");
  if (operands.empty())
    throw Error("einsum: there are no tensors");
  for (const Tensor &operand : operands)
    requireTensor(operand, "einsum", "a tensor");
  return Einsum(equation, operands).run();
}

} // namespace keratin::backend
