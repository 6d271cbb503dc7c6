//===- WinogradMath.cpp - the transforms of F(m x m, 3x3) -----------------===//
#include "codegen/cpu/WinogradMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cstring>

using namespace mlir;

namespace keratin {

/// The points of F(4x4, 3x3) besides 0 and infinity are +-near and +-far.
static constexpr double near = 5.0 / 8, far = 3.0 / 2;

static double power(double point, int exponent) {
  double result = 1;
  for (int i = 0; i < exponent; ++i)
    result *= point;
  return result;
}

//===----------------------------------------------------------------------===//
// Inputs and outputs
//===----------------------------------------------------------------------===//

namespace {
/// Sums and multiples of floats, or of vectors of them. A product and the sum
/// that takes it may be one instruction: that of addTimes alone, for of two
/// products LLVM takes one or the other, as the code around them happens to be.
class Formula {
public:
  Formula(OpBuilder &b, Location loc, Type type) : b(b), loc(loc), type(type) {}

  Value add(Value x, Value y) {
    return arith::AddFOp::create(b, loc, x, y, fused());
  }
  Value sub(Value x, Value y) {
    return arith::SubFOp::create(b, loc, x, y, fused());
  }
  Value times(double factor, Value x) {
    return arith::MulFOp::create(b, loc, x, constant(factor));
  }
  /// factor * x + y
  Value addTimes(double factor, Value x, Value y) {
    return add(arith::MulFOp::create(b, loc, x, constant(factor), fused()), y);
  }

private:
  arith::FastMathFlagsAttr fused() {
    return arith::FastMathFlagsAttr::get(b.getContext(),
                                         arith::FastMathFlags::contract);
  }
  Value constant(double value) {
    TypedAttr attr = b.getFloatAttr(getElementTypeOrSelf(type), value);
    if (auto vector = dyn_cast<VectorType>(type))
      attr = DenseElementsAttr::get(vector, attr);
    return arith::ConstantOp::create(b, loc, attr);
  }

  OpBuilder &b;
  Location loc;
  Type type;
};
} // namespace

SmallVector<Value> emitInputTransform(OpBuilder &b, Location loc,
                                      ValueRange x) {
  Formula f(b, loc, x[0].getType());
  if (x.size() == 4)
    return {f.sub(x[0], x[2]), f.add(x[1], x[2]), f.sub(x[2], x[1]),
            f.sub(x[3], x[1])};
  // Row i of B^T is the polynomial that is zero at all points but the i-th:
  // (t^2 - far^2)(t + near) t and so on; its even and odd parts serve two rows.
  constexpr double near2 = near * near, far2 = far * far;
  Value nearEven = f.addTimes(-far2, x[2], x[4]);
  Value nearOdd = f.addTimes(-far2, x[1], x[3]);
  Value farEven = f.addTimes(-near2, x[2], x[4]);
  Value farOdd = f.addTimes(-near2, x[1], x[3]);
  return {
      f.addTimes(-(near2 + far2), x[2], f.addTimes(near2 * far2, x[0], x[4])),
      f.addTimes(near, nearOdd, nearEven),
      f.addTimes(-near, nearOdd, nearEven),
      f.addTimes(far, farOdd, farEven),
      f.addTimes(-far, farOdd, farEven),
      f.addTimes(-(near2 + far2), x[3], f.addTimes(near2 * far2, x[1], x[5]))};
}

SmallVector<Value> emitOutputTransform(OpBuilder &b, Location loc,
                                       ValueRange x) {
  Formula f(b, loc, x[0].getType());
  // Output i is the sum of the products, each times its point to the power i;
  // the point at infinity has a part in the last.
  Value nearEven = f.add(x[1], x[2]), nearOdd = f.sub(x[1], x[2]);
  if (x.size() == 4)
    return {f.add(x[0], nearEven), f.add(nearOdd, x[3])};
  Value farEven = f.add(x[3], x[4]), farOdd = f.sub(x[3], x[4]);
  return {f.add(f.add(x[0], nearEven), farEven),
          f.addTimes(far, farOdd, f.times(near, nearOdd)),
          f.addTimes(power(far, 2), farEven, f.times(power(near, 2), nearEven)),
          f.addTimes(power(far, 3), farOdd,
                     f.addTimes(power(near, 3), nearOdd, x[5]))};
}

SmallVector<Value> emitSlopeTransform(OpBuilder &b, Location loc,
                                      ValueRange x) {
  Formula f(b, loc, x[0].getType());
  if (x.size() == 2)
    return {x[0], f.add(x[0], x[1]), f.sub(x[0], x[1]), x[1]};
  // What belongs to a point is the polynomial of x there.
  SmallVector<Value> result = {x[0]};
  for (double point : {near, far}) {
    Value even = f.addTimes(power(point, 2), x[2], x[0]);
    Value odd = f.addTimes(power(point, 2), x[3], x[1]);
    result.push_back(f.addTimes(point, odd, even));
    result.push_back(f.addTimes(-point, odd, even));
  }
  result.push_back(x[3]);
  return result;
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

namespace {
struct WindowRow {
  double tap[3];
};
} // namespace

/// G: row i is (1, t, t^2) / product over the other points s of (t - s), for
/// the i-th point t; the last row is that of infinity.
static ArrayRef<WindowRow> windowMatrix(int64_t m) {
  static constexpr WindowRow two[] = {
      {{1, 0, 0}}, {{.5, .5, .5}}, {{.5, -.5, .5}}, {{0, 0, 1}}};
  constexpr double near2 = near * near, far2 = far * far;
  constexpr double atNear = 2 * near2 * (near2 - far2);
  constexpr double atFar = 2 * far2 * (far2 - near2);
  static constexpr WindowRow four[] = {
      {{1 / (near2 * far2), 0, 0}},
      {{1 / atNear, near / atNear, near2 / atNear}},
      {{1 / atNear, -near / atNear, near2 / atNear}},
      {{1 / atFar, far / atFar, far2 / atFar}},
      {{1 / atFar, -far / atFar, far2 / atFar}},
      {{0, 0, 1}}};
  return m == 2 ? ArrayRef(two) : ArrayRef(four);
}

SmallVector<Value> emitWindowTransform(OpBuilder &b, Location loc, ValueRange x,
                                       int64_t m) {
  Formula f(b, loc, x[0].getType());
  ArrayRef<WindowRow> matrix = windowMatrix(m);
  SmallVector<Value> result;
  result.push_back(m == 2 ? Value(x[0]) : f.times(matrix[0].tap[0], x[0]));
  // Rows of a point and of its negative differ by the sign of the odd part.
  for (ArrayRef<WindowRow> rows = matrix.slice(1).drop_back(); !rows.empty();
       rows = rows.drop_front(2)) {
    const double *tap = rows.front().tap;
    Value even = f.addTimes(tap[0], x[0], f.times(tap[2], x[2]));
    result.push_back(f.addTimes(tap[1], x[1], even));
    result.push_back(f.addTimes(-tap[1], x[1], even));
  }
  result.push_back(x[2]);
  return result;
}

SmallVector<Value> emitWindowSums(OpBuilder &b, Location loc, ValueRange x) {
  Formula f(b, loc, x[0].getType());
  int64_t m = int64_t(x.size()) - 2;
  ArrayRef<WindowRow> matrix = windowMatrix(m);
  SmallVector<Value> result = {m == 2 ? Value(x[0])
                                      : f.times(matrix[0].tap[0], x[0]),
                               Value(), x.back()};
  for (int64_t row = 1; row <= m; row += 2) {
    const double *tap = matrix[row].tap;
    Value even = f.add(x[row], x[row + 1]), odd = f.sub(x[row], x[row + 1]);
    result[0] = f.addTimes(tap[0], even, result[0]);
    result[1] =
        result[1] ? f.addTimes(tap[1], odd, result[1]) : f.times(tap[1], odd);
    result[2] = f.addTimes(tap[2], even, result[2]);
  }
  return result;
}

/// Windows side by side: element `tap` of that in lane l is g[tap * lanes + l].
template <int64_t lanes>
static void transformLanes(int64_t m, const double *g, double *out) {
  ArrayRef<WindowRow> matrix = windowMatrix(m);
  int64_t size = m + 2;
  for (int64_t i = 0; i < size; ++i) {
    const double *of = matrix[i].tap;
    double row[3 * lanes];
    for (int64_t at = 0; at < 3 * lanes; ++at)
      row[at] =
          of[0] * g[at] + of[1] * g[3 * lanes + at] + of[2] * g[6 * lanes + at];
    for (int64_t j = 0; j < size; ++j) {
      const double *along = matrix[j].tap;
      for (int64_t lane = 0; lane < lanes; ++lane)
        out[(i * size + j) * lanes + lane] = row[lane] * along[0] +
                                             row[lanes + lane] * along[1] +
                                             row[2 * lanes + lane] * along[2];
    }
  }
}

void transformWindow(int64_t m, ArrayRef<double> g,
                     MutableArrayRef<double> out) {
  transformLanes<1>(m, g.data(), out.data());
}

namespace {
/// Weights [depth x] rows x columns x channels x filters, and in how many
/// pieces of 3 x 3 those windows are.
struct Windows {
  explicit Windows(RankedTensorType type) {
    ArrayRef<int64_t> shape = type.getShape();
    depth = shape.size() == 5 ? shape.front() : 1;
    shape = shape.take_back(4);
    rows = shape[0];
    columns = shape[1];
    channels = shape[2];
    filters = shape[3];
    down = piecesOf(rows);
    across = piecesOf(columns);
  }

  int64_t depth, rows, columns, channels, filters, down, across;
  int64_t pieces() const { return depth * down * across; }
  /// Where tap (i, j) of a piece has its filters of a channel; null where the
  /// window has ended.
  std::optional<int64_t> filtersOf(int64_t piece, int64_t i, int64_t j,
                                   int64_t channel) const {
    int64_t row = piece / across % down * 3 + i;
    int64_t column = piece % across * 3 + j;
    if (row >= rows || column >= columns)
      return std::nullopt;
    int64_t tap = (piece / across / down * rows + row) * columns + column;
    return (tap * channels + channel) * filters;
  }
};
} // namespace

RankedTensorType transformedType(RankedTensorType type, int64_t m,
                                 int64_t block) {
  Windows windows(type);
  auto blocks = int64_t(llvm::divideCeil(windows.filters, block));
  Type element = type.getElementType();
  if (element.isBF16())
    element = Float32Type::get(type.getContext());
  return RankedTensorType::get(
      {(m + 2) * (m + 2), blocks, windows.pieces() * windows.channels, block},
      element);
}

namespace {
/// An element in memory.
struct Bf16 {
  uint16_t bits;
  operator double() const {
    return llvm::bit_cast<float>(uint32_t(bits) << 16);
  }
};
} // namespace

/// Weights of `From`, transformed to `T`.
template <typename T, typename From = T>
static void transformAs(ArrayRef<char> source, RankedTensorType type, int64_t m,
                        int64_t block, MutableArrayRef<char> destination) {
  Windows all(type);
  int64_t channels = all.pieces() * all.channels, filters = all.filters;
  int64_t blocks = llvm::divideCeil(filters, block);
  constexpr int64_t lanes = 8;
  double windows[9 * lanes] = {};
  SmallVector<double> transformed((m + 2) * (m + 2) * lanes);
  From weights[lanes];
  T rounded[lanes];
  auto element = [](int64_t index) { return size_t(index) * sizeof(T); };
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t k = 0, count; k < filters; k += count) {
      count = std::min({lanes, filters - k, block - k % block});
      for (int64_t tap = 0; tap < 9; ++tap) {
        double *out = &windows[tap * lanes];
        std::optional<int64_t> first =
            all.filtersOf(c / all.channels, tap / 3, tap % 3, c % all.channels);
        if (!first) {
          std::fill(out, out + lanes, 0);
          continue;
        }
        std::memcpy(weights, &source[size_t(*first + k) * sizeof(From)],
                    size_t(count) * sizeof(From));
        std::copy(weights, weights + count, out);
      }
      transformLanes<lanes>(m, windows, transformed.data());
      for (int64_t point = 0; point < (m + 2) * (m + 2); ++point) {
        const double *values = &transformed[point * lanes];
        std::copy(values, values + count, rounded);
        int64_t panel = point * blocks + k / block;
        std::memcpy(
            &destination[element((panel * channels + c) * block + k % block)],
            rounded, element(count));
      }
    }
}

void transformWeights(ArrayRef<char> source, RankedTensorType type, int64_t m,
                      int64_t block, MutableArrayRef<char> destination) {
  std::fill(destination.begin(), destination.end(), 0);
  if (type.getElementType().isF64())
    transformAs<double>(source, type, m, block, destination);
  else if (type.getElementType().isBF16())
    transformAs<float, Bf16>(source, type, m, block, destination);
  else
    transformAs<float>(source, type, m, block, destination);
}

} // namespace keratin
