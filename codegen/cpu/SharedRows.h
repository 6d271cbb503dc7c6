//===- SharedRows.h - loops whose rows threads share ------------*- C++ -*-===//
#ifndef KERATIN_CODEGEN_CPU_SHAREDROWS_H
#define KERATIN_CODEGEN_CPU_SHAREDROWS_H

#include "codegen/cpu/Kernel.h"

namespace keratin {

/// Emits a kernel, or a copy of one with that name; false where it cannot.
using EmitKernel = llvm::function_ref<bool(Kernel &, llvm::StringRef)>;

/// Looks for loops each turn of which makes every row of its states from the
/// same row of the states before, as a recurrent layer does for each sample of
/// a batch, and lets threads share the rows: each goes through all turns with
/// its own, and meets the others at the end. Their kernels become others,
/// copies that `emit` is given. The loop gets the attribute `ktn.shared_rows`
/// (passes/Bands.h), its calls stay as they are. Returns the kernels that have
/// been emitted.
///
/// Only where there is work enough for several threads, where rows are many
/// enough for tiles, and where the second cache of each thread, `cacheBytes`,
/// holds the weights of a turn. Where the target has tile registers,
/// `hasTiles`, whole tiles of them are shared.
llvm::SmallDenseSet<mlir::Operation *> shareRowsOfLoops(mlir::ModuleOp module,
                                                        int64_t cacheBytes,
                                                        bool hasTiles,
                                                        EmitKernel emit);

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_SHAREDROWS_H
