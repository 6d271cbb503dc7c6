//===- GateLoops.h - the loops around gates ---------------------*- C++ -*-===//
//
// What GateEmitter.cpp (the loops, and what follows from sums), GateSums.cpp
// (sums in vectors), GatePairs.cpp (those in pairs), GateTiles.cpp (sums in
// tile registers) and GateSplit.cpp (those of f32) share.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_CODEGEN_CPU_GATELOOPS_H
#define KERATIN_CODEGEN_CPU_GATELOOPS_H

#include "codegen/cpu/GateForm.h"
#include "codegen/cpu/LaneReader.h"
#include "codegen/cpu/PairedTiles.h"

namespace keratin {

/// Emits a kernel of that form.
class GateEmitter : GateForm {
public:
  GateEmitter(Kernel &kernel, const GateForm &form)
      : GateForm(form), kernel(kernel), b(kernel.builder()), loc(kernel.loc()),
        reader(kernel) {}

  void run();

private:
  using Sums = llvm::SmallVector<mlir::Value>;

  bool alternates();
  unsigned dimOfWeights(unsigned loop);
  Packing packing();
  void packWeights();
  void allocate();

  void emitBlocks(mlir::Value from, mlir::Value to);
  void emitBlock(mlir::Value number, int64_t count);
  void emitOuter(unsigned loop);
  void emitRows();
  bool canShareRows();
  void countTilesOfShare();
  std::pair<mlir::Value, mlir::Value> rowsOfCall();
  void forTiles(llvm::function_ref<void()> body);
  void emitRowsFrom(mlir::Value from, mlir::Value to, unsigned height,
                    llvm::function_ref<void()> body);
  void emitTile();
  mlir::Value placeOfSums(unsigned row, unsigned number, unsigned column);
  Sums readSums();
  void prefetchAdded();
  void prefetchNext();
  Sums startSums();
  Sums reduce(llvm::ArrayRef<unsigned> loops, mlir::ValueRange sums);
  void forEachSum(
      llvm::function_ref<void(unsigned row, unsigned gate, unsigned column)>
          body);
  Sums step(mlir::ValueRange sums);
  Sums stepOfPairs(mlir::ValueRange sums, bool isHalf = false);
  Sums sum24();
  Sums step24(mlir::ValueRange sums);
  mlir::AffineExpr elementOfFactor(llvm::ArrayRef<mlir::AffineExpr> dims);
  mlir::Value startOfStep(int64_t elements);
  int64_t pairsOfGate() const { return int64_t(vectors) * lanes * 2; }

  PairedTiles pairs();
  void allocatePairs();
  void copyPairedRows();
  mlir::Value panelOf(mlir::Value number);
  mlir::Value pairedWeights(mlir::Value panel, mlir::Value element,
                            unsigned column);
  void emitPairedRows();
  Sums completed(mlir::ValueRange sums);

  void emitTiledRows();
  void emitTilesOf(mlir::Value begin, mlir::Value all, mlir::Value last);
  void sumTiles(llvm::ArrayRef<mlir::Value> firsts);
  void sumGates(llvm::ArrayRef<mlir::Value> firsts, int64_t from, int64_t to);
  void addStep(llvm::ArrayRef<mlir::Value> firsts, int64_t from, int64_t to,
               llvm::function_ref<int64_t(int64_t, int64_t)> tileOf);
  void emitSteps(llvm::ArrayRef<unsigned> loops,
                 llvm::function_ref<void()> step);
  void finishRows(mlir::Value from, mlir::Value to);
  bool overlaps() const;
  void allocateKept();
  void keep(mlir::Value from);
  void finishSome(mlir::Value step);
  void finishKept(mlir::Value firstGroup, mlir::Value lastGroup);
  void finishAllKept(int64_t count);

  int64_t splitSteps() const;
  int64_t elementsOfSplitBlock() const;
  int64_t elementsOfSplitTile() const;
  void allocateSplit();
  void splitRows();
  void addSplitSteps(llvm::ArrayRef<mlir::Value> firsts, int64_t from,
                     int64_t to,
                     llvm::function_ref<int64_t(int64_t, int64_t)> tileOf);

  int64_t stepsOfTurn();
  void finish(mlir::ValueRange sums);
  Position resultPlace(unsigned row, unsigned column);
  void writeResults(llvm::ArrayRef<std::pair<unsigned, unsigned>> vectors);
  mlir::AffineExpr rowExpr(unsigned row);
  Position point(unsigned row, unsigned gate, unsigned column);
  unsigned width(unsigned column);

  Kernel &kernel;
  mlir::OpBuilder &b;
  mlir::Location loc;
  LaneReader reader;
  unsigned rows = 1, columns = 1; ///< of the present tile
  int64_t valid = 0;              ///< units of the present block
  mlir::Value block;              ///< its number
  mlir::Value start; ///< of its weights, in elements, where they are in pairs
                     ///< or have 24 bits
  unsigned gateOfSums = 0;   ///< that is summed up, where those are in turn
  mlir::Value back;          ///< whether the one before it comes next
  mlir::Value memory;        ///< of the sums of some rows of a block, or null
  mlir::AffineExpr firstRow; ///< of those
  mlir::Value shape;         ///< of tile registers
  mlir::Value kept; ///< which sums in `memory` wait for what follows from them
  /// Where the parts of all rows are, and from which place on.
  mlir::Value splitMemory, firstOfSplit;
  mlir::Value copies, facts; ///< [row][element], and what is known of it
  /// The rows of this call, where threads share them, and how many tiles of
  /// each height those are.
  mlir::Value sharedFrom, sharedTo;
  llvm::SmallVector<std::pair<unsigned, mlir::Value>> tilesOfShare;
};

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_GATELOOPS_H
