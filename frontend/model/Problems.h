//===- Problems.h - what is wrong with a model file -------------*- C++ -*-===//
#ifndef KERATIN_FRONTEND_MODEL_PROBLEMS_H
#define KERATIN_FRONTEND_MODEL_PROBLEMS_H

#include <string>
#include <vector>

namespace keratin::model {

/// Collects problems, so that all are reported at once.
class Problems {
public:
  /// `line` has no line break of its own: those in names become spaces.
  void add(std::string line);
  bool empty() const { return lines.empty(); }
  size_t size() const { return lines.size(); }
  const std::vector<std::string> &all() const { return lines; }

private:
  /// A damaged file can have a problem in each of a million layers.
  static constexpr size_t most = 200;
  std::vector<std::string> lines;
};

} // namespace keratin::model

#endif // KERATIN_FRONTEND_MODEL_PROBLEMS_H
