//===- LaneReader.h - values of a kernel for some lanes ---------*- C++ -*-===//
//
// The loops of an emitter are coordinates d0, d1, …; positions in tensors are
// affine expressions of them. One coordinate may be the lane: a read of width
// w at a position then means the w positions that follow from d, d + 1, …,
// d + w - 1. What the kernel computes elementwise is computed where it is
// read, and nothing is computed twice for equal positions in one scope: rows
// that share an operand, and neighbouring taps that meet at the same element,
// share its value.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_CODEGEN_CPU_LANEREADER_H
#define KERATIN_CODEGEN_CPU_LANEREADER_H

#include "codegen/cpu/Kernel.h"
#include "codegen/cpu/Packing.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <optional>

namespace keratin {

/// Positions: one expression of the coordinates a dimension.
using Position = llvm::SmallVector<mlir::AffineExpr>;

/// A value for some lanes: one scalar for all of them, a vector, or an index
/// that is known as an expression of the coordinates.
struct Lanes {
  mlir::Value value;
  mlir::AffineExpr index;
  bool isBorder = false; ///< of what a pad is around

  explicit operator bool() const { return value || index; }
};

/// `expr` as a sum of multiples of coordinates and last a constant, so that
/// equal positions are equal expressions and neighbours share all but that.
mlir::AffineExpr canonical(mlir::AffineExpr expr);

/// How many elements `expr` advances when the coordinate `lane` advances by
/// one; null when that is not the same everywhere.
std::optional<int64_t> laneStep(mlir::AffineExpr expr, unsigned lane);

/// How a tensor at a position is read along a lane.
enum class LaneAccess { Uniform, Contiguous, Gather };
LaneAccess laneAccess(mlir::ShapedType type,
                      llvm::ArrayRef<mlir::AffineExpr> position, unsigned lane);

/// Whether the body of `op` can be computed on vectors.
bool isVectorizable(mlir::linalg::GenericOp op);

class LaneReader {
public:
  explicit LaneReader(Kernel &kernel) : kernel(kernel), b(kernel.builder()) {
    scopes.emplace_back();
  }

  /// Gives coordinate `dim` its value.
  void bind(unsigned dim, mlir::Value value);
  void setLane(std::optional<unsigned> dim) { lane = dim; }
  /// The least and the largest value that coordinate `dim` has where it is read
  /// from here on; null where that is not known.
  using Range = std::optional<std::pair<int64_t, int64_t>>;
  void setRange(unsigned dim, Range range) { ranges[dim] = range; }

  /// A tensor, a position, how many lanes, and along which loop: a square that
  /// is transposed has the same position at the start of a row and of a column.
  using Key = std::tuple<mlir::Value, mlir::AffineMap, unsigned, unsigned>;

  /// Values that were made, and of what.
  struct Memory {
    llvm::DenseMap<Key, Lanes> lanes;
    llvm::DenseMap<mlir::AffineExpr, mlir::Value> indices;
    llvm::DenseMap<std::pair<mlir::Value, unsigned>, mlir::Value> vectors;
    llvm::DenseMap<std::pair<mlir::Value, unsigned>,
                   std::pair<mlir::Value, mlir::Value>>
        reciprocals;
  };

  /// Values made during the life of a scope are forgotten at its end, unless
  /// they are `kept` for another one of the same block and coordinates. To be
  /// opened in each new block and whenever a coordinate gets another value.
  class Scope {
  public:
    explicit Scope(LaneReader &reader, Memory *kept = nullptr)
        : reader(reader), kept(kept), coordinates(reader.coordinates) {
      reader.scopes.push_back(kept ? std::move(*kept) : Memory());
    }
    ~Scope() {
      if (kept)
        *kept = std::move(reader.scopes.back());
      reader.scopes.pop_back();
      reader.coordinates = std::move(coordinates);
    }

  private:
    LaneReader &reader;
    Memory *kept;
    llvm::SmallVector<mlir::Value> coordinates;
  };

  /// Elements of `tensor` at `position`; width 0 is a single element.
  Lanes read(mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> position,
             unsigned width);
  /// Stores to `memref` at `position`.
  void write(Lanes lanes, mlir::Value memref,
             llvm::ArrayRef<mlir::AffineExpr> position, unsigned width);
  /// Asks for the cache lines of `width` elements of `memref`, contiguous along
  /// the lane, that begin `ahead` lanes behind `position`.
  void prefetch(mlir::Value memref, llvm::ArrayRef<mlir::AffineExpr> position,
                unsigned ahead, unsigned width, bool isWrite,
                unsigned locality = 3);
  /// Asks for what computing `tensor` at `position` reads at computed indices:
  /// the first `width` elements along the lane of each such run, into the
  /// second cache. Of a tensor of less than `leastBytes` nothing.
  void askForExtracted(mlir::Value tensor,
                       llvm::ArrayRef<mlir::AffineExpr> position,
                       unsigned width, int64_t leastBytes);
  /// Results of the body of `op` at the loop positions `dims`.
  llvm::SmallVector<Lanes> evaluate(mlir::linalg::GenericOp op,
                                    llvm::ArrayRef<mlir::AffineExpr> dims,
                                    llvm::ArrayRef<Lanes> sums, unsigned width);

  /// Makes `lanes` the value of `tensor` at `position` in this scope.
  void remember(mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> position,
                unsigned width, Lanes lanes);
  /// A tensor in the order of `packedType`, or a part of it: `starts` says for
  /// each dimension where the part starts, null where it is all there.
  struct Packed {
    mlir::Value memref, number; ///< and the block that the lanes are in
    Packing packing;
    llvm::SmallVector<mlir::Value> starts = {};
  };
  /// Reads of `tensor` go to `place`.
  void setPacked(mlir::Value tensor, Packed place) {
    packed[tensor] = std::move(place);
  }
  void forgetPacked(mlir::Value tensor) { packed.erase(tensor); }
  /// Where a packed memref has what is at `position` of the tensor.
  llvm::SmallVector<mlir::Value>
  placeOf(const Packed &packed, llvm::ArrayRef<mlir::AffineExpr> position);
  const Packed &packedOf(mlir::Value tensor) const {
    return packed.find(tensor)->second;
  }

  /// A part of a tensor: a memref of the dimensions `dims` of it, along the
  /// first of which it starts at `origins`; at 0 along the others.
  struct Part {
    mlir::Value memref;
    llvm::SmallVector<unsigned> dims;
    llvm::SmallVector<mlir::AffineExpr> origins = {};

    /// Where in the memref the `position` of the tensor is.
    Position place(llvm::ArrayRef<mlir::AffineExpr> position) const;
  };
  /// Reads of `tensor` go to `part`, which has all that is read.
  void setPart(mlir::Value tensor, Part part) {
    parts[tensor] = std::move(part);
  }
  void forgetPart(mlir::Value tensor) { parts.erase(tensor); }

  /// The value as an SSA value: a vector of `width` lanes, or a scalar.
  mlir::Value materialize(Lanes lanes, unsigned width);
  /// The value of `expr` at the first lane.
  mlir::Value at(mlir::AffineExpr expr);
  /// An expression for an index that is none of the coordinates.
  mlir::AffineExpr symbol(mlir::Value value);

private:
  Key key(mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> position,
          unsigned width);
  bool dependsOnLane(mlir::AffineExpr expr) const;
  Position atLane(llvm::ArrayRef<mlir::AffineExpr> position, unsigned number);
  llvm::SmallVector<mlir::Value> at(llvm::ArrayRef<mlir::AffineExpr> position);

  Lanes compute(mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> position,
                unsigned width);
  Lanes load(mlir::Value memref, llvm::ArrayRef<mlir::AffineExpr> position,
             unsigned width);
  Lanes loadRepeated(mlir::Value memref,
                     llvm::ArrayRef<mlir::AffineExpr> position, unsigned width);
  Range rangeOf(mlir::AffineExpr expr) const;
  Lanes readAround(mlir::tensor::PadOp pad,
                   llvm::ArrayRef<mlir::AffineExpr> position, unsigned width);
  bool isInvariant(mlir::Value tensor,
                   llvm::ArrayRef<mlir::AffineExpr> position);
  Lanes loadAtTop(mlir::Value tensor,
                  llvm::ArrayRef<mlir::AffineExpr> position);
  Lanes loadPacked(const Packed &packed,
                   llvm::ArrayRef<mlir::AffineExpr> position, unsigned width);
  mlir::Value loadHalf(const Packed &packed,
                       llvm::SmallVector<mlir::Value> place, unsigned width);
  mlir::Value loadVector(mlir::Value memref, mlir::ValueRange position,
                         unsigned width);
  bool isVector(const Lanes &lanes) const;
  Lanes compute(mlir::Operation &op, llvm::ArrayRef<Lanes> operands,
                unsigned width);
  bool isAskedFor(mlir::Value tensor,
                  llvm::ArrayRef<mlir::AffineExpr> position);
  Lanes extract(mlir::Value tensor, llvm::ArrayRef<Lanes> position,
                unsigned width);
  mlir::Value divide(mlir::Value vector, mlir::Value divisor, unsigned width);
  mlir::Value elements(llvm::ArrayRef<mlir::Value> values);
  mlir::Value bytes(mlir::Value memref);
  std::optional<Lanes> withoutZero(mlir::Operation &op,
                                   llvm::ArrayRef<Lanes> operands);
  std::optional<Lanes> indexArithmetic(mlir::Operation &op,
                                       llvm::ArrayRef<Lanes> operands);

  Kernel &kernel;
  mlir::OpBuilder &b;
  /// What extract() asks for in place of reading it.
  struct Asked {
    unsigned width;
    int64_t leastBytes;
  };
  std::optional<Asked> asked;
  std::optional<unsigned> lane;
  llvm::SmallVector<mlir::Value> coordinates, symbols;
  llvm::SmallVector<Memory> scopes;
  llvm::DenseMap<mlir::Value, Packed> packed;
  llvm::DenseMap<mlir::Value, Part> parts;
  llvm::DenseMap<unsigned, Range> ranges; ///< of coordinates
  llvm::DenseMap<mlir::Value, mlir::Value> byteViews;
};

/// Which turn of the loops `loops` of `root`, of known extents and outermost
/// first, is at `point`, which has an expression for each loop.
mlir::AffineExpr numberOfTurn(mlir::linalg::GenericOp root,
                              llvm::ArrayRef<unsigned> loops,
                              llvm::ArrayRef<mlir::AffineExpr> point);

/// Whole bytes of an element of `type`; 0 where it has none.
int64_t bytesOfElement(mlir::MemRefType type);

/// The same as without a reader; `body` has a scope of `reader` of its own.
void emitTurns(Kernel &kernel, LaneReader &reader, mlir::Value from,
               mlir::Value to, int64_t step,
               llvm::function_ref<void(mlir::Value)> body);

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_LANEREADER_H
