//===- BandPlan.h - which bands chains of kernels go by ---------*- C++ -*-===//
#ifndef KERATIN_PASSES_BANDPLAN_H
#define KERATIN_PASSES_BANDPLAN_H

#include "passes/KernelRows.h"

namespace keratin {

/// Bytes of a tensor of `type`, which is static; what overflows is large.
int64_t bytesOf(mlir::RankedTensorType type);

/// A call in a chain: its result is operand `input` of the next one.
struct Link {
  mlir::func::CallOp call;
  KernelRows rows;
  unsigned input = 0; ///< the operand that is the result of the link before
  /// A sum over windows that overlap: it may be computed by tiles of the image,
  /// which bands must not cut elsewhere.
  bool inTiles = false;
  bool canGo = false; ///< from the front of the chain

  mlir::RankedTensorType type() {
    return llvm::cast<mlir::RankedTensorType>(call.getResult(0).getType());
  }
  /// Bytes of so many rows of an image of the result, with what is around them;
  /// what overflows is large.
  int64_t bytesOf(int64_t count) {
    return keratin::bytesOf(rows.typeOf(call.getNumOperands() - 1, count));
  }
};
using Chain = llvm::SmallVector<Link, 3>;

/// How many rows each link of a chain has for a band, and how many bands an
/// image has.
struct BandPlan {
  llvm::SmallVector<int64_t> rows;
  int64_t bands = 0;
  /// How many of the rows of a link the band before has computed, which are
  /// kept; 0 where all are computed for each band. The others are computed one
  /// by one, all of them by the same kernel: a row is the same whatever band is
  /// the first of a thread.
  llvm::SmallVector<int64_t> kept;
};

/// The bands that `chain` takes the least time with, of those that have at most
/// `bandBytes` between kernels; none where it takes less without.
std::optional<BandPlan> planBands(Chain &chain, int64_t bandBytes);

/// How many bands threads may do at the same time, with buffers for each.
int64_t piecesOf(Chain &chain, const BandPlan &plan);

} // namespace keratin

#endif // KERATIN_PASSES_BANDPLAN_H
