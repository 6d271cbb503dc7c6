//===- OpTable.h - one row an op: what it computes --------------*- C++ -*-===//
//
// A row says what an op of the backend API computes: a formula in C++ doubles.
// OpTest.cpp checks every row at -O0 and at -O2, in process with static shapes
// and in an artefact, with a dynamic batch if it has one. GradientTest.cpp does
// the same with its gradient, against central differences of the formula, and
// with the gradient of that. A new op needs a row in its family's file.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_TESTS_OPS_OPTABLE_H
#define KERATIN_TESTS_OPS_OPTABLE_H

#include "keratin/backend.h"

#include <functional>
#include <ostream>
#include <string>
#include <vector>

namespace keratin::optest {

namespace K = keratin::backend;

/// A dense row-major array of doubles: what formulas take and give.
struct Values {
  Values(K::Shape shape, double fill = 0);

  int64_t rank() const { return shape.size(); }
  int64_t size() const { return data.size(); }
  /// Position in `data` of an index.
  int64_t offset(const K::Shape &index) const;
  double &operator[](const K::Shape &index) { return data[offset(index)]; }
  double operator[](const K::Shape &index) const { return data[offset(index)]; }

  K::Shape shape;
  std::vector<double> data;
};

/// Calls `visit` with each index of `shape` in row-major order.
void forEachIndex(const K::Shape &shape,
                  const std::function<void(const K::Shape &)> &visit);
/// `shape` with an element computed for each index.
Values generate(const K::Shape &shape,
                const std::function<double(const K::Shape &)> &element);
/// The axes of `x` in another order, as NumPy's transpose.
Values permute(const Values &x, const std::vector<int64_t> &axes);
/// The shape that NumPy broadcasts `a` and `b` to.
K::Shape broadcastShape(const K::Shape &a, const K::Shape &b);
/// The element of `x` that is broadcast to `index`.
double broadcastAt(const Values &x, const K::Shape &index);

using Op = std::function<K::Tensor(const K::Tensors &)>;
using Formula = std::function<Values(const std::vector<Values> &)>;

/// The seed of random ops in the table.
constexpr uint64_t tableSeed = 1234567890123;

struct Row {
  std::string name = {}; ///< letters, digits and underscores
  std::vector<K::Shape> shapes = {};
  Op op = {};
  Formula formula = {};

  double low = -2, high = 2; ///< floating-point inputs are between these
  int64_t classes = 4;       ///< integer inputs are in [0, classes)
  /// Largest error, relative to the largest magnitude in the result.
  double tolerance = 2e-6;
  /// Dtypes of the inputs; float32 where the list ends.
  std::vector<DType> dtypes = {};
  /// The last inputs that are constants in the forward tests, as the weights of
  /// a layer are.
  int64_t weights = 0;
  /// False where it is None by every input, as that of argmax or round is.
  bool hasGradient = true;
  /// False where each call has another gradient, as that of a random op.
  bool hasSecondGradient = true;
  /// Whether axis 0 of the first input is a batch. It is the batch of other
  /// inputs too that are not weights and have this extent first.
  bool hasBatch = true;
  /// The variable that the op assigns, if it does: the key and the number of
  /// calls of a random one.
  Array state = Array::of<int64_t>({2}, {tableSeed, 0});

  DType dtype(size_t input) const;
  bool isWeight(size_t input) const;
  bool isBatched(size_t input) const;
  /// Inputs of the row when the batch has `batch` samples, rounded to their
  /// dtypes; always the same.
  std::vector<Values> inputs(int64_t batch) const;
};

/// How GoogleTest shows a row.
inline void PrintTo(const Row &row, std::ostream *out) { *out << row.name; }

/// The batch that shapes in the table have.
constexpr int64_t tableBatch = 3;

/// One function a family.
std::vector<Row> elementwiseRows();
std::vector<Row> activationRows();
std::vector<Row> reduceRows();
std::vector<Row> shapeRows();
std::vector<Row> indexRows();
std::vector<Row> linearRows();
std::vector<Row> convolutionRows();
std::vector<Row> poolRows();
std::vector<Row> normalizationRows();
std::vector<Row> loopRows();
std::vector<Row> randomRows();
std::vector<Row> lossRows();
std::vector<Row> ctcRows();
std::vector<Row> localRows();
std::vector<Row> fillRows();

} // namespace keratin::optest

#endif // KERATIN_TESTS_OPS_OPTABLE_H
