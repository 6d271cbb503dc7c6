//===- TileEmitter.h - register tiles of outputs ----------------*- C++ -*-===//
#ifndef KERATIN_CODEGEN_CPU_TILEEMITTER_H
#define KERATIN_CODEGEN_CPU_TILEEMITTER_H

#include "codegen/cpu/Roles.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace keratin {

/// A result of the kernel: where it is at the element of the root, and where
/// that is in its destination, which may be shifted by a border.
struct Output {
  mlir::Value tensor;
  Position position;
  mlir::Value destination;
  Position place;
};

/// `position` at `point`, which has an expression for each loop of the root.
Position atPoint(llvm::ArrayRef<mlir::AffineExpr> position,
                 llvm::ArrayRef<mlir::AffineExpr> point);

/// Computes and stores the outputs at `point` from `sums`, the results of
/// `root` there.
void storeOutputs(LaneReader &reader, mlir::linalg::GenericOp root,
                  llvm::ArrayRef<Output> outputs, const Position &point,
                  unsigned width, mlir::ValueRange sums);

/// The sums of a vector of columns, one for each result of a root, and where
/// they are.
struct SumsAt {
  Position point;
  llvm::SmallVector<mlir::Value> sums;
};

/// The same for several vectors of one width, instruction by instruction: the
/// chains of functions hide the latency of each other.
void storeOutputs(Kernel &kernel, LaneReader &reader,
                  mlir::linalg::GenericOp root, llvm::ArrayRef<Output> outputs,
                  llvm::ArrayRef<SumsAt> vectors, unsigned width);

/// Whether computing `outputs` from the sums of `root` takes functions.
bool finishesWithFunctions(mlir::linalg::GenericOp root,
                           llvm::ArrayRef<Output> outputs);

/// Whether `outputs` are one, that has a place for each sum of `root`.
bool holdsSums(mlir::linalg::GenericOp root, llvm::ArrayRef<Output> outputs);

/// The loop of `root` that windows go along from the last rows to the first:
/// that outside of the rows of a tile, and of tiles of one window the outermost
/// one. Null for what is no window, and where there is no such loop.
std::optional<unsigned> loopOfBackwardTiles(mlir::linalg::GenericOp root,
                                            const Tiling &tiling);

/// Lets the sums of `root` begin with what is added to them when they are
/// complete, a number for each column: one operation less for each sum, of so
/// many at the end of a tile.
void startWithAddend(Kernel &kernel, mlir::linalg::GenericOp root,
                     const Tiling &tiling);

/// Emits the loops of `root` as `tiling` says; each tile is a rectangle of
/// rows and vectors of columns, from which the outputs are computed and stored.
void emitTiles(Kernel &kernel, mlir::linalg::GenericOp root,
               const Tiling &tiling, llvm::ArrayRef<Output> outputs);

/// Coordinates behind the loops of a root that its tiles may use themselves.
inline constexpr unsigned spareCoordinates = 2;

/// Where tiles are in loops that somebody else has emitted.
struct TilesWithin {
  /// Values of loops of the root that are no levels of the tiling, and of what
  /// else the places of `parts` and of outputs are told by: behind the loops
  /// and the spare coordinates.
  llvm::SmallVector<std::pair<unsigned, mlir::Value>> coordinates;
  std::pair<mlir::Value, mlir::Value> rows; ///< first and end
  /// First and end of the blocks of columns, by their numbers, and of the
  /// turns of the reduction, at most `blockStep` of them; null for all. The
  /// sums of a part of a reduction are outputs like those of all of it.
  std::pair<mlir::Value, mlir::Value> columns = {}, sums = {};
  /// Tensors that are computed before, and where.
  llvm::SmallVector<std::pair<mlir::Value, LaneReader::Part>> parts;
  /// All blocks of the operand that is wanted in a panel, of `blocksShape`, if
  /// they are there before; the panel has one block otherwise.
  mlir::Value blocks = {};
  /// Memory for that one block, for several parts of the root to share; null
  /// for memory of its own.
  mlir::Value panel = {};
};

/// The shape of all blocks of the operand that `tiling` wants in a panel.
llvm::SmallVector<int64_t>
blocksShape(Kernel &kernel, mlir::linalg::GenericOp root, const Tiling &tiling);
/// Fills `place.blocks`. The rows do not matter.
void fillBlocks(Kernel &kernel, mlir::linalg::GenericOp root,
                const Tiling &tiling, const TilesWithin &place);

/// The same for a part of the root, whose rows begin at a multiple of those of
/// a tile, and end at one or with all of them.
void emitTilesWithin(Kernel &kernel, mlir::linalg::GenericOp root,
                     const Tiling &tiling, llvm::ArrayRef<Output> outputs,
                     const TilesWithin &place);

/// The same for vectors that go along a reduction.
void emitLaneReduction(Kernel &kernel, mlir::linalg::GenericOp root,
                       const Tiling &tiling, llvm::ArrayRef<Output> outputs);

/// A tensor that is computed elementwise, or a scalar, and where it goes.
struct Copy {
  mlir::Value source, destination;
};
/// Emits one nest of loops that stores every element of the sources, which
/// have one shape.
void emitElementwise(Kernel &kernel, llvm::ArrayRef<Copy> copies,
                     const VectorUnit &unit);
/// The border of a pad alone, for a middle that is computed in its place. Parts
/// that share the middle along `axis` share the border likewise.
void emitPadBorder(Kernel &kernel, mlir::tensor::PadOp op,
                   mlir::Value destination, std::optional<unsigned> axis,
                   const VectorUnit &unit);
void emitPad(Kernel &kernel, mlir::tensor::PadOp op, mlir::Value destination,
             const VectorUnit &unit);
void emitConcat(Kernel &kernel, mlir::tensor::ConcatOp op,
                mlir::Value destination, const VectorUnit &unit);

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_TILEEMITTER_H
