//===- PairedLoops.h - the loops around pairs -------------------*- C++ -*-===//
//
// What PairedEmitter.cpp (blocks, tiles and what follows from sums),
// PairedRows.cpp (rows of A) and PairedSteps.cpp (weights that are not known)
// share.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_CODEGEN_CPU_PAIREDLOOPS_H
#define KERATIN_CODEGEN_CPU_PAIREDLOOPS_H

#include "codegen/cpu/PairedProduct.h"
#include "codegen/cpu/PairedTiles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace keratin {

/// Emits a product in pairs.
class PairedEmitter {
public:
  PairedEmitter(Kernel &kernel, mlir::linalg::GenericOp root,
                const PairedPlan &plan, llvm::ArrayRef<Output> outputs)
      : kernel(kernel), b(kernel.builder()), loc(kernel.loc()), reader(kernel),
        pairs(kernel, plan.depth(), plan.lanes), root(root), plan(plan),
        outputs(outputs) {}

  void run();

private:
  using Value = mlir::Value;
  using Values = llvm::SmallVector<Value>;
  using Then = llvm::function_ref<void(Value)>;
  using Range = std::pair<Value, Value>;

  Value plus(Value value, int64_t offset) {
    return kernel.plus(value, kernel.index(offset));
  }
  Value times(Value value, int64_t factor) {
    return kernel.times(value, factor);
  }
  Value minus(Value left, Value right) {
    return mlir::arith::SubIOp::create(b, loc, left, right);
  }
  void loop(Value from, Value to, int64_t step, Then body) {
    emitTurns(kernel, reader, from, to, step, body);
  }
  Value constant(mlir::TypedAttr value) {
    return mlir::arith::ConstantOp::create(b, loc, value);
  }
  Value real(double value) { return constant(b.getF32FloatAttr(float(value))); }

  void layOut();
  void layOutSteps();
  Value elementsOf(mlir::OpOperand &operand);

  /// Rows of a sample that are measured together.
  struct Rows {
    Value sample; ///< null where all are one
    Value first, count;
    Value before; ///< of all samples
    /// Whether this block is the first one of the call; null where it is all.
    Value isFirst;
  };
  Rows rowsOf(Value block, Value firstBlock = {});
  Value blocks();
  void emitShare(Range share);
  void emitBlock(const Rows &rows, Range panels);
  void
  forPanels(Range panels,
            llvm::function_ref<void(Value, llvm::ArrayRef<unsigned>)> body);

  void emitSteps();
  void transposeRows(const Rows &rows);
  void measureBlock(Value block, const Rows &rows);
  void packPanel(Value panel, Value place, llvm::ArrayRef<unsigned> widths);
  void packPanels(Range panels);
  void emitPanels(Range share);

  Value leftAt(const Rows &rows, Value row, Value place, unsigned width);
  void copyRuns(const Rows &rows, Value row);
  void copyRows(const Rows &rows);
  Value inMemory(const Rows &rows, Value row);
  Value measureRows(const Rows &rows);
  Value whereRowsAre(const Rows &rows, Value areCopied);

  struct Tile {
    const Rows &rows;
    Value left; ///< where the first row of the block is
    Value row, panel;
    unsigned height;
    llvm::ArrayRef<unsigned> widths; ///< of the vectors of columns
  };
  void multiplyTiles(const Rows &rows, Value left, Value panel,
                     llvm::ArrayRef<unsigned> widths);
  void multiplyTile(const Tile &tile);
  unsigned lanesOf(unsigned width);
  Value weightsAt(const Tile &tile, Value place, unsigned vector);
  void askForPanel(const Tile &tile, Value step);
  void takeWeightsAhead();
  void askForLater(const Tile &tile, Value step);
  void askFor(Value address);
  void finish(const Tile &tile, llvm::ArrayRef<Value> sums);
  void storeRows(const Tile &tile, llvm::ArrayRef<Value> rows,
                 llvm::ArrayRef<Value> sums, llvm::ArrayRef<Value> factors);

  Kernel &kernel;
  mlir::OpBuilder &b;
  mlir::Location loc;
  LaneReader reader;
  PairedTiles pairs;
  mlir::linalg::GenericOp root;
  const PairedPlan &plan;
  llvm::ArrayRef<Output> outputs;

  Value weights;  ///< [panel][element of the sum, what is behind them][column]
  Value given;    ///< [row of all samples][element], where A has a stride
  Value elements; ///< those of A, where it has none and is in memory
  /// Of a block, or of all rows where those are measured first: [row][what is
  /// subtracted, what is multiplied by], and [row][element].
  Value facts, copied;
  Value areCopied; ///< [block] with rows that are read there, as a number
  Value sums;      ///< [row of a tile][column]
  Value ahead;     ///< where weights of a later kernel begin, as a number
};

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_PAIREDLOOPS_H
