//===- DotPanel.cpp - factors that are packed where they are used ---------===//
#include "codegen/cpu/DotLoops.h"
#include "codegen/cpu/SplitTiles.h"
#include "codegen/cpu/Transposed.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace keratin {

/// Copies `columns` columns, of which the first begins at `right`.
void DotEmitter::fillPanel(Value right, int64_t columns) {
  fillSums(plan.sums, right, kernel.index(0), columns);
}

/// `number` counts the turns of loops of the sum that are done.
void DotEmitter::fillSums(ArrayRef<unsigned> loops, Value right, Value number,
                          int64_t columns) {
  unsigned sum = loops[0];
  Value turns = kernel.index(extent(sum));
  Value before = times(number, extent(sum));
  auto at = [&](Value iv) {
    return kernel.plus(right, times(iv, plan.rightStrides[sum]));
  };
  if (loops.size() > 1)
    return loop(kernel.index(0), turns, 1, [&](Value iv) {
      fillSums(loops.drop_front(), at(iv), kernel.plus(before, iv), columns);
    });
  if (!plan.hasPairs)
    return loop(kernel.index(0), turns, 2, [&](Value iv) {
      storeRows(at(iv), kernel.plus(before, iv), columns);
    });
  constexpr int64_t square = 2 * dotLanes;
  int64_t whole = extent(sum) / square * square;
  loop(kernel.index(0), kernel.index(whole), square, [&](Value iv) {
    storeSquares(at(iv), kernel.plus(before, iv), columns, dotLanes);
  });
  if (whole != extent(sum)) {
    Value iv = kernel.index(whole);
    storeSquares(at(iv), kernel.plus(before, iv), columns,
                 (extent(sum) - whole) / 2);
  }
}

/// Two neighbours of the sum, whose columns are neighbours in memory: they are
/// shuffled together.
void DotEmitter::storeRows(Value right, Value number, int64_t columns) {
  Value next =
      kernel.plus(right, kernel.index(plan.rightStrides[plan.sums.back()]));
  Value place = times(number, plan.block);
  for (int64_t column = 0; column < columns; column += dotLanes) {
    int64_t width = std::min(dotLanes, columns - column);
    Value offset = kernel.index(column);
    Value even = loadPadded(kernel, rightSource, kernel.plus(right, offset),
                            b.getBF16Type(), width, dotLanes);
    Value odd = loadPadded(kernel, rightSource, kernel.plus(next, offset),
                           b.getBF16Type(), width, dotLanes);
    LLVM::StoreOp::create(
        b, loc, vector::InterleaveOp::create(b, loc, even, odd).getResult(),
        address(rightMemory, kernel.plus(place, kernel.index(column * 2))),
        /*alignment=*/64);
  }
}

/// `pairs` pairs of neighbours of the sum, each one word of memory: squares of
/// words are transposed.
void DotEmitter::storeSquares(Value right, Value number, int64_t columns,
                              int64_t pairs) {
  auto words = VectorType::get(dotLanes, b.getI32Type());
  Value zeros = arith::ConstantOp::create(b, loc, b.getZeroAttr(words));
  Value place = times(number, plan.block);
  for (int64_t first = 0; first < columns; first += dotLanes) {
    Values square(size_t(dotLanes), zeros);
    for (int64_t column = first; column < std::min(columns, first + dotLanes);
         ++column) {
      Value offset = kernel.index(column * plan.rightStrides[plan.lane]);
      square[size_t(column - first)] =
          loadPadded(kernel, rightSource, kernel.plus(right, offset),
                     b.getI32Type(), pairs, dotLanes);
    }
    for (auto [pair, value] :
         llvm::enumerate(transposed(b, loc, std::move(square)))) {
      if (int64_t(pair) == pairs)
        break;
      int64_t offset = (int64_t(pair) * plan.block + first) * 2;
      LLVM::StoreOp::create(
          b, loc, value,
          address(rightMemory, kernel.plus(place, kernel.index(offset))),
          /*alignment=*/64);
    }
  }
}

} // namespace keratin
