//===- SharedNest.h - nested loops that threads share -----------*- C++ -*-===//
//
// Of nested loops the calls of a kernel in parts share one, or two of which one
// is in the other, as one count:
//
//     turn of the outer loop * turns of the inner one + turn of the inner one
//
// so that a batch that has one image, or a loop of five turns, is no work of
// one thread, or of two with three and two.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_CODEGEN_CPU_SHAREDNEST_H
#define KERATIN_CODEGEN_CPU_SHAREDNEST_H

#include "codegen/cpu/Kernel.h"

namespace keratin {

/// The loop that makes shares of `first` equal, one of `turns`: the one with
/// most of those that are known. Null where `first` has enough turns itself,
/// and where no other has two. Turns are ShapedType::kDynamic where not known.
std::optional<unsigned> pickSecondLoop(llvm::ArrayRef<int64_t> turns,
                                       unsigned first);

/// Of two loops that have enough turns together, whatever the number of those
/// that is not known, the one with more.
std::optional<unsigned> pickKnownLoop(llvm::ArrayRef<int64_t> turns);

/// How many turns of `step` a loop over `extent` has, times `width`.
mlir::Value countTurns(Kernel &kernel, mlir::Value extent, int64_t step,
                       int64_t width);

/// Where turns of `step` begin and end within `extent`: nowhere behind it.
std::pair<mlir::Value, mlir::Value>
placesOfTurns(Kernel &kernel, std::pair<mlir::Value, mlir::Value> turns,
              int64_t step, mlir::Value extent);

/// Where the inner of two shared loops, of `width` turns, is at `turn` of both
/// while the outer one is at `around`: at one of its own turns, or an end.
mlir::Value turnOfInner(Kernel &kernel, mlir::Value turn, mlir::Value around,
                        int64_t width);

/// The shares that a call has of nested loops, from the outermost one on.
class SharedNest {
public:
  /// Picks loops by their `turns`, ShapedType::kDynamic where not known.
  SharedNest(Kernel &kernel, llvm::ArrayRef<int64_t> turns);

  /// Whether a loop is shared; else one call has to do all.
  bool isShared() const { return outer.has_value(); }
  /// Where `loop` starts and ends, which has turns of `step` within `extent`:
  /// at a multiple of `step`, or with `extent`.
  std::pair<mlir::Value, mlir::Value> range(unsigned loop, mlir::Value extent,
                                            int64_t step = 1);
  /// Says where `loop` is, whose turns have one place: it is around others.
  void enter(unsigned loop, mlir::Value place);

private:
  Kernel &kernel;
  std::optional<unsigned> outer, inner;
  int64_t width = 1;                      ///< turns of the inner one
  std::pair<mlir::Value, mlir::Value> of; ///< this call's of both
  mlir::Value place;                      ///< of the outer one
};

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_SHAREDNEST_H
