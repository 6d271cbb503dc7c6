//===- GatePairs.cpp - sums of gates in pairs -----------------------------===//
//
// Two products by one multiplication (codegen/cpu/PairedProduct.h). All rows of
// a call are copied when it begins, each as large as the weights, for the state
// of a layer is small. Panels of weights are [gate][block of units]; sums go to
// memory as they are, and are completed where they are read.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/DotLanes.h"
#include "codegen/cpu/GateLoops.h"
#include "codegen/cpu/PairedTiles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace keratin {

PairedTiles GateEmitter::pairs() {
  return {kernel, staticLoopExtent(root, reductions.back()), lanes};
}

/// Memory for copies, and for what is known of each row: what is subtracted
/// from its sums, and what they are multiplied by.
void GateEmitter::allocatePairs() {
  int64_t total = staticLoopExtent(root, gate - 1);
  auto allocate = [&](int64_t columns) -> Value {
    auto type = MemRefType::get({total, columns}, b.getF32Type());
    return memref::AllocaOp::create(b, loc, type, b.getI64IntegerAttr(64));
  };
  copies = allocate(copiedStride);
  facts = allocate(2);
}

/// Copies and measures the rows of this call.
void GateEmitter::copyPairedRows() {
  auto [from, to] = rowsOfCall();
  emitTurns(kernel, reader, from, to, 1, [&](Value row) {
    Position place = point(0, 0, 0);
    place[gate - 1] = reader.symbol(row);
    place[reductions.back()] = getAffineConstantExpr(0, b.getContext());
    Value memref = kernel.memrefOf(factor->get());
    Value first = addressOf(kernel, memref, reader.at(elementOfFactor(place)));
    PairedTiles::Facts ofRow = pairs().scaleRow(
        [&](Value element, unsigned width) -> Value {
          return LLVM::LoadOp::create(b, loc,
                                      VectorType::get(width, b.getF32Type()),
                                      pairs().behind(first, element),
                                      /*alignment=*/sizeof(float));
        },
        [&](Value vector, Value element) {
          vector::StoreOp::create(b, loc, vector, copies,
                                  ValueRange{row, element});
        });
    pairs().storeFacts(ofRow, facts, row);
  });
}

/// The panel of the present block of units that a gate has.
Value GateEmitter::panelOf(Value number) {
  int64_t blocks = units / (int64_t(vectors) * lanes);
  return kernel.plus(kernel.times(number, blocks), block);
}

Value GateEmitter::pairedWeights(Value panel, Value element, unsigned column) {
  return vector::LoadOp::create(
      b, loc, VectorType::get(lanes, b.getF32Type()),
      kernel.memrefOf(weights->get()),
      ValueRange{panel, element, kernel.index(int64_t(column) * lanes)});
}

/// The sums of a block of units, one gate after the other, and what follows.
void GateEmitter::emitPairedRows() {
  forTiles([&] { prefetchAdded(); });
  int64_t ofGate = int64_t(vectors) * lanes, ofRow = gates * ofGate;
  SmallVector<unsigned> widths(vectors, lanes);
  emitTurns(kernel, reader, kernel.index(0), kernel.index(gates), 1,
            [&](Value number) {
              Value panel = panelOf(number);
              forTiles([&] {
                Value row = reader.at(rowExpr(0));
                Value first =
                    addressOf(kernel, copies, kernel.times(row, copiedStride));
                Sums sums = pairs().multiply(
                    {first, copiedStride, rows, widths},
                    [&](Value element, unsigned column) {
                      return pairedWeights(panel, element, column);
                    },
                    [](Value) {});
                Value place = kernel.plus(kernel.times(row, ofRow),
                                          kernel.times(number, ofGate));
                for (auto [turn, sum] : llvm::enumerate(sums)) {
                  auto offset = int64_t(turn / vectors) * ofRow +
                                int64_t(turn % vectors) * lanes;
                  vector::StoreOp::create(
                      b, loc, sum, memory,
                      kernel.plus(place, kernel.index(offset)));
                }
              });
            });
  auto [from, to] = rowsOfCall();
  finishRows(from, to);
}

/// What the sums of the present rows, as they are in memory, are: products, and
/// what these are added to.
GateEmitter::Sums GateEmitter::completed(ValueRange sums) {
  Sums starts = startSums(), result;
  for (auto [turn, sum] : llvm::enumerate(sums)) {
    auto column = unsigned(turn % columns);
    auto number = int64_t(turn / columns) % gates;
    auto row = unsigned(turn / columns / size_t(gates));
    Value inMemory = reader.at(canonical(rowExpr(row)));
    Value last = kernel.index(staticLoopExtent(root, reductions.back()) + 1);
    Value factors = pairedWeights(panelOf(kernel.index(number)), last, column);
    Value products =
        pairs().complete(sum, factors, pairs().loadFacts(facts, inMemory));
    result.push_back(
        arith::AddFOp::create(b, loc, products, starts[turn]).getResult());
  }
  return result;
}

} // namespace keratin
