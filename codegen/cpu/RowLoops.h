//===- RowLoops.h - the loops of a kernel computed row by row ---*- C++ -*-===//
//
// What RowForm.cpp (which kernels, and in which passes) and RowEmitter.cpp (the
// loops) share.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_CODEGEN_CPU_ROWLOOPS_H
#define KERATIN_CODEGEN_CPU_ROWLOOPS_H

#include "codegen/cpu/LaneReader.h"
#include "codegen/cpu/RowEmitter.h"

#include "llvm/ADT/SetVector.h"

namespace keratin {

/// Emits the passes over rows.
class RowEmitter {
public:
  RowEmitter(Kernel &kernel, const VectorUnit &unit)
      : kernel(kernel), b(kernel.builder()), loc(kernel.loc()), reader(kernel),
        unit(unit), ops(kernel.from().getOps<mlir::linalg::GenericOp>()),
        results(kernel.results()) {}
  RowEmitter(Kernel &kernel, const VectorUnit &unit, const RowBlock &block)
      : kernel(kernel), b(kernel.builder()), loc(kernel.loc()), reader(kernel),
        unit(unit), ops(block.ops), results({block.result}), block(&block) {
    done.insert(block.given);
    for (const auto &[value, memory] : block.kept)
      results.push_back(value);
  }

  bool matches();
  void run();
  void runBlock();

private:
  using Sums = llvm::SmallVector<mlir::Value>;
  /// What one reading of the row computes.
  struct Pass {
    llvm::SmallVector<mlir::linalg::GenericOp> reductions;
    llvm::SmallSetVector<mlir::Value, 4> stored;
    llvm::DenseSet<mlir::Value> known; ///< what passes before it have left
    bool computesFunctions = false;
    unsigned streams = 1; ///< vectors of partial results of each reduction
    unsigned width = 1;   ///< lanes of each, one or more vectors of the machine
    unsigned first = 0;   ///< row of a group,
    unsigned rows = 1;    ///< and how many one loop goes along side by side
    bool asksForNext = false; ///< while this row is at hand

    size_t numSums() const { return rows * reductions.size() * streams; }
    int64_t step() const { return int64_t(width) * streams; }
  };

  bool isReduction(mlir::Operation *op) const {
    auto generic = dyn_cast_or_null<mlir::linalg::GenericOp>(op);
    return generic && generic.getNumReductionLoops() != 0;
  }
  bool hasExtents(mlir::linalg::GenericOp op, llvm::ArrayRef<int64_t> expected);
  bool isWhole(mlir::Value value);
  bool leadsToRow(mlir::linalg::GenericOp op, mlir::AffineMap map);
  bool fits(mlir::linalg::GenericOp op);
  void forEachOperand(mlir::linalg::GenericOp op,
                      llvm::function_ref<void(mlir::Value)> visit);
  bool isKnown(mlir::Value value);
  bool isExpensive(mlir::Value value);
  bool computesFunctions();
  bool computesExpensive(mlir::Value value);
  unsigned usesInRow(mlir::Value value);
  void collectStored(mlir::Value value, Pass &pass);

  void planPasses();
  bool canStagger();
  void setSteps();
  unsigned rowsOfGroup();
  bool rowsClash();
  unsigned rowLoop() const { return block ? block->axis : rows - 1; }
  void emitGroups(mlir::Value from, mlir::Value to);
  mlir::Value emitStaggered(mlir::Value from, mlir::Value to);
  void emitGroup(unsigned count);
  void emitSingles();
  Position pointOfSingle(mlir::Value result);
  // RowLanes.cpp
  struct Run {
    mlir::Value memref, start; ///< of one dimension, from that element on
  };
  bool goesAcross();
  bool isRunOfRows(mlir::linalg::GenericOp op, mlir::OpOperand &input);
  void emitAcross(mlir::Value from, mlir::Value to);
  void emitRowsAcross(mlir::Value count);
  mlir::Value reduceAcross(mlir::linalg::GenericOp op);
  void unzipRows(mlir::Value count);
  void zipRows(llvm::ArrayRef<mlir::Value> vectors, mlir::Value memref,
               mlir::Value count);
  Run runOf(mlir::Value memref);
  Run copyOf(mlir::Value memref);
  void copyRun(Run from, Run to, mlir::Value count, mlir::Value known);
  Position pointAcross(int64_t element);
  bool nextPass(Pass &pass);
  void emitPasses(llvm::ArrayRef<Pass> passes);
  void forEachRow(const Pass &pass, llvm::function_ref<void(unsigned)> body);
  void usePlaces();
  void forgetPlaces();
  Sums trailingLoops(llvm::ArrayRef<Pass> passes, unsigned loop, Sums sums);
  Sums alongLane(llvm::ArrayRef<Pass> passes, Sums sums);
  void turns(const Pass &pass, llvm::MutableArrayRef<mlir::Value> sums);
  Sums turn(const Pass &pass, mlir::ValueRange sums, int64_t offset,
            unsigned width);
  void rest(const Pass &pass, llvm::MutableArrayRef<mlir::Value> sums,
            int64_t left);
  void prefetchRow(const Position &point, int64_t offset, unsigned width);
  LaneReader::Part memoryFor(mlir::Value value);
  LaneReader::Part inPanel();
  LaneReader::Part perRow(mlir::Value memory);
  int64_t length() const;
  bool takesPlaceOfGiven(mlir::Value value);
  Position point(int64_t offset);
  Position placeOf(mlir::linalg::GenericOp reduction);

  Kernel &kernel;
  mlir::OpBuilder &b;
  mlir::Location loc;
  LaneReader reader;
  const VectorUnit &unit;
  llvm::SmallVector<mlir::linalg::GenericOp> ops;
  llvm::SmallVector<mlir::Value> results;
  const RowBlock *block = nullptr;
  unsigned rows = 0, loops = 0, lanes = 0;
  unsigned lanesAcross = 0;           ///< of vectors that lie across rows
  llvm::SmallVector<int64_t> extents; ///< of the row
  mlir::linalg::GenericOp whole;      ///< one with all the loops
  llvm::DenseSet<mlir::Value> done;   ///< reductions and stored values
  llvm::SmallVector<Pass> passes;
  /// Nothing but what all of them have left.
  Pass end;
  bool staggers = false; ///< passes of some rows go side by side
  unsigned group = 1;    ///< rows that go side by side
  unsigned row = 0;      ///< of the group, that is emitted
  /// Of the stored values, for each row of a group.
  llvm::DenseMap<std::pair<mlir::Value, unsigned>, LaneReader::Part> places;
};

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_ROWLOOPS_H
