//===- AttentionLanes.h - attention with a query in each lane ---*- C++ -*-===//
//
// What AttentionLanes.cpp (the loops), AttentionLanesPlan.cpp (whether it fits,
// and sizes), AttentionLanesMemory.cpp (what is transposed on its way in and
// out) and AttentionHidden.cpp (which keys a block of queries does not see)
// share.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_CODEGEN_CPU_ATTENTIONLANES_H
#define KERATIN_CODEGEN_CPU_ATTENTIONLANES_H

#include "codegen/cpu/Attention.h"
#include "codegen/cpu/Reductions.h"
#include "codegen/cpu/TileEmitter.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace keratin {

/// Of a block of queries: how many vectors, and how many keys and columns of
/// values a tile has.
struct LaneTile {
  int64_t vectors = 0, keys = 1, columns = 1;
  int64_t cost = 0; ///< in issue slots, for all keys
};

/// What is made of each score reads `tensor` for a query and a key: it is
/// transposed, for some keys at a time. Or it reads it for a query: it is
/// copied for the queries of a block.
struct LaneMask {
  mlir::Value tensor;
  mlir::AffineMap map;         ///< from the axes of the scores
  unsigned query;              ///< dimension of the tensor
  std::optional<unsigned> key; ///< the last one
  mlir::Value panel = {};
};

/// Scores that do not follow from their query and key: of each pair for which
/// `condition`, in the body of `op`, is `when`. That does not follow from the
/// score either.
struct HiddenScores {
  mlir::linalg::GenericOp op; ///< the last that scores go through
  mlir::Value condition;
  bool when;
  double score;
  mlir::Value seen = {}; ///< a tensor of i1: of all other pairs
};

/// Emits attention with a query in each lane.
class LaneAttention {
public:
  LaneAttention(Kernel &kernel, const VectorUnit &unit,
                const Attention &attention)
      : kernel(kernel), b(kernel.builder()), loc(kernel.loc()), unit(unit),
        attention(attention), softmax(*attention.softmax),
        scores(attention.scores), values(attention.values),
        largest(*Combiner::of(softmax.largest, 0)) {}

  bool plan();
  void run();

private:
  using Sums = llvm::SmallVector<mlir::Value>;
  /// Queries from `first` on, of which `count` exist; keys from `from` on.
  struct Block {
    mlir::Value first;
    int64_t count;
    LaneTile tile;
    mlir::Value from = {}, to = {};
    mlir::Value masksFrom = {}; ///< the first key that panels of masks have
  };

  bool fits();
  bool takeMask(mlir::linalg::GenericOp op, mlir::OpOperand &operand);
  void findHidden();
  LaneTile tileOf(int64_t vectors) const;
  bool pickBlocks();
  bool hasBlocksOfKeys() const { return keysAtOnce < keyCount(); }
  int64_t queryCount() const { return attention.queryCount(); }
  int64_t keyCount() const { return attention.keyCount(); }
  unsigned queryAxis() const { return attention.rows.axis; }
  unsigned keyAxis() const { return attention.axes() - 1; }

  mlir::VectorType vectorType() const {
    return mlir::VectorType::get(lanes, element);
  }
  mlir::Value splat(double value);
  mlir::Value load(mlir::Value memory, mlir::Value row, int64_t vector);
  void store(mlir::Value vector, mlir::Value memory, mlir::Value row,
             int64_t number);
  mlir::Value difference(mlir::Value index, mlir::Value start);

  void placeMemory();
  void fillQueries(const Block &block);
  void fillMask(const LaneMask &mask, const Block &block);
  void fillMaskOfQueries(const LaneMask &mask, const Block &block);
  void readMask(LaneReader &reader, const LaneMask &mask, const Block &block);
  void prefetch(LaneReader &reader, mlir::Value memref,
                llvm::ArrayRef<mlir::AffineExpr> position, bool isWrite);
  void prefetchKeys(LaneReader &reader, int64_t keys);
  void prefetchAround(const Block &block, mlir::Value key);
  void prefetchValues(const Block &block, mlir::Value key);
  void prefetchQueries(const Block &block, mlir::Value key);
  void prefetchOutputs(const Block &block, mlir::Value key);
  void
  forSomeLines(mlir::Value key, int64_t elements,
               llvm::function_ref<void(mlir::Value row, mlir::Value at)> body);
  void makeSeen();
  Sums seenAt(LaneReader &reader, const Block &block, mlir::Value key);
  mlir::Value joined(mlir::ValueRange vectors,
                     mlir::vector::CombiningKind kind);
  mlir::Value negated(mlir::Value condition);
  mlir::Value allSeeSome(const Block &block);
  void leaveOutHidden(Block &block, mlir::Value mayLeaveOut);
  mlir::Value needsHidden(mlir::ValueRange most);
  void fillMasks(const Block &block);
  void emitBlock(mlir::Value first, int64_t count);
  std::pair<Sums, Sums> emitAllKeys(Block block, mlir::Value mayLeaveOut);
  void emitKeys(Block block, Sums &most, Sums &totals, mlir::Value mayLeaveOut);
  Sums emitScores(const Block &block, mlir::ValueRange most);
  Sums scoresOfTile(LaneReader &reader, const Block &block, int64_t keys,
                    mlir::ValueRange most);
  Sums emitPowers(const Block &block, mlir::ValueRange from,
                  mlir::ValueRange totals);
  mlir::Value weightOf(LaneReader &reader, mlir::Value power, int64_t vector);
  void emitSums(const Block &block, mlir::ValueRange factors);
  void sumsOfTile(LaneReader &reader, const Block &block, int64_t columns,
                  mlir::ValueRange factors);
  void clearSums(const Block &block);
  void finish(const Block &block, mlir::ValueRange totals);
  mlir::Value power(mlir::Value difference);

  using LoopOf = unsigned (Attention::*)(unsigned) const;
  void bindAround(LaneReader &reader, LoopOf loopOf, const Block &block);
  /// The same, and masks are read from their panels.
  void bindMasked(LaneReader &reader, LoopOf loopOf, const Block &block);
  Position pointOf(mlir::linalg::GenericOp op);
  mlir::AffineExpr dim(unsigned number) {
    return mlir::getAffineDimExpr(number, b.getContext());
  }
  Sums along(mlir::linalg::GenericOp op, LaneReader &reader, unsigned loop,
             std::pair<mlir::Value, mlir::Value> range, int64_t unrolled,
             Sums sums, llvm::function_ref<Position(int64_t, int64_t)> pointAt,
             int64_t rows, int64_t vectors);

  Kernel &kernel;
  mlir::OpBuilder &b;
  mlir::Location loc;
  const VectorUnit &unit;
  Attention attention;
  RowSoftmax softmax;
  mlir::linalg::GenericOp scores, values;
  Combiner largest;
  mlir::Type element;
  unsigned lanes = 1;
  unsigned depthLoop = 0;         ///< of the scores
  int64_t depth = 1, columns = 1; ///< of a query, and of a value
  LaneTile full, last;            ///< of blocks, and of what is left of queries
  int64_t keysAtOnce = 1;
  llvm::SmallVector<Output> outputs;
  llvm::SmallVector<LaneMask> masks;
  std::optional<HiddenScores> hidden;
  bool asksForKeys = false, asksForRest = false; ///< ahead
  mlir::Value queriesPanel, panel, sumsOfBlock;  ///< memory
};

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_ATTENTIONLANES_H
