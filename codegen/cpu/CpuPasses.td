//===- CpuPasses.td - kernels become CPU loops ------------*- tablegen -*-===//
#ifndef KERATIN_CODEGEN_CPU_CPUPASSES_TD
#define KERATIN_CODEGEN_CPU_CPUPASSES_TD

include "mlir/Pass/PassBase.td"

class EmitKernels<string mnemonic> : Pass<mnemonic, "::mlir::ModuleOp"> {
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"];
}

def EmitPlainLoops : EmitKernels<"ktn-emit-plain-loops"> {
  let summary = "Rewrite kernels on tensors to scalar loops on memrefs";
  let description = [{
    Every function with the attribute `ktn.kernel` becomes a function without
    results whose arguments are memrefs of the same shapes: one loop an output
    dimension, inside them the loops of the reduction with the accumulators in
    registers. Elementwise operands are computed where they are read. Nothing
    is reordered, so this is the reference for `ktn-emit-tiles`.

    Calls of the kernels follow: their operands are cast to memrefs, the casts
    are what `ktn-plan-memory` gives places to.
    Requires: the form of the stage `kernels` (docs/ARCHITECTURE.md).
  }];
}

def EmitTiles : EmitKernels<"ktn-emit-tiles"> {
  let summary = "Rewrite kernels on tensors to register tiles on memrefs";
  let description = [{
    Every function with the attribute `ktn.kernel` becomes a function on
    memrefs that keeps a tile of outputs, rows by vectors, in registers over
    the whole reduction, applies the epilogue to it there and stores it.
    Elementwise operands are computed where they are read. Kernels of the kind
    `rows` are computed row by row, values between their steps in a scratch row.

    An argument marked `ktn.constant` may be wanted in another order: its type
    is then the one of `packedType` (codegen/cpu/Packing.h), with the
    attributes `ktn.packed = {dim, block}`, where blocks do not go along some
    dimensions with `outer`, where their halves are one word with `interleaved`,
    and `ktn.unpacked_type`.

    A product of factors of bf16 that are summed up in f32 becomes dot products
    of pairs of neighbours where `dots` says that the target has them; the right
    factor is packed in pairs then (codegen/cpu/PairPacking.h), `ktn.packed =
    {block, dim, outer, pairs}` and for gates `inner`. Tile registers are LLVM
    intrinsics already. Where there are such, a product of f32 by many rows and
    constant weights is computed in them as well, with each factor the sum of
    three of bf16: its weights have `split`, too.

    Attention over more than `attention-keys` keys goes over them in blocks, with
    running maxima, totals and sums of values, where its rows are a softmax.

    With `little-code` tiles are small and, where extents allow, of one size; short
    rows go one by one, no kernel has parts, and `winograd=auto` is `off`.

    What no tile fits becomes the loops of `ktn-emit-plain-loops`.

    With `parallel`, a kernel whose calls have work for several threads gets the
    last arguments `begin`, `end` and `count`: a call does the parts begin..end-1
    of `count` parts of an outer loop. A part is some whole tiles, the same ones
    whatever the number of parts. `ktn.parts` tells how many are worth it; here
    calls ask for all parts, of as many as their work is worth.
    Requires: the form of the stage `kernels` (docs/ARCHITECTURE.md).
  }];
  let options = [
    Option<"dots", "dots", "::keratin::DotUnit", "::keratin::DotUnit::None",
           "what sums products of bf16, and in tiles of f32",
           [{::llvm::cl::values(
             clEnumValN(::keratin::DotUnit::None, "none", "ordinary FMA"),
             clEnumValN(::keratin::DotUnit::Vectors, "vectors", "AVX512_BF16"),
             clEnumValN(::keratin::DotUnit::Tiles, "tiles", "AMX"))}]>,
    Option<"vectorBits", "vector-bits", "unsigned", "256",
           "bits of a vector register of the target">,
    Option<"vectorRegisters", "vector-registers", "unsigned", "16",
           "number of vector registers of the target">,
    Option<"secondCacheKiB", "second-cache-kib", "unsigned", "0",
           "size of the second cache of the target; 0 where it is not known">,
    Option<"fetchesAhead", "fetches-ahead", "bool", "false",
           "the target fetches runs of memory soon enough without being asked">,
    Option<"oneRun", "one-run", "bool", "false",
           "weights of one row come sooner as one run of memory">,
    Option<"asksNextRows", "asks-next-rows", "bool", "false",
           "short rows come sooner from the second cache where a tile asks for "
           "those of the next one">,
    Option<"halfUnits", "half-units", "bool", "false",
           "half a vector takes the target half the time of a vector">,
    Option<"weights24", "weights24", "::keratin::Weights24",
           "::keratin::Weights24::None",
           "weights of 24 bits, of those that one row of a product meets",
           [{::llvm::cl::values(
             clEnumValN(::keratin::Weights24::None, "none", "as they are"),
             clEnumValN(::keratin::Weights24::Far, "far",
                        "that come from behind the second cache"),
             clEnumValN(::keratin::Weights24::All, "all", "all of them"))}]>,
    Option<"asksForLater", "asks-for-later", "bool", "true",
           "products ask for weights that one row meets behind them">,
    Option<"strassen", "strassen", "bool", "false",
           "products may be made of fewer multiplications">,
    Option<"pairs", "pairs", "bool", "false",
           "two products may be made by one multiplication and two sums">,
    Option<"storesAtOnce", "stores-at-once", "unsigned", "0",
           "stores in a row that do not hold up products; 0 for any number">,
    Option<"parallel", "parallel", "bool", "false",
           "let calls do large kernels in parts">,
    Option<"littleCode", "little-code", "bool", "false",
           "small tiles and no copies of loops: code that is compiled soon">,
    Option<"attentionKeys", "attention-keys", "int64_t", "8192",
           "keys of attention whose scores are there together">,
    Option<"winograd", "winograd", "::keratin::Winograd",
           "::keratin::Winograd::Off",
           "how convolutions by windows are computed",
           [{::llvm::cl::values(
             clEnumValN(::keratin::Winograd::Off, "off", "as sums"),
             clEnumValN(::keratin::Winograd::Auto, "auto", "as is fastest"),
             clEnumValN(::keratin::Winograd::F2, "2", "in tiles of four inputs"),
             clEnumValN(::keratin::Winograd::F4, "4", "in tiles of six"),
             clEnumValN(::keratin::Winograd::F8, "8", "in tiles of eight"))}]>];
}

#endif // KERATIN_CODEGEN_CPU_CPUPASSES_TD
