//===- DotLoops.h - the loops around dot products ---------------*- C++ -*-===//
//
// What DotEmitter.cpp (the loops), DotSums.cpp (the instructions),
// DotFinish.cpp (what follows from sums), DotPanel.cpp (the right factor where
// it is not packed) and DotSplit.cpp (factors of f32) share.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_CODEGEN_CPU_DOTLOOPS_H
#define KERATIN_CODEGEN_CPU_DOTLOOPS_H

#include "codegen/cpu/DotTiles.h"
#include "codegen/cpu/Dots.h"

namespace keratin {

/// Numbers that tell which tile of sums is kept (DotFinish.cpp).
inline constexpr int64_t wordsOfTile = 5;

/// Emits the loops of a root as its plan says.
class DotEmitter {
public:
  DotEmitter(Kernel &kernel, mlir::linalg::GenericOp root, const DotPlan &plan,
             llvm::ArrayRef<Output> outputs)
      : kernel(kernel), b(kernel.builder()), loc(kernel.loc()), reader(kernel),
        root(root), plan(plan), outputs(outputs), height(plan.height) {
    reader.setLane(plan.lane);
  }

  void run();
  /// Whether threads share blocks of columns.
  bool hasSharedColumns() const { return sharesColumns; }

private:
  using Then = llvm::function_ref<void(mlir::Value)>;
  using Values = llvm::SmallVector<mlir::Value>;

  /// Where a tile of rows is: which turn of the loops around its run, its first
  /// row in that, the first of its own rows that no other tile has, and where
  /// some tiles have a row less whether it is one of them.
  struct Tile {
    mlir::Value outer, first, skipped, isLow = {};
  };

  /// Numbers of bf16 for each element of a factor.
  int64_t parts() const { return plan.split ? splitParts : 1; }
  bool usesTiles() const { return plan.unit == DotUnit::Tiles; }
  /// Tiles of rows that are summed up at once.
  int64_t mostTiles() const { return usesTiles() ? 2 : 1; }
  int64_t extent(unsigned loop) { return staticLoopExtent(root, loop); }
  llvm::ArrayRef<unsigned> outerRows() {
    return llvm::ArrayRef(plan.rows).drop_back(plan.run);
  }
  llvm::ArrayRef<unsigned> runRows() {
    return llvm::ArrayRef(plan.rows).take_back(plan.run);
  }

  mlir::Value times(mlir::Value value, int64_t factor) {
    return kernel.times(value, factor);
  }
  mlir::Value times(mlir::Value left, mlir::Value right) {
    return kernel.times(left, right);
  }
  mlir::Value over(mlir::Value value, mlir::Value divisor, bool rest) {
    return kernel.over(value, divisor, rest);
  }
  void loop(mlir::Value from, mlir::Value to, int64_t step, Then body);

  mlir::Value address(mlir::Value memref, mlir::Value element) {
    return addressOf(kernel, memref, element);
  }

  void layOut();
  void emitHeight(int64_t rows);
  void emitOuter(llvm::ArrayRef<unsigned> loops, mlir::Value left,
                 mlir::Value right,
                 llvm::function_ref<void(mlir::Value, mlir::Value)> body);
  void emitBlocks(mlir::Value left, mlir::Value right);
  void emitColumns(mlir::Value first, mlir::Value last, mlir::Value left,
                   mlir::Value right);
  void emitTiles(mlir::Value group, int64_t tiles, int64_t columns,
                 mlir::Value left, mlir::Value right);
  void emitTiles(llvm::ArrayRef<Tile> tiles, llvm::ArrayRef<mlir::Value> lefts,
                 mlir::Value right, int64_t columns);
  void bindLoops(llvm::ArrayRef<unsigned> loops, mlir::Value number);
  mlir::Value extentOf(llvm::ArrayRef<unsigned> loops);

  Values sumUp(llvm::ArrayRef<unsigned> loops, llvm::ArrayRef<mlir::Value> left,
               mlir::Value right, mlir::Value number, int64_t columns,
               mlir::ValueRange sums);
  int64_t depth();
  int64_t elementsOfStep() { return plan.step * plan.block * parts(); }
  int64_t elementsOfBlock() { return depth() * plan.block * parts(); }
  int64_t steps() { return depth() / plan.step; }
  /// Those that a tile takes at once.
  int64_t turnsOfSum() { return plan.split ? stepsAtOnce : steps(); }
  int64_t elementsOfTile() {
    return stepsAtOnce * plan.step * plan.height * parts();
  }
  int64_t blocksOfColumns() {
    return int64_t(llvm::divideCeil(plan.columns, plan.block));
  }
  /// Those of all turns of the loops that only columns have.
  int64_t blocksOfAll() {
    int64_t blocks = blocksOfColumns();
    for (unsigned loop : plan.outer)
      blocks *= extent(loop);
    return blocks;
  }
  int64_t tilesAtOnce();
  mlir::Value placeAt(llvm::ArrayRef<unsigned> loops, mlir::Value left);
  mlir::Value placeOf(const Tile &tile, mlir::Value left);
  void pickSplitBlocks();
  void allocateSplit();
  void emitSplitBlocks(mlir::Value first, mlir::Value last, mlir::Value left);
  void splitRows(mlir::Value first, mlir::Value last, mlir::Value left);
  void splitRun(mlir::Value place, mlir::Value to);
  void sumUpSplit(mlir::Value group, llvm::ArrayRef<Tile> tiles,
                  mlir::Value right, int64_t columns);
  void moveSums(mlir::Value group, int64_t tiles, int64_t vectors, bool load);
  void stepOfSplit(llvm::ArrayRef<mlir::Value> left, mlir::Value right,
                   int64_t columns);
  void startPrefetch(mlir::Value first, mlir::Value last, mlir::Value group,
                     mlir::Value start);
  void prefetch(mlir::Value step);
  void findAsked();
  void askForRow(mlir::Value row, int64_t columns);
  Values
  loopAsking(int64_t turns, int64_t columns, mlir::ValueRange start,
             llvm::function_ref<Values(mlir::Value, mlir::ValueRange)> turn);
  int64_t runsOfSteps(std::optional<int64_t> rows);
  mlir::Value inRuns(mlir::Value step, int64_t steps);
  void fillPanel(mlir::Value right, int64_t columns);
  void fillSums(llvm::ArrayRef<unsigned> loops, mlir::Value right,
                mlir::Value number, int64_t columns);
  void storeRows(mlir::Value right, mlir::Value number, int64_t columns);
  void storeSquares(mlir::Value right, mlir::Value number, int64_t columns,
                    int64_t pairs);
  void stepOfTiles(llvm::ArrayRef<mlir::Value> left, mlir::Value right,
                   int64_t columns);
  Values stepOfVectors(mlir::Value left, mlir::Value right, int64_t columns,
                       mlir::ValueRange sums, bool isHalf = false);
  Tile tileAt(mlir::Value number);
  void finishTile(const Tile &tile, int64_t columns);
  void keepTiles(llvm::ArrayRef<Tile> tiles, int64_t vectors);
  void forgetKept();
  void finishKeptRow(mlir::Value line, int64_t columns);
  void finishSome(mlir::Value step, int64_t columns);
  void finishKept(int64_t columns);
  void finishRow(mlir::Value line, mlir::Value number, int64_t columns);
  void finish(int64_t column, unsigned width, mlir::Value sum);
  Position pointAt(int64_t column);

  Kernel &kernel;
  mlir::OpBuilder &b;
  mlir::Location loc;
  LaneReader reader;
  mlir::linalg::GenericOp root;
  const DotPlan &plan;
  llvm::ArrayRef<Output> outputs;

  int64_t height; ///< rows of a tile
  mlir::Value leftMemory, rightMemory;
  mlir::Value rightSource; ///< of a panel
  mlir::Value nextBlock; ///< what a tile is to fetch first of the block to come
  int64_t linesOfStep = 0; ///< that each tile fetches in each step
  int64_t askedRuns = 1;   ///< of lines that those belong to
  int64_t runs = 1;        ///< parts of the steps that are walked side by side
  mlir::Value square;      ///< [tiles * height][block] sums
  mlir::Value kept;        ///< the tiles whose sums those are
  Tile present;            ///< the one that is summed up, where it is one
  /// What it asks for in the meantime, by the loops of the root.
  struct Asked {
    mlir::Value memref;
    Position position;
    bool isWrite, hasWholeLines;
  };
  llvm::SmallVector<Asked> asked;
  mlir::Value shape; ///< of the tile registers
  /// Where the parts of rows are that are split, from which place on, and the
  /// first tile of those rows.
  mlir::Value split, firstOfSplit, firstTile;
  /// Steps in a block of the sum, and which block that is. Where there are
  /// several, sums wait for the next one behind the rows.
  int64_t stepsAtOnce = 0;
  mlir::Value blockOfSum;
  mlir::Value outerNumber; ///< of the turns of loops that rows do not have
  int64_t splitTiles = 0;  ///< of rows, in a block
  bool sharesColumns = false, sharesRows = false;
  std::optional<unsigned> sharedOuter;
};

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_DOTLOOPS_H
