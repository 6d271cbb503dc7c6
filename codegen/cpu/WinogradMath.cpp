//===- WinogradMath.cpp - the transforms of F(m x m, r x r) ---------------===//
#include "codegen/cpu/WinogradMath.h"
#include "codegen/cpu/PairedWeights.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <array>
#include <cstring>

using namespace mlir;

namespace keratin {

/// The points of F(4x4, 3x3) besides 0 and infinity are +-near and +-far.
static constexpr double near = 5.0 / 8, far = 3.0 / 2;

/// The points of tiles of so many inputs besides 0 and infinity are each of
/// these and its negative.
static constexpr std::array<double, 1> fourPoints = {1};
static constexpr std::array<double, 2> sixPoints = {near, far};
static constexpr std::array<double, 3> eightPoints = {1, 1.0 / 2, 2};

static ArrayRef<double> pointsOf(TileForm form) {
  if (form.inputs() == 4)
    return fourPoints;
  return form.inputs() == 6 ? ArrayRef<double>(sixPoints)
                            : ArrayRef<double>(eightPoints);
}

bool isKnown(TileForm form) {
  constexpr int64_t most = TileForm::mostTaps;
  if (form.taps < 2 || form.taps > most || form.m < 2 || form.m > 8)
    return false;
  int64_t inputs = form.inputs();
  return inputs == 4 || inputs == 6 || inputs == 8;
}

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

/// Row i of B^T for eight inputs, as below: of a point p and its negative it is
/// (t^2 - q^2)(t^2 - r^2) t (t +- p) for the other two, of 0 and infinity
/// (t^2 - p^2)(t^2 - q^2)(t^2 - r^2), the latter times t.
static SmallVector<Value> transformEight(Formula &f, ValueRange x) {
  double sum = 0, product = 1, ofPairs = 0;
  for (double point : eightPoints) {
    ofPairs += sum * point * point;
    sum += point * point;
    product *= point * point;
  }
  auto all = [&](size_t first) {
    Value upper = f.addTimes(-sum, x[first + 4], x[first + 6]);
    return f.addTimes(ofPairs, x[first + 2],
                      f.addTimes(-product, x[first], upper));
  };
  SmallVector<Value> result = {all(0)};
  for (double point : eightPoints) {
    double others = product / (point * point);
    double sumOfOthers = sum - point * point;
    auto half = [&](size_t first) {
      return f.addTimes(others, x[first],
                        f.addTimes(-sumOfOthers, x[first + 2], x[first + 4]));
    };
    Value even = half(2), odd = half(1);
    result.push_back(f.addTimes(point, odd, even));
    result.push_back(f.addTimes(-point, odd, even));
  }
  result.push_back(all(1));
  return result;
}

SmallVector<Value> emitInputTransform(OpBuilder &b, Location loc,
                                      ValueRange x) {
  Formula f(b, loc, x[0].getType());
  if (x.size() == 4)
    return {f.sub(x[0], x[2]), f.add(x[1], x[2]), f.sub(x[2], x[1]),
            f.sub(x[3], x[1])};
  if (x.size() == 8)
    return transformEight(f, x);
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

SmallVector<Value> emitOutputTransform(OpBuilder &b, Location loc, ValueRange x,
                                       TileForm form) {
  Formula f(b, loc, x[0].getType());
  SmallVector<Value> even, odd, result;
  for (size_t at = 1; at + 2 < x.size(); at += 2) {
    even.push_back(f.add(x[at], x[at + 1]));
    odd.push_back(f.sub(x[at], x[at + 1]));
  }
  // Output i is the sum of the products, each times its point to the power i;
  // the point at infinity has a part in the last.
  for (int i = 0; i < form.m; ++i) {
    Value sum;
    for (auto [point, part] :
         llvm::zip_equal(pointsOf(form), i % 2 == 0 ? even : odd)) {
      double factor = power(point, i);
      sum = sum ? f.addTimes(factor, part, sum) : f.times(factor, part);
    }
    if (i == 0)
      sum = f.add(x[0], sum);
    if (i == form.m - 1)
      sum = f.add(sum, x.back());
    result.push_back(sum);
  }
  return result;
}

SmallVector<Value> emitSlopeTransform(OpBuilder &b, Location loc, ValueRange x,
                                      TileForm form) {
  Formula f(b, loc, x[0].getType());
  // What belongs to a point is the polynomial of x there.
  SmallVector<Value> result = {x[0]};
  for (double point : pointsOf(form)) {
    Value part[2];
    for (size_t i = x.size(); i-- > 0;) {
      Value &sum = part[i % 2];
      sum = sum ? f.addTimes(power(point, 2), sum, x[i]) : x[i];
    }
    result.push_back(f.addTimes(point, part[1], part[0]));
    result.push_back(f.addTimes(-point, part[1], part[0]));
  }
  result.push_back(x.back());
  return result;
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

namespace {
struct WindowRow {
  std::array<double, TileForm::mostTaps> tap;
};
using WindowMatrix = SmallVector<WindowRow, 8>;
} // namespace

/// G: row i is (1, t, t^2, ..) / product over the other points s of (t - s),
/// for the i-th point t; the last row is that of infinity. F(2x2, 3x3) has the
/// first row, and the row of the inputs that meets it, times -1.
static WindowMatrix windowMatrix(TileForm form) {
  SmallVector<double, 7> points = {0};
  for (double point : pointsOf(form))
    points.append({point, -point});
  WindowMatrix matrix;
  for (double point : points) {
    double scale = 1;
    for (double other : points)
      scale *= other == point ? 1 : point - other;
    if (form.inputs() == 4 && point == 0)
      scale = -scale;
    WindowRow row = {};
    for (int64_t tap = 0; tap < form.taps; ++tap)
      row.tap[tap] = power(point, int(tap)) / scale;
    matrix.push_back(row);
  }
  matrix.push_back({});
  matrix.back().tap[form.taps - 1] = 1;
  return matrix;
}

SmallVector<Value> emitWindowTransform(OpBuilder &b, Location loc, ValueRange x,
                                       TileForm form) {
  Formula f(b, loc, x[0].getType());
  WindowMatrix matrix = windowMatrix(form);
  SmallVector<Value> result = {f.times(matrix[0].tap[0], x[0])};
  // Rows of a point and of its negative differ by the sign of the odd part.
  for (ArrayRef<WindowRow> rows = ArrayRef(matrix).slice(1).drop_back();
       !rows.empty(); rows = rows.drop_front(2)) {
    const auto &tap = rows.front().tap;
    Value even, odd;
    for (size_t number = 2; number < x.size(); ++number) {
      Value &sum = number % 2 == 0 ? even : odd;
      sum = sum ? f.addTimes(tap[number], x[number], sum)
                : f.times(tap[number], x[number]);
    }
    even = even ? f.addTimes(tap[0], x[0], even) : f.times(tap[0], x[0]);
    if (!odd) {
      result.push_back(f.addTimes(tap[1], x[1], even));
      result.push_back(f.addTimes(-tap[1], x[1], even));
      continue;
    }
    odd = f.addTimes(tap[1], x[1], odd);
    result.push_back(f.add(even, odd));
    result.push_back(f.sub(even, odd));
  }
  result.push_back(x.back());
  return result;
}

SmallVector<Value> emitWindowSums(OpBuilder &b, Location loc, ValueRange x,
                                  TileForm form) {
  Formula f(b, loc, x[0].getType());
  WindowMatrix matrix = windowMatrix(form);
  SmallVector<Value> result(form.taps);
  result.front() = f.times(matrix[0].tap[0], x[0]);
  result.back() = x.back();
  for (size_t row = 1; row + 2 < x.size(); row += 2) {
    const auto &tap = matrix[row].tap;
    Value even = f.add(x[row], x[row + 1]), odd = f.sub(x[row], x[row + 1]);
    for (auto [number, sum] : llvm::enumerate(result)) {
      Value part = number % 2 == 0 ? even : odd;
      sum =
          sum ? f.addTimes(tap[number], part, sum) : f.times(tap[number], part);
    }
  }
  return result;
}

/// Windows of `taps` taps side by side, to those of the points of `matrix`:
/// element `tap` of that in lane l is g[tap * stride + l].
template <int64_t lanes>
static void transformLine(ArrayRef<WindowRow> matrix, int64_t taps,
                          const double *g, int64_t stride, double *out) {
  for (const auto &[tap] : matrix) {
    for (int64_t lane = 0; lane < lanes; ++lane)
      out[lane] = g[lane] * tap[0];
    for (int64_t number = 1; number < taps; ++number)
      for (int64_t lane = 0; lane < lanes; ++lane)
        out[lane] += g[number * stride + lane] * tap[number];
    out += lanes;
  }
}

/// The same of windows of `taps` x `taps`.
template <int64_t lanes>
static void transformSquare(ArrayRef<WindowRow> matrix, int64_t taps,
                            const double *g, double *out) {
  for (const WindowRow &of : matrix) {
    double row[TileForm::mostTaps * lanes];
    for (int64_t number = 0; number < taps; ++number)
      transformLine<lanes>(of, taps, &g[number * lanes], taps * lanes,
                           &row[number * lanes]);
    transformLine<lanes>(matrix, taps, row, lanes, out);
    out += int64_t(matrix.size()) * lanes;
  }
}

void transformWindow(TileForm form, ArrayRef<double> g,
                     MutableArrayRef<double> out) {
  transformSquare<1>(windowMatrix(form), form.taps, g.data(), out.data());
}

namespace {
/// Weights of windows x channels x filters, and in which pieces those windows
/// are.
class Windows {
public:
  Windows(RankedTensorType type, const WindowTransform &transform)
      : taps(type.getShape().drop_back(2)), transform(transform) {
    ArrayRef<int64_t> inner = type.getShape().take_back(2);
    channels = inner[0];
    filters = inner[1];
  }

  int64_t channels, filters;
  int64_t pieces() const {
    int64_t pieces = 1;
    for (size_t axis = 0; axis < taps.size(); ++axis)
      pieces *= piecesAlong(axis);
    return pieces;
  }
  /// Where tap `offset` of a piece, in row-major order, has its filters of a
  /// channel; null where the window has ended.
  std::optional<int64_t> filtersOf(int64_t piece, int64_t offset,
                                   int64_t channel) const;

private:
  /// The stride of an axis that is transformed.
  std::optional<int64_t> strideOf(size_t axis) const {
    for (auto [number, stride] :
         llvm::zip_equal(transform.axes, transform.strides))
      if (number == int64_t(axis))
        return stride;
    return std::nullopt;
  }
  int64_t piecesAlong(size_t axis) const {
    std::optional<int64_t> stride = strideOf(axis);
    return stride ? transform.form.piecesOf(taps[axis], *stride) : taps[axis];
  }

  ArrayRef<int64_t> taps;
  const WindowTransform &transform;
};
} // namespace

std::optional<int64_t> Windows::filtersOf(int64_t piece, int64_t offset,
                                          int64_t channel) const {
  SmallVector<int64_t, 3> place(taps.size());
  int64_t ofPiece = transform.form.taps;
  for (auto [axis, stride] :
       llvm::reverse(llvm::zip_equal(transform.axes, transform.strides))) {
    int64_t number = piece % piecesAlong(axis);
    place[axis] = number % stride +
                  stride * (number / stride * ofPiece + offset % ofPiece);
    piece /= piecesAlong(axis);
    offset /= ofPiece;
  }
  for (size_t axis = taps.size(); axis-- > 0;)
    if (!strideOf(axis)) {
      place[axis] = piece % taps[axis];
      piece /= taps[axis];
    }
  int64_t tap = 0;
  for (auto [at, extent] : llvm::zip_equal(place, taps)) {
    if (at >= extent)
      return std::nullopt;
    tap = tap * extent + at;
  }
  return (tap * channels + channel) * filters;
}

RankedTensorType transformedType(RankedTensorType type,
                                 const WindowTransform &transform,
                                 int64_t block) {
  Windows windows(type, transform);
  auto blocks = int64_t(llvm::divideCeil(windows.filters, block));
  Type element = type.getElementType();
  if (element.isBF16())
    element = Float32Type::get(type.getContext());
  return RankedTensorType::get({transform.points(), blocks,
                                windows.pieces() * windows.channels +
                                    (transform.inPairs ? rowsBehindPaired : 0),
                                block},
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
static void transformAs(ArrayRef<char> source, RankedTensorType type,
                        const WindowTransform &transform, int64_t block,
                        MutableArrayRef<char> destination) {
  Windows all(type, transform);
  int64_t channels = all.pieces() * all.channels, filters = all.filters;
  int64_t blocks = llvm::divideCeil(filters, block);
  int64_t ofPanel = channels + (transform.inPairs ? rowsBehindPaired : 0);
  constexpr int64_t lanes = 8;
  bool isSquare = transform.axes.size() == 2;
  int64_t taps = transform.form.taps;
  WindowMatrix matrix = windowMatrix(transform.form);
  constexpr int64_t mostTaps = TileForm::mostTaps;
  double windows[mostTaps * mostTaps * lanes] = {};
  SmallVector<double> transformed(transform.points() * lanes);
  From weights[lanes];
  T rounded[lanes];
  auto element = [](int64_t index) { return size_t(index) * sizeof(T); };
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t k = 0, count; k < filters; k += count) {
      count = std::min({lanes, filters - k, block - k % block});
      for (int64_t tap = 0; tap < (isSquare ? taps * taps : taps); ++tap) {
        double *out = &windows[tap * lanes];
        std::optional<int64_t> first =
            all.filtersOf(c / all.channels, tap, c % all.channels);
        if (!first) {
          std::fill(out, out + lanes, 0);
          continue;
        }
        std::memcpy(weights, &source[size_t(*first + k) * sizeof(From)],
                    size_t(count) * sizeof(From));
        std::copy(weights, weights + count, out);
      }
      if (isSquare)
        transformSquare<lanes>(matrix, taps, windows, transformed.data());
      else
        transformLine<lanes>(matrix, taps, windows, lanes, transformed.data());
      for (int64_t point = 0; point < transform.points(); ++point) {
        const double *values = &transformed[point * lanes];
        std::copy(values, values + count, rounded);
        int64_t panel = point * blocks + k / block;
        std::memcpy(
            &destination[element((panel * ofPanel + c) * block + k % block)],
            rounded, element(count));
      }
    }
}

void transformWeights(ArrayRef<char> source, RankedTensorType type,
                      const WindowTransform &transform, int64_t block,
                      MutableArrayRef<char> destination) {
  std::fill(destination.begin(), destination.end(), 0);
  if (type.getElementType().isF64())
    transformAs<double>(source, type, transform, block, destination);
  else if (type.getElementType().isBF16())
    transformAs<float, Bf16>(source, type, transform, block, destination);
  else
    transformAs<float>(source, type, transform, block, destination);
  if (!transform.inPairs)
    return;
  ArrayRef<int64_t> shape = transformedType(type, transform, block).getShape();
  auto elements = size_t(shape[2] * block);
  MutableArrayRef<float> all = {reinterpret_cast<float *>(destination.data()),
                                destination.size() / sizeof(float)};
  for (; !all.empty(); all = all.drop_front(elements))
    scalePairedPanel(all.take_front(elements), shape[2] - rowsBehindPaired,
                     block);
}

} // namespace keratin
