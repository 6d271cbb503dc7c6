//===- GateForm.h - which kernels have gates --------------------*- C++ -*-===//
#ifndef KERATIN_CODEGEN_CPU_GATEFORM_H
#define KERATIN_CODEGEN_CPU_GATEFORM_H

#include "codegen/cpu/Kernel.h"
#include "codegen/cpu/TileSizes.h"
#include "codegen/cpu/Weights24.h"
#include "passes/Pipelines.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <optional>

namespace keratin {

/// A product of rows with constant weights, whose columns are some gates of
/// some units each, and what follows from it in the same row and unit.
struct GateForm {
  mlir::linalg::GenericOp root;
  mlir::OpOperand *weights = nullptr, *factor = nullptr; ///< and what they meet
  /// Loops of the root; rows are the one before the gates.
  unsigned gate = 0, lane = 0;
  llvm::SmallVector<unsigned> reductions;
  int64_t gates = 0, units = 0;
  unsigned lanes = 0, vectors = 1; ///< of a block
  unsigned mostRows = 1;           ///< of a tile
  unsigned rowsFitting = 1;        ///< at most, of which there are sums
  unsigned lowRows = 1;            ///< of the last tiles
  int64_t lowTiles = 0;            ///< how many those are
  /// Whether the sums of all rows of a block go to memory, and the results are
  /// computed from there.
  bool sumsInMemory = false;
  /// From so many bytes on weights do not all stay in the second cache, on the
  /// sets of which pages fall as it happens.
  int64_t farBytes = 0;
  int64_t mostSteps = 8; ///< of the last reduction in a turn of its loop
  /// Of weights in a turn. What fetches lines ahead follows a load from turn to
  /// turn, and most of it no farther than 2 KiB: with more, weights in the
  /// second cache of Zen 5 come at 160 GB/s and not 260.
  int64_t mostBytes = 2047;
  /// With dot products a step takes two neighbours of the last reduction at
  /// once, which both factors have as bf16 (codegen/cpu/DotLanes.h).
  DotUnit dots = DotUnit::None;
  /// In tile registers (codegen/cpu/DotTiles.h): rows of each, of which there
  /// are so many or not known to be, how many tiles of rows are summed up at
  /// once, and how many neighbours a step takes.
  int64_t tileRows = 0, tilesAtOnce = 1, depth = 0;
  /// Whether both factors are f32, and split (codegen/cpu/SplitTiles.h): all
  /// rows at the beginning of a call.
  bool split = false;
  /// Whether several rows of f32 are multiplied in pairs
  /// (codegen/cpu/PairedTiles.h), and elements from a copy of one to the next.
  bool paired = false;
  int64_t copiedStride = 0;
  /// How weights are packed as integers of 24 bits, which one row meets.
  std::optional<Packing24> packing24;
};

/// Nothing where the kernel has another form; `dots` is what the target has.
std::optional<GateForm> gateFormOf(Kernel &kernel, const VectorUnit &unit,
                                   DotUnit dots);

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_GATEFORM_H
