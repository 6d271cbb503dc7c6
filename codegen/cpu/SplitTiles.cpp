//===- SplitTiles.cpp - products of f32 in tile registers -----------------===//
#include "codegen/cpu/SplitTiles.h"

#include "codegen/cpu/PairPacking.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {

bool fillsSplitSteps(int64_t depth) {
  auto whole = int64_t(llvm::alignTo(depth, splitDepth));
  return whole * 4 <= depth * 5;
}

std::pair<Value, Value> addSplitScratch(Kernel &kernel, int64_t elements) {
  constexpr int64_t fewest = 2, most = 16;
  return kernel.addScratch(
      kernel.builder().getBF16Type(), elements,
      std::clamp<int64_t>(mostSplitBytes / (2 * elements), fewest, most));
}

Value loadPadded(Kernel &kernel, Value memref, Value place, Type element,
                 int64_t width, int64_t padded) {
  OpBuilder &b = kernel.builder();
  Location loc = kernel.loc();
  Value value = LLVM::LoadOp::create(b, loc, VectorType::get(width, element),
                                     addressOf(kernel, memref, place),
                                     /*alignment=*/2);
  if (width == padded)
    return value;
  Value zeros = arith::ConstantOp::create(
      b, loc, b.getZeroAttr(VectorType::get(padded, element)));
  return vector::InsertStridedSliceOp::create(
      b, loc, value, zeros, ArrayRef<int64_t>{0}, ArrayRef<int64_t>{1});
}

void splitStep(Kernel &kernel, Value memref, Value place, Value split, Value to,
               int64_t apart, int64_t elements) {
  OpBuilder &b = kernel.builder();
  Location loc = kernel.loc();
  constexpr int64_t half = splitDepth / 2;
  auto floats = VectorType::get(half, b.getF32Type());
  auto words = VectorType::get(half, b.getI32Type());
  auto constant = [&](int32_t value) -> Value {
    return arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(words, b.getI32IntegerAttr(value)));
  };
  // Where weights are packed an element is paired with the one that many later.
  Value low = loadPadded(kernel, memref, place, b.getF32Type(),
                         std::min(half, elements), half);
  Value high = arith::ConstantOp::create(b, loc, b.getZeroAttr(floats));
  if (elements > half)
    high = loadPadded(kernel, memref, kernel.plus(place, kernel.index(half)),
                      b.getF32Type(), elements - half, half);
  Value upper = constant(int32_t(0xffff0000)), shift = constant(16);
  auto bitsOf = [&](Value value) -> Value {
    return arith::BitcastOp::create(b, loc, words, value);
  };
  auto upperOf = [&](Value value) -> Value {
    return arith::AndIOp::create(b, loc, bitsOf(value), upper);
  };
  auto without = [&](Value value, Value bits) -> Value {
    return arith::SubFOp::create(
        b, loc, value, arith::BitcastOp::create(b, loc, floats, bits));
  };
  for (int64_t part = 0; part < splitParts; ++part) {
    Value ofHigh = upperOf(high);
    Value ofLow = arith::ShRUIOp::create(b, loc, bitsOf(low), shift);
    Value at = kernel.plus(to, kernel.index(part * apart));
    LLVM::StoreOp::create(b, loc, arith::OrIOp::create(b, loc, ofLow, ofHigh),
                          addressOf(kernel, split, at), /*alignment=*/64);
    if (part + 1 == splitParts)
      break;
    low = without(low, upperOf(low));
    high = without(high, ofHigh);
  }
}

void splitRow(Kernel &kernel, LaneReader &reader, Value memref, Value place,
              Value split, Value to, int64_t apart, int64_t depth) {
  int64_t whole = depth / splitDepth, rest = depth % splitDepth;
  OpBuilder &b = kernel.builder();
  auto at = [&](Value from, Value step, int64_t each) {
    if (std::optional<int64_t> known = getConstantIntValue(step))
      return kernel.plus(from, kernel.index(*known * each));
    return kernel.plus(
        from, arith::MulIOp::create(b, kernel.loc(), step, kernel.index(each)));
  };
  auto split32 = [&](Value step, int64_t elements) {
    splitStep(kernel, memref, at(place, step, splitDepth), split,
              at(to, step, splitParts * apart), apart, elements);
  };
  emitTurns(kernel, reader, kernel.index(0), kernel.index(whole), 1,
            [&](Value step) { split32(step, splitDepth); });
  if (rest != 0)
    split32(kernel.index(whole), rest);
}

void addSplitDots(Kernel &kernel, const SplitStep &step) {
  constexpr std::pair<int64_t, int64_t> products[] = {{0, 0}, {0, 1}, {0, 2},
                                                      {2, 0}, {1, 0}, {1, 1}};
  constexpr int64_t registers = 2;
  std::pair<int64_t, int64_t> loaded = {-1, -1};
  for (auto [ofRow, ofColumn] : products)
    for (int64_t first = 0; first < step.columns; first += registers) {
      int64_t end = std::min(first + registers, step.columns);
      // More columns than registers take turns in them.
      if (ofColumn != loaded.second || step.columns > registers)
        for (int64_t column = first; column < end; ++column)
          step.loadColumn(column, ofColumn, firstColumnTile + column - first);
      for (int64_t row = 0; row < step.rows; ++row) {
        if (ofRow != loaded.first)
          step.loadRow(row, ofRow, firstRowTile + row);
        for (int64_t column = first; column < end; ++column)
          addTileDots(kernel, step.sums(row, column), firstRowTile + row,
                      firstColumnTile + column - first);
      }
      loaded.first = ofRow;
      if (end == step.columns)
        loaded.second = ofColumn;
    }
}

} // namespace keratin
