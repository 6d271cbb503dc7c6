//===- TileLoops.h - the loops around register tiles ------------*- C++ -*-===//
//
// What TileEmitter.cpp (the loops), TileSums.cpp (the tiles), TileTaps.cpp (the
// order of their taps), TileEnds.cpp (their last steps), TileFinish.cpp (their
// outputs), TileBlocks.cpp (the operand in blocks), TileCopies.cpp and
// WindowCopies.cpp (rows that are copied) share.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_CODEGEN_CPU_TILELOOPS_H
#define KERATIN_CODEGEN_CPU_TILELOOPS_H

#include "codegen/cpu/TileEmitter.h"

namespace keratin {

/// Columns of a tile: where each vector starts and how wide it is; width 0 is
/// a scalar.
struct Column {
  int64_t offset;
  unsigned width;
};

/// Emits the loops of a root as its tiling says.
class TileEmitter {
public:
  TileEmitter(Kernel &kernel, mlir::linalg::GenericOp root,
              const Tiling &tiling, llvm::ArrayRef<Output> outputs)
      : kernel(kernel), b(kernel.builder()), loc(kernel.loc()), reader(kernel),
        root(root), tiling(tiling), outputs(outputs) {
    reader.setLane(tiling.lane);
  }

  void run();
  void runWithin(const TilesWithin &place);
  void fillBlocks(const TilesWithin &place);
  llvm::SmallVector<int64_t> panelShape();

private:
  void enter(const TilesWithin &place);
  using Then = llvm::function_ref<void()>;
  using Sums = llvm::SmallVector<mlir::Value>;

  Packing packingOfBlocks();
  void layOutBlocks();
  bool isInBlock(unsigned loop);
  bool isFromBlockToBlock(unsigned loop);
  void emitLevel(unsigned number);
  std::pair<mlir::Value, mlir::Value> range(unsigned loop, int64_t step,
                                            bool shared);
  std::pair<mlir::Value, mlir::Value> share(unsigned loop, mlir::Value extent,
                                            int64_t step);
  int64_t stepOf(const Tiling::Level &level);
  mlir::Value turnOf(const Tiling::Level &level);
  void emitBlocksOf(const Tiling::Level &level, bool shared, Then then);
  void prefetch();
  void prefetchRows();
  /// A step of a tile, the row that it asks for, and how many steps do so.
  struct StepOfRow {
    mlir::Value step, row;
    int64_t steps = 1;
  };
  int64_t mostStepsOfRow();
  StepOfRow stepOfRow();
  void forEachLineOf(const StepOfRow &at, int64_t lines, int64_t line,
                     llvm::function_ref<void(mlir::Value)> body);
  int64_t stepsThatAsk();
  void prefetchRow(const StepOfRow &at, mlir::Value memref,
                   llvm::ArrayRef<mlir::AffineExpr> position, bool isWrite);
  void prefetchAdded();
  int64_t stepsForPlaces();
  bool asksForPlaces(const Output &output);
  void prefetchPlaces();
  void prefetchFar();
  void prefetchNextBlocks();
  void prefetchNextPanel();
  std::optional<int64_t> numberOfTiles();
  void takeWeightsAhead();
  void prefetchWeightsAhead();
  mlir::Value flattened(mlir::Value memref);
  mlir::Value blocksInMemory();
  mlir::Value placeOfWeights(unsigned column);
  void prefetchStreams();
  void prefetchWindow();
  void layOutCopies();
  std::pair<mlir::Value, int64_t>
  stepOfTile(llvm::ArrayRef<std::pair<unsigned, unsigned>> offsets = {});
  mlir::Value placeOfCopy();
  void copyRows();
  void copySteps(llvm::ArrayRef<unsigned> loops, bool shared);
  void copyTile(llvm::ArrayRef<unsigned> loops);
  Sums placeToCopy(unsigned row, unsigned step);
  void copySquare(mlir::Value start, unsigned first, unsigned count);
  void readCopies(unsigned first, unsigned count);
  void copyWindows();
  void copyWindow(const Tiling::WindowCopy &copy, const LaneReader::Part &part,
                  llvm::ArrayRef<mlir::AffineExpr> position, size_t depth);
  void copyColumns(const Tiling::WindowCopy &copy, const LaneReader::Part &part,
                   llvm::ArrayRef<mlir::AffineExpr> position);
  unsigned laneOf(mlir::AffineMap map);
  bool isReduction(unsigned loop);
  mlir::Value numberOfTile(int64_t most, bool ofColumns);
  mlir::Value least(mlir::Value value, int64_t bound);
  mlir::Value times(mlir::Value number, int64_t factor) {
    return kernel.times(number, factor);
  }
  mlir::Value wholeTurns(mlir::Value number, int64_t step);
  void inGroups(mlir::Value from, mlir::Value to, int64_t step,
                llvm::function_ref<void(mlir::Value, mlir::Value)> body);
  mlir::Value most(mlir::Value value, mlir::Value bound);
  void emitColumns(bool shared, Then then);
  void emitRows(unsigned loop, bool shared, Then then);
  void emitEvenRows(unsigned loop, mlir::Value from, mlir::Value to,
                    int64_t first, Then then);
  void emitRowLadder(bool shared, Then then);
  /// Where tiles along a loop read no border: from `first` to before `end`.
  struct Inside {
    int64_t first, end;
  };
  std::optional<Inside> insideOfBorder(unsigned loop, int64_t step);
  void spanTiles(unsigned loop, mlir::Value from, mlir::Value to, int64_t step,
                 Then then);
  void tileAt(unsigned loop, mlir::Value from, mlir::Value to, int64_t first,
              int64_t step, Then then);
  void span(unsigned loop, mlir::Value from, mlir::Value to, int64_t step,
            Then then);
  bool goesBackwards(unsigned loop);
  void spanBackwards(unsigned loop, mlir::Value from, mlir::Value to,
                     int64_t step, Then then);
  mlir::Value firstOfStreams(mlir::Value number);
  void inBlock(mlir::Value number, llvm::ArrayRef<Column> vectors, Then then);
  void findNextBlock(mlir::Value number);
  void fillPanel(mlir::Value number);
  bool firstTileWidens();
  void emitWideningTile(unsigned loop, mlir::Value from, Then then);
  void readPanel(llvm::ArrayRef<mlir::Value> starts);
  Sums startsInPanel();
  void fillPanelLoops(llvm::ArrayRef<unsigned> loops,
                      llvm::ArrayRef<mlir::Value> starts);
  bool transposes(unsigned loop);
  void storeColumns(llvm::ArrayRef<mlir::Value> starts);
  void storeTransposed(unsigned loop, llvm::ArrayRef<mlir::Value> starts);
  Sums placeInPanel(llvm::ArrayRef<mlir::Value> starts, int64_t column);

  mlir::Value isAtEnd(bool last);
  void emitBlocks(llvm::ArrayRef<unsigned> outer);
  void emitBlock();
  void emitTile();
  Sums startSums();
  Sums readSums();
  void writeSums(Sums sums);
  mlir::Value destinationTensor();
  Sums reduce(llvm::ArrayRef<unsigned> loops, mlir::ValueRange sums,
              bool endsByRow);
  Sums step(mlir::ValueRange sums);
  void askInStep();
  int64_t stepsByRow();
  mlir::Value withoutLastSteps(mlir::Value end);
  void completeRow(unsigned row, Sums &sums);
  void endRow();
  struct Tap {
    llvm::SmallVector<mlir::AffineExpr> taps;
    unsigned row;
    size_t number;
    llvm::SmallVector<int64_t> place; ///< what it reads
  };
  static void sortByPlace(llvm::MutableArrayRef<Tap> taps);
  llvm::SmallVector<Tap> tapsOfRows();
  llvm::SmallVector<Tap> tapsInTurns();
  void multiplyInTurns(llvm::MutableArrayRef<mlir::Value> sums);
  void multiply(const Tap &tap, llvm::MutableArrayRef<mlir::Value> sums);
  void multiply(const Tap &tap, unsigned column,
                llvm::MutableArrayRef<mlir::Value> sums);
  bool readsForEach();
  Sums indexForEach(mlir::Value at);
  void multiplyForEach(unsigned row, llvm::ArrayRef<mlir::Value> indices,
                       llvm::MutableArrayRef<mlir::Value> sums);
  void
  forEachTap(llvm::function_ref<void(llvm::ArrayRef<mlir::AffineExpr>)> body);
  Position pointOf(unsigned row, unsigned column,
                   llvm::ArrayRef<mlir::AffineExpr> taps);
  void finishTile(Sums sums);
  int64_t tilesFinishedTogether(unsigned loop);
  mlir::AffineExpr placeOfSums(mlir::AffineExpr row, int64_t column);
  void storeSums(Sums sums);
  void finishRows(mlir::Value count);
  void finishColumns(mlir::Value count);
  SumsAt sumsFromMemory(unsigned column, unsigned row);
  mlir::Value inColumn(mlir::Value sum, unsigned column);
  void finishVectors(llvm::ArrayRef<SumsAt> vectors, unsigned width);
  void findNextTile(unsigned row, unsigned column);
  void prefetchNextPlaces(const Output &output, llvm::ArrayRef<SumsAt> vectors,
                          unsigned width);
  llvm::ArrayRef<mlir::Value> memoryOfSums();
  bool sumsWholeVectors();
  unsigned chainsAtOnce();
  unsigned sumWidth(unsigned column);
  unsigned rows() const { return innerRows * outerRows; }

  Kernel &kernel;
  mlir::OpBuilder &b;
  mlir::Location loc;
  LaneReader reader;
  mlir::linalg::GenericOp root;
  const Tiling &tiling;
  llvm::ArrayRef<Output> outputs;

  // The tile that is being emitted.
  unsigned innerRows = 1, outerRows = 1;
  llvm::SmallVector<Column> columns;
  mlir::Value panel;
  mlir::Value blockInPanel; ///< which of its blocks the columns are in
  bool keepsBlocks = false; ///< the panel has all of them, and they are known
  Sums startOfPanel;        ///< along each dimension of its operand, or null
  bool widens = false;      ///< the tile writes what it reads to the panel
  Sums sumsInMemory;        ///< of the results of the root
  mlir::Value firstOfGroup; ///< of tiles that are finished together
  bool asksForLines = true; ///< of this tile, of what is added or written
  Packing packing = {};     ///< of the operand in blocks

  // Rows that are copied, where in `copies` this call has its memory, and the
  // first row that is there.
  mlir::Value copies, firstOfCopies, firstRowCopied;
  Sums windows; ///< memory of what windows read of blocks

  /// Where the weights of a later kernel begin that tiles ask for, as a number;
  /// how many lines a step does, and in how many tiles.
  mlir::Value weightsAhead;
  int64_t linesAhead = 0, tilesAhead = 0;

  int64_t tapsOfStep = 0; ///< of Tiling::longTap, that are unrolled

  /// The steps that the tile makes row by row, behind the loop of the others.
  Sums lastSteps;

  // A reduction in blocks.
  std::pair<mlir::Value, mlir::Value>
      block; ///< of the loop that goes from block to block

  /// Where the blocks of loops that are emitted start and end.
  llvm::DenseMap<unsigned, std::pair<mlir::Value, mlir::Value>> blocksAround;
  /// Whether that is all that this emitter has to do of it.
  bool isPartOfSums = false;
  /// The blocks of columns that this emitter has of all.
  std::pair<mlir::Value, mlir::Value> columnsWithin;
  /// The turns that this call has of those of two levels that are shared.
  std::pair<mlir::Value, mlir::Value> sharedTurns;
  /// The blocks of columns that this call has of all.
  std::pair<mlir::Value, mlir::Value> sharedColumns;
  /// The blocks of columns that the innermost level goes through, one tile
  /// after the other; null where it does not.
  std::pair<mlir::Value, mlir::Value> columnsInside;
  mlir::Value nextBlock;   ///< of columns
  mlir::Value nextStart;   ///< of the reduction there, if it is in blocks
  mlir::Value flatWeights; ///< the packed operand in one dimension
};

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_TILELOOPS_H
