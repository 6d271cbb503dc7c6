//===- WinogradTiles.h - tiles on their way to products ---------*- C++ -*-===//
#ifndef KERATIN_CODEGEN_CPU_WINOGRADTILES_H
#define KERATIN_CODEGEN_CPU_WINOGRADTILES_H

#include "codegen/cpu/Winograd.h"
#include "codegen/cpu/WinogradAhead.h"

namespace keratin {

/// What emitters of sums over windows share: loops over tiles, and transforms
/// of what is read for one.
class WindowTiles {
protected:
  WindowTiles(Kernel &kernel, mlir::linalg::GenericOp root,
              const WindowTiling &plan)
      : kernel(kernel), b(kernel.builder()), loc(kernel.loc()), reader(kernel),
        root(root), tiling(plan), conv(plan.conv),
        element(getElementTypeOrSelf(root.getResult(0))),
        vectorType(mlir::VectorType::get(plan.lanes, element)) {}

  using Value = mlir::Value;
  using Then = llvm::function_ref<void(Value)>;
  using AlongVectors = llvm::function_ref<void(Value, unsigned)>;
  /// Along one axis of a tile or window.
  using Transform = llvm::function_ref<llvm::SmallVector<Value>(
      mlir::OpBuilder &, mlir::Location, mlir::ValueRange)>;
  /// A half-open range of tiles, positions, or channels.
  using Range = std::pair<Value, Value>;

  Value plus(Value value, int64_t offset);
  Value least(Value value, int64_t bound);
  void loop(Value from, Value to, int64_t step, Then body);
  /// Full vectors of `extent` elements, and what is left of them.
  void alongVectors(int64_t extent, AlongVectors body);
  void alongVectors(Range range, int64_t extent, AlongVectors body);
  void emitTurn(int64_t number, Range range,
                llvm::function_ref<void(Range)> step);

  Value allTiles();
  /// Tiles are numbered image by image, row by row.
  TileCorner cornerOf(Value tile);
  void placeTile(Value tile);
  /// Goes over `range` of the tiles from `firstTile` on, with a number in the
  /// range and what `ahead` is to ask for.
  void overTiles(Value firstTile, Range range, const TilesAhead &ahead,
                 llvm::function_ref<void(Value, const TileCorner &)> body);

  /// Whether pixel `offset` of a tile at `position` is an output; null where it
  /// always is.
  Value isInside(const TransformedAxis &axis, Value position, int64_t offset);
  /// The expression of that pixel.
  mlir::AffineExpr pixelAt(const TransformedAxis &axis, int64_t offset);
  /// The first pixel of a tile of an axis.
  Value pixelOfTile(const TransformedAxis &axis, Value tile);

  /// What a transform has along the axes of a tile.
  struct Size {
    int64_t rows, columns;
  };
  Size pixels() const {
    return {tiling.pixels(conv.down), tiling.pixels(conv.across)};
  }
  Size positions() const {
    return {tiling.positions(conv.down), tiling.positions(conv.across)};
  }
  Size taps() const {
    return {tiling.taps(conv.down), tiling.taps(conv.across)};
  }
  /// Transforms the columns of what `element` reads, where tiles have rows,
  /// then one row after the other, with which `then` goes on.
  void transform(Size size, Transform transform,
                 llvm::function_ref<Value(int64_t, int64_t)> element,
                 llvm::function_ref<void(int64_t, mlir::ValueRange)> then);
  /// The same for a tile, at `lane`: goes on to `memory[point][number][lane]`.
  void transformTo(Value memory, Value number, Value lane, Size size,
                   Transform along,
                   llvm::function_ref<Value(int64_t, int64_t)> element);
  /// The loops of the root in the image of a tile, at its places along outer
  /// axes; others are zero.
  Position pointOfImage();
  /// The loops of the root at tap (i, j) of the piece that is bound, with taps
  /// along outer axes, the channel and the filter as they are.
  Position pointOfWindow(int64_t i, int64_t j);
  /// Whether a window has tap `number` of a piece whose first one along `axis`
  /// is `first`; null where all pieces have.
  Value hasTap(const TransformedAxis &axis, Value first, int64_t number);
  /// Both conditions, of which null ones always hold.
  Value both(Value left, Value right);
  /// What `then` emits is done where `condition` holds; always if that is null.
  void onlyIf(Value condition, llvm::function_ref<void()> then);
  /// `value`, or zeros unless `condition` holds.
  Value zeroUnless(Value condition, Value value);
  /// A piece of a window: the first of its channels among those of all, how
  /// many pixels behind the first piece it begins, and where what it meets of
  /// the tile at `row` and `column` does.
  struct Piece {
    Value firstChannel, down, right, row, column;
    Value downTap, rightTap; ///< of axes along which windows move by several
  };
  /// Binds the taps along outer axes to those of the number `taps`.
  void bindOuterTaps(Value taps);
  /// Binds taps to the first ones of the piece `number`.
  void bindPiece(Value number);
  /// For each piece: its taps along outer axes, row and column are bound.
  void overPieces(llvm::function_ref<void(const Piece &)> body);
  /// `value`, of the elements of a vector that there are, with zeros behind;
  /// and of a whole vector those elements.
  Value withZeros(Value value, unsigned width);
  Value withoutRest(Value value, unsigned width);
  /// The sums `before` of a tile, row by row, with the products of a step:
  /// `scalarOf` of a row, in order, by each of the vectors `factors`.
  llvm::SmallVector<Value>
  addProducts(mlir::ValueRange before, llvm::ArrayRef<Value> factors,
              llvm::function_ref<Value(unsigned)> scalarOf);
  /// Reads `width` elements of an operand of the root, where `point` has an
  /// expression for each of its loops, in the type of the sums.
  Value readFactor(mlir::OpOperand *operand, const Position &point,
                   unsigned width);
  /// Transforms the inputs of tiles, `channels` for each piece of a window, to
  /// `inputs[point][number][channel]`.
  void transformInputs(Value inputs, Value firstTile, Range tiles,
                       Range channels);

  Kernel &kernel;
  mlir::OpBuilder &b;
  mlir::Location loc;
  LaneReader reader;
  mlir::linalg::GenericOp root;
  const WindowTiling &tiling;
  const WindowConv &conv;
  mlir::Type element;
  mlir::VectorType vectorType;
  Value row, column;            ///< of the first pixel of the tile
  Value firstDown, firstAcross; ///< taps of the piece, of axes that are there

private:
  /// Of the pieces along an axis: those of each stride begin at neighbours.
  struct PieceAlong {
    Value neighbour, stride; ///< the former null where it is always the first
  };
  PieceAlong innermost(const TransformedAxis &axis, Value &number);
  mlir::AffineExpr placeInput(const TransformedAxis &axis, Value start,
                              Value tap, int64_t offset);
};

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_WINOGRADTILES_H
