//===- WinogradAhead.h - asking for the next tile ---------------*- C++ -*-===//
//
// A tile has a few pixels of some rows of an image, which are no run of memory
// that is fetched ahead by itself. So while a tile is transformed, the lines of
// the next one are asked for.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_CODEGEN_CPU_WINOGRADAHEAD_H
#define KERATIN_CODEGEN_CPU_WINOGRADAHEAD_H

#include "codegen/cpu/Winograd.h"

namespace keratin {

/// Where the first output of a tile is: its place along each loop of several
/// turns, or null.
struct TileCorner {
  mlir::Value image, row, column;
  llvm::SmallVector<mlir::Value, 2> outer;
};

/// What is asked for while tiles are transformed along `lane`, a loop of `root`
/// over channels or filters.
class TilesAhead {
public:
  TilesAhead(Kernel &kernel, LaneReader &reader, mlir::linalg::GenericOp root,
             const WindowTiling &plan, unsigned lane)
      : kernel(kernel), reader(reader), root(root), plan(plan), lane(lane) {}

  /// The inputs of a tile that the one before has not read.
  void addInputs();
  /// The pixels of a tile, of what meets them.
  void addSlopes();
  /// Where `outputs` go, and what is added to them.
  void addOutputs(llvm::ArrayRef<Output> outputs);
  bool empty() const { return far.empty(); }

  /// Asks for a line of each pixel of the tile at `corner`: that with the
  /// channel at which `reader` is. Vectors that share a line ask for it again:
  /// asking once gained half as much.
  void ask(const TileCorner &corner);

private:
  /// Pixels that the second cache does not hold: `rows` of those from column
  /// `begin` to before `end` of a tile, at `position` of the loops of the root.
  struct Pixels {
    mlir::Value memref;
    Position position;
    int64_t rows, begin, end;
    bool isWritten;
  };
  void add(Pixels pixels);
  /// `rows` by `columns` pixels, of which two tiles share `shared` columns.
  void addFactor(mlir::OpOperand *factor, int64_t rows, int64_t columns,
                 int64_t shared);
  /// The expressions of a place along each loop.
  struct Place {
    mlir::AffineExpr image, row, column;
    llvm::SmallVector<mlir::AffineExpr, 2> outer;
  };
  Position pointAt(const Place &place);

  Kernel &kernel;
  LaneReader &reader;
  mlir::linalg::GenericOp root;
  const WindowTiling &plan;
  unsigned lane;
  llvm::SmallVector<Pixels, 2> far;
};

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_WINOGRADAHEAD_H
