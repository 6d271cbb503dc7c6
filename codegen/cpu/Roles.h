//===- Roles.h - what the loops of a root are for ---------------*- C++ -*-===//
#ifndef KERATIN_CODEGEN_CPU_ROLES_H
#define KERATIN_CODEGEN_CPU_ROLES_H

#include "codegen/cpu/LaneReader.h"
#include "codegen/cpu/Reductions.h"
#include "codegen/cpu/TileSizes.h"

namespace keratin {

/// A tensor in memory that a root reads, itself or through its producers, and
/// where, in terms of the loops of the root.
struct Access {
  mlir::OpOperand *operand; ///< of the root
  mlir::Value tensor;
  Position position;
  bool direct; ///< read by the root itself

  bool dependsOn(unsigned loop) const;
};

/// All accesses of `root`, but for those at computed indices.
llvm::SmallVector<Access> accessesOf(Kernel &kernel,
                                     mlir::linalg::GenericOp root);

/// Tensors in memory that what follows from `root` reads at the element that it
/// computes.
llvm::SmallVector<Access> readWithSums(Kernel &kernel,
                                       mlir::linalg::GenericOp root);

/// Where `value` is at the element that `root` computes: the position of a
/// result of `root`, or of an epilogue that reads it at the same element.
/// Null when `value` does not depend on `root` or reads it elsewhere.
std::optional<Position> positionOf(mlir::Value value,
                                   mlir::linalg::GenericOp root);
bool dependsOn(mlir::Value value, mlir::linalg::GenericOp root);

/// Elements in a vector of the widest type that computing `tensor` takes.
unsigned lanesOf(mlir::Value tensor, const VectorUnit &unit);

/// The loops of a root, outermost first, and what each is for.
struct Tiling {
  enum class Kind { Single, Columns, Rows, Blocks };
  struct Level {
    Kind kind;
    unsigned loop;
    int64_t step = 1; ///< of Blocks, which a level inside goes through
  };
  llvm::SmallVector<Level> levels;        ///< of the parallel loops
  llvm::SmallVector<unsigned> reductions; ///< loops around the taps
  /// How many of `reductions` are outside of `levels`, so that all tiles read a
  /// block before the next one is read; their sums wait in the output. The next
  /// of `reductions` goes from block to block in steps of `blockStep`.
  unsigned outerReductions = 0;
  int64_t blockStep = 0; ///< 0: it is done in one block
  bool inBlocks() const { return outerReductions != 0 || blockStep != 0; }
  llvm::SmallVector<unsigned> taps; ///< reductions that are unrolled
  /// Of those one that is too long: it is one of `reductions` as well, which go
  /// along it in steps of `tapsAtOnce`.
  std::optional<unsigned> longTap;
  int64_t tapsAtOnce = 0;
  unsigned lane = 0;         ///< the loop that vectors go along
  bool reducesLanes = false; ///< and it is a reduction
  /// Whether what such a reduction reads of much memory is asked for.
  bool asksForRuns = true;
  std::optional<unsigned> row;
  std::optional<unsigned> outerRow; ///< of a window that goes two ways
  /// How the taps of a window come in turns (TileTaps.cpp): along the outer of
  /// the ways that it goes, or the only one, and beside it.
  struct Turns {
    WindowWay along, beside;
    bool alongInner;
  };
  std::optional<Turns> turns;
  std::optional<unsigned> shared; ///< the level that threads share
  /// Another one whose turns are shared with those of `shared`, of which there
  /// may be too few for equal shares; and how many it has. A share ends in the
  /// middle of a turn of `shared`.
  std::optional<unsigned> sharedWith;
  int64_t turnsWith = 0;
  unsigned lanes = 1; ///< in a vector
  /// Lanes of the vectors that sums of fewer columns have: half of `lanes`
  /// where those take half the time.
  unsigned fewestLanes = 1;
  TileSize size;
  unsigned storesAtOnce = 0; ///< VectorUnit::storesAtOnce
  /// Of how many tiles in a turn of the innermost level the outputs are
  /// computed together, if that takes functions.
  int64_t tilesOfGroup = 1;
  /// The operand that is wanted in blocks of `size.vectors * lanes` columns:
  /// packed at compile time, or into a panel where it is used.
  mlir::OpOperand *blocked = nullptr;
  bool panel = false;
  /// The panel has all blocks, in memory of the arena: they are packed before
  /// the rows begin, and then read as weights are that were packed ahead of
  /// time.
  bool packsAll = false;
  /// Packed at compile time in 16 bits, and widened into a panel for many rows.
  bool widened = false;
  /// In how many tiles all of the next block is asked for, before it is needed;
  /// 0 where that does not pay.
  int64_t tilesOfPrefetch = 0;
  /// What comes row after row from far: one row of a tile behind the other in
  /// memory, each as long as the reduction. The rows of the next tile are asked
  /// for, of short ones the first cache.
  std::optional<Access> rowsAhead;
  bool rowsAreShort = false;
  /// What is added to the sums of a tile, and comes from far.
  llvm::SmallVector<Access> added;
  /// What is far from step to step of the innermost reduction: not in one run
  /// that is fetched ahead anyway.
  llvm::SmallVector<Access> far;
  /// What rows multiply, where it is copied tile by tile before the columns
  /// begin; and how many elements of it at a time, at most.
  std::optional<Access> copied;
  int64_t elementsCopied = 0;
  /// Loops inside of the columns that go along the same dimension of what is
  /// copied as a reduction does: that one, and the loop. There is one copy for
  /// all of their turns.
  llvm::SmallVector<std::pair<unsigned, unsigned>> offsetsOfCopied;
  /// Operands of windows that are copied for a block of columns and of outer
  /// rows, inside of so many levels: `extents` places along each dimension.
  struct WindowCopy {
    mlir::OpOperand *operand;
    llvm::SmallVector<int64_t> extents;
  };
  llvm::SmallVector<WindowCopy> windowCopies;
  unsigned levelOfCopies = 0;
  bool isCopied(const mlir::OpOperand *operand) const {
    return llvm::any_of(windowCopies, [&](const WindowCopy &copy) {
      return copy.operand == operand;
    });
  }
  /// What the next block of the reduction reads of a factor, which is one run
  /// of memory: tiles ask for it while they compute this one.
  struct NextBlock {
    Access access;
    int64_t elements; ///< asked for in a step of a tile
    int64_t tiles;    ///< in how many tiles
  };
  llvm::SmallVector<NextBlock> nextBlocks;
  /// Whether tiles of a reduction in blocks ask for the sums that the next ones
  /// begin with.
  bool asksForSums = false;
  /// In how many tiles all that the next panel is filled with is asked for,
  /// from rows of memory that are far apart; 0 where that does not pay.
  int64_t tilesOfPanel = 0;
  /// How many packed blocks the columns of a tile are, which it reads side by
  /// side: each is a stream of memory that is fetched ahead for itself.
  unsigned streams = 1;
  unsigned streamsOfOneRow = 1; ///< where there may be one, or more
  /// Whether what is a little ahead in each of them is asked for: a second
  /// cache brings it from memory to long vectors faster than what fetches ahead
  /// by itself, but slower from a third cache.
  bool asksAhead = false;
  /// Whether the first cache is asked for what is a little ahead in the one
  /// block that a tile reads.
  bool asksFirstCache = false;
  /// In how many runs side by side weights that come from memory are asked for
  /// (runsAtOnce): those of the next block, or where `tilesOfPrefetch` is 0
  /// those a little ahead.
  int64_t runs = 1;
  /// Whether there may be one tile of rows, or many, for large weights.
  bool mayHaveFewRows = false;
  /// Whether calls go through the blocks of columns in turns from the first to
  /// the last and from the last to the first (Kernel::goesBack).
  bool alternates = false;
};

/// Whether sums of `root` are so short that its tiles are bound by where they
/// are stored, and not by products. False where their length is not known.
bool hasFewSteps(mlir::linalg::GenericOp root);

/// How to tile `root`; null when scalar loops are the way. `keepsSums`: the
/// output can hold the sums of `root` until they are complete.
std::optional<Tiling> tilingOf(Kernel &kernel, mlir::linalg::GenericOp root,
                               const VectorUnit &unit, bool keepsSums);

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_ROLES_H
