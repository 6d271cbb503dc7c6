//===- PairedPanels.cpp - factors of pairs that a call arranges -----------===//
#include "codegen/cpu/PairedPanels.h"
#include "codegen/cpu/LaneReader.h"
#include "codegen/cpu/Transposed.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <algorithm>

using namespace mlir;

namespace keratin {

//===----------------------------------------------------------------------===//
// Squares
//===----------------------------------------------------------------------===//

Value PairedPanels::at(const MatrixPlace &matrix, Value row, Value column) {
  Value place = kernel.plus(kernel.times(row, matrix.ofRow),
                            kernel.times(column, matrix.ofColumn));
  return plus(place, matrix.first);
}

/// What is far apart in memory is not fetched ahead by itself.
static constexpr int64_t rowsAhead = 16, squaresAhead = 2;

/// Asks for a line of a matrix, also behind its end.
void PairedPanels::ask(const MatrixPlace &matrix, Value row, Value column) {
  memref::PrefetchOp::create(b, loc, matrix.elements, at(matrix, row, column),
                             /*isWrite=*/false, /*localityHint=*/2,
                             /*isDataCache=*/true);
}

/// `lines` vectors of `width` elements as `width` vectors of `lines`, with
/// zeros behind them up to all lanes.
PairedPanels::Values PairedPanels::square(unsigned lines, unsigned width,
                                          Load load) {
  Values vectors;
  Value zeros =
      arith::ConstantOp::create(b, loc, b.getZeroAttr(vectorType(lanes)));
  for (unsigned line = 0; line < lanes; ++line)
    vectors.push_back(line < lines ? pairs.widened(load(line), width) : zeros);
  vectors = transposed(b, loc, std::move(vectors));
  vectors.truncate(width);
  return vectors;
}

void PairedPanels::copyRows(const MatrixPlace &left, Value row, Value rows,
                            unsigned width) {
  pairs.forVectors(depth, [&](Value place, unsigned count) {
    Values ofRows = square(count, width, [&](unsigned number) -> Value {
      ask(left, row, plus(place, squaresAhead * int64_t(lanes) + number));
      return vector::LoadOp::create(b, loc, vectorType(width), left.elements,
                                    at(left, row, plus(place, number)));
    });
    for (auto [number, vector] : llvm::enumerate(ofRows)) {
      if (count != lanes)
        vector = vector::ExtractStridedSliceOp::create(
            b, loc, vector, ArrayRef<int64_t>{0}, ArrayRef<int64_t>{count},
            ArrayRef<int64_t>{1});
      vector::StoreOp::create(b, loc, vector, rows,
                              ValueRange{plus(row, int64_t(number)), place});
    }
  });
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

/// Copies the weights as they are. Returns the sum of the squares of each
/// vector of columns, and their largest magnitudes behind those of all.
PairedPanels::Values PairedPanels::copyAndMeasure(const MatrixPlace &weights,
                                                  Value column, Value panels,
                                                  Value panel,
                                                  ArrayRef<unsigned> widths) {
  auto ofVector = [&](size_t vector) { return int64_t(vector) * lanes; };
  auto place = [&](Value sum, size_t vector) {
    return Values{panel, sum, kernel.index(ofVector(vector))};
  };
  bool areTransposed = weights.ofColumn != 1;
  for (size_t number = 0; areTransposed && number < widths.size(); ++number)
    pairs.forVectors(depth, [&](Value sum, unsigned count) {
      Values ofSums =
          square(widths[number], count, [&](unsigned line) -> Value {
            Value from = plus(column, ofVector(number) + line);
            ask(weights, plus(sum, squaresAhead * int64_t(lanes)), from);
            return vector::LoadOp::create(b, loc, vectorType(count),
                                          weights.elements,
                                          at(weights, sum, from));
          });
      for (auto [line, vector] : llvm::enumerate(ofSums))
        vector::StoreOp::create(b, loc, vector, panels,
                                place(plus(sum, int64_t(line)), number));
    });
  auto read = [&](Value sum, size_t number) -> Value {
    if (areTransposed)
      return vector::LoadOp::create(b, loc, vectorType(lanes), panels,
                                    place(sum, number))
          .getResult();
    Value from = plus(column, ofVector(number));
    ask(weights, plus(sum, rowsAhead), from);
    Value vector =
        vector::LoadOp::create(b, loc, vectorType(widths[number]),
                               weights.elements, at(weights, sum, from));
    vector = pairs.widened(vector, widths[number]);
    vector::StoreOp::create(b, loc, vector, panels, place(sum, number));
    return vector;
  };
  size_t vectors = widths.size();
  Values start;
  for (Type type : {Type(b.getF32Type()), Type(b.getI32Type())})
    start.append(vectors,
                 arith::ConstantOp::create(
                     b, loc, b.getZeroAttr(VectorType::get(lanes, type)))
                     .getResult());
  return emitLoop(b, loc, kernel.index(0), kernel.index(depth), kernel.index(1),
                  start, [&](Value sum, ValueRange before) {
                    Values after(before);
                    for (size_t number = 0; number < vectors; ++number)
                      pairs.addMeasures(read(sum, number), after[number],
                                        after[vectors + number]);
                    return after;
                  });
}

/// Multiplies a panel by `factors`, and writes what its sums begin with and are
/// multiplied by in the end behind it.
void PairedPanels::scale(Value panels, Value panel, ArrayRef<Value> factors,
                         ArrayRef<Value> back) {
  auto place = [&](Value sum, size_t vector) {
    return Values{panel, sum, kernel.index(int64_t(vector) * lanes)};
  };
  auto scaled = [&](Value sum, size_t number) {
    Value vector = vector::LoadOp::create(b, loc, vectorType(lanes), panels,
                                          place(sum, number));
    vector = arith::MulFOp::create(b, loc, vector, factors[number]);
    vector::StoreOp::create(b, loc, vector, panels, place(sum, number));
    return vector;
  };
  int64_t inPairs = depth / stepOfPairs * stepOfPairs;
  Values start(factors.size(), arith::ConstantOp::create(
                                   b, loc, b.getZeroAttr(vectorType(lanes))));
  auto fused = arith::FastMathFlagsAttr::get(b.getContext(),
                                             arith::FastMathFlags::contract);
  start = emitLoop(
      b, loc, kernel.index(0), kernel.index(inPairs), kernel.index(stepOfPairs),
      start, [&](Value step, ValueRange before) {
        Values after(before);
        for (size_t number = 0; number < factors.size(); ++number) {
          Value last;
          for (int64_t sum = 0; sum < stepOfPairs; ++sum) {
            Value weight = scaled(plus(step, sum), number);
            int sign = signOfPair(sum, stepOfPairs);
            if (sign != 0 && sum % 2 == 1) {
              Value product =
                  arith::MulFOp::create(b, loc, last, weight, fused);
              after[number] = sign > 0
                                  ? arith::SubFOp::create(b, loc, after[number],
                                                          product, fused)
                                        .getResult()
                                  : arith::AddFOp::create(b, loc, after[number],
                                                          product, fused);
            }
            last = weight;
          }
        }
        return after;
      });
  for (size_t number = 0; number < factors.size(); ++number) {
    for (int64_t sum = inPairs; sum < depth; ++sum)
      scaled(kernel.index(sum), number);
    for (auto [row, vector] :
         {std::pair(depth, start[number]), {depth + 1, back[number]}})
      vector::StoreOp::create(b, loc, vector, panels,
                              place(kernel.index(row), number));
  }
}

void PairedPanels::pack(const MatrixPlace &weights, Value column, Value panels,
                        Value panel, ArrayRef<unsigned> widths) {
  Values measures = copyAndMeasure(weights, column, panels, panel, widths);
  Values factors, back;
  for (size_t number = 0; number < widths.size(); ++number) {
    auto [factor, inverse] = pairs.factorsOfColumns(
        {/*pairs=*/{}, measures[number], measures[widths.size() + number]});
    factors.push_back(factor);
    back.push_back(inverse);
  }
  scale(panels, panel, factors, back);
}

} // namespace keratin
