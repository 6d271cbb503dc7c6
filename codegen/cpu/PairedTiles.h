//===- PairedTiles.h - tiles of sums of pairs -------------------*- C++ -*-===//
#ifndef KERATIN_CODEGEN_CPU_PAIREDTILES_H
#define KERATIN_CODEGEN_CPU_PAIREDTILES_H

#include "codegen/cpu/Kernel.h"
#include "codegen/cpu/PairedWeights.h"
#include "codegen/cpu/TileSizes.h"

#include "mlir/Dialect/LLVMIR/LLVMTypes.h"

namespace keratin {

/// Whether products may be made in pairs: with 512 bits and 32 registers, which
/// is what instructions are written for.
bool canHavePairs(const VectorUnit &unit);
/// How many rows tiles of `height` take the time of.
int64_t costOfPairedRows(int64_t rows, int64_t height);
/// The rows of a tile: as many as registers hold the sums of, beside what is
/// multiplied, or less where the last tile would have few of them.
unsigned rowsOfPairedTile(int64_t rows, unsigned vectors,
                          const VectorUnit &unit);
/// What pairs take beside products, in cycles in which one vector is
/// multiplied, as measured: once for each row, for each of its elements and for
/// each vector of its outputs; `tiles`: how many rows' time a row takes in
/// them.
struct PairedCosts {
  double ofRow = 75, ofElement = .17, ofVector = 7, tiles = 1;
  double most = .9; ///< of what sums of products take
};
/// Whether rows of `depth` elements and `columns` are expected to take less
/// time in pairs.
bool arePairsFaster(int64_t depth, int64_t columns, unsigned lanes,
                    const PairedCosts &costs = {});

/// Whether `packPaired` can pack the constants that an argument of the kernel
/// has.
bool canBePaired(Kernel &kernel, mlir::Value weights,
                 const PairedPacking &packing);

/// What emitters of products in pairs (codegen/cpu/PairedProduct.h) share:
/// measures of rows, and tiles of sums in registers.
class PairedTiles {
public:
  using Value = mlir::Value;
  using Values = llvm::SmallVector<Value>;

  /// Of rows of `depth` elements, and vectors of `lanes`.
  PairedTiles(Kernel &kernel, int64_t depth, unsigned lanes)
      : kernel(kernel), b(kernel.builder()), loc(kernel.loc()), depth(depth),
        lanes(lanes) {}

  /// What there is to know of a row.
  struct Measures {
    Value pairs;   ///< the sum of the products of its pairs, with their signs
    Value squares; ///< of all its elements
    Value largest; ///< of their magnitudes, by its bits
  };
  /// Reads so many elements of a row, from one on.
  using Load = llvm::function_ref<Value(Value, unsigned)>;
  Measures measure(Load load);
  /// Adds a vector to the squares and the largest magnitudes of its lanes.
  void addMeasures(Value vector, Value &squares, Value &largest);
  /// Whether the mean of the squares of a row is about that of the weights,
  /// one. It is not where it is no number.
  Value isLikeWeights(const Measures &measures);
  /// A power of two, and what makes up for it.
  using Factors = std::pair<Value, Value>;
  /// What is to be known of a row when its sums are completed.
  struct Facts {
    Value subtracted, back; ///< and what they are multiplied by
  };
  /// What a row is multiplied by to be like them, or one.
  Factors factorsOf(const Measures &measures);
  /// What each lane, a column of weights, is multiplied by to have about one as
  /// the mean of its squares.
  Factors factorsOfColumns(const Measures &measures);
  /// `vector` with zeros behind it, where it has not all lanes.
  Value widened(Value vector, unsigned width);
  /// Measures a row as `load` reads it and stores it as large as the weights,
  /// by `store`.
  Facts scaleRow(Load load, llvm::function_ref<void(Value, Value)> store);
  /// At the first places of `memory`, whose last one has two numbers.
  void storeFacts(const Facts &facts, Value memory, mlir::ValueRange place);
  Facts loadFacts(Value memory, mlir::ValueRange place);
  /// What a row needs no scaling for.
  Facts factsOf(const Measures &measures);
  /// Calls `body` with the first of so many elements each of `length`: whole
  /// vectors, and then the rest.
  void forVectors(int64_t length,
                  llvm::function_ref<void(Value, unsigned)> body);

  /// The address of `element` behind another one.
  Value behind(Value address, Value element);

  struct Tile {
    Value rows;     ///< the address of the first element of the first row
    int64_t stride; ///< elements from row to row
    unsigned height;
    llvm::ArrayRef<unsigned> lanes; ///< of each vector of columns
  };
  /// A vector of weights of an element of the sum, or of what is behind them
  /// (rowsBehindPaired).
  using Weights = llvm::function_ref<Value(Value, unsigned)>;
  /// The sums of a tile, row by row. `beside` emits what else is done in the
  /// step that begins with an element.
  Values multiply(const Tile &tile, Weights weights,
                  llvm::function_ref<void(Value)> beside);
  /// A vector of products, of `sum` and the vector of weights that it is
  /// multiplied by, and of the facts of its row.
  Value complete(Value sum, Value factors, const Facts &facts);

private:
  Value plus(Value value, int64_t offset) {
    return kernel.plus(value, kernel.index(offset));
  }
  Value constant(mlir::TypedAttr value);
  Value real(double value);
  Value numbers(mlir::TypedAttr value, mlir::Type like);
  Value power(Value exponent, mlir::Type reals);
  Value isWithin(Value squares, double least, double most);
  Factors select(Value condition, Factors first, Factors second);
  Factors factorsOfLargest(const Measures &measures);
  mlir::VectorType vectorType() {
    return mlir::VectorType::get(lanes, b.getF32Type());
  }
  Value spread(Value scalar, mlir::Type vector);
  void addVector(Value vector, Value whole, unsigned number, Values &sums);
  Value joinLanes(Value vector);
  void addStep(const Tile &tile, Value step, Weights weights, Values &sums);

  Kernel &kernel;
  mlir::OpBuilder &b;
  mlir::Location loc;
  int64_t depth;
  unsigned lanes;
};

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_PAIREDTILES_H
