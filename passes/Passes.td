//===- Passes.td - the passes and their documentation -----*- tablegen -*-===//
#ifndef KERATIN_PASSES_TD
#define KERATIN_PASSES_TD

include "mlir/Pass/PassBase.td"

def ExpandGradients : Pass<"ktn-expand-gradients", "::mlir::func::FuncOp"> {
  let summary = "Replace ktn.gradients by reverse-mode derivatives";
  let description = [{
    Walks back from the targets of each `ktn.gradients` once, asking every op on
    the way to a variable for its rule (`VjpOpInterface`); an op without one is an
    error reported at that op. A variable that the targets do not depend on has
    the gradient zero. Gradients of gradients are more graph like any other.

    Requires: nothing; the function is at the `graph` stage.
  }];
}

def Decompose : Pass<"ktn-decompose", "::mlir::func::FuncOp"> {
  let summary = "Replace ops that are formulas by their formulas";
  let description = [{
    Ops with `DecomposeOpInterface` become smaller ops, until none is left.
    `ktn.training_phase` becomes a constant and `ktn.stop_gradient` its operand.

    Requires: `ktn-expand-gradients`, which has rules for the large ops and needs
    to see where gradients stop.
  }];
  let options = [Option<"training", "training", "bool", /*default=*/"false",
                        "the value of ktn.training_phase">];
}

def CheckpointScan : Pass<"ktn-checkpoint-scan", "::mlir::func::FuncOp"> {
  let summary = "Split loops so that their gradients keep few states";
  let description = [{
    A `ktn.scan` with `checkpoint_every = k` becomes a scan over chunks of k steps,
    whose body is a scan over the steps of one, and one over the steps that are left.
    The gradient of the outer one keeps the states between chunks only, and
    computes the steps of a chunk again. Loops whose number of steps is not known, or not
    above k, and functions without gradients stay as they are.

    Requires: nothing; before `ktn-expand-gradients`.
  }];
  let options = [Option<"checkpointEvery", "checkpoint-every", "int64_t", /*default=*/"0",
                        "k of loops that do not tell; 0 splits none of them">];
}

def FoldLookups : Pass<"ktn-fold-lookups", "::mlir::func::FuncOp"> {
  let summary = "Look up products of rows of a table in a table of products";
  let description = [{
    `gather(T, i) W`, where the table T and the matrix W are constants of f32, becomes
    `gather(T W, i)`: an embedding in front of a recurrent or a dense layer takes the
    layer's products with it (`LookupOpInterface`, `RowwiseOpInterface`). So it does where steps of a `ktn.scan` multiply what
    was looked up in front of it; they look it up themselves then. T W is
    left to `ktn-fold-constants`. Rounding is that of one sum of products as before.

    The table becomes as wide as the product, so it is not done where rows have
    few terms, or less than an eighth of the columns, and only as long as all tables
    of products of a function have `most-kib` at most. Nor in functions with
    `ktn.gradients`, which may be those of what was looked up.

    Requires: nothing; before `ktn-hoist-scan`.
  }];
  let options = [Option<"mostKiB", "most-kib", "unsigned", /*default=*/"65536",
                        "what tables of products may have">];
}

def HoistScan : Pass<"ktn-hoist-scan", "::mlir::func::FuncOp"> {
  let summary = "Take what does not depend on the state out of scans";
  let description = [{
    Ops in the body of a `ktn.scan` that are the same in every step move in front
    of it. Ops that depend on the slices, but not on the states, do all steps at once
    there when they are or feed ops with `StackableOpInterface`, so that all
    products of inputs and weights of an LSTM are one product. The loop reads
    slices of the result. A state that each step only adds to leaves the loop
    behind it, when ops with `StepSumOpInterface` give the sum of all steps: the
    gradient of the weights of an LSTM is one product as well.

    Requires: `ktn-decompose`; before `ktn-expand-gradients` it is of use as well:
    what it takes out of a loop has a gradient outside of the loop.
  }];
}

def FoldAffine : Pass<"ktn-fold-affine", "::mlir::func::FuncOp"> {
  let summary = "Fold scales and shifts of products into the weights";
  let description = [{
    An op with `LinearInKernelOpInterface` and constant weights whose only reader
    scales or shifts the result by constants of one value a channel, and so
    on, becomes the op with scaled weights and one shift: a batch normalisation
    after a convolution disappears. So does a scale of the channels in front of a
    convolution, as squeeze-and-excitation has, where it is constant or the weights are few
    beside the image. Rounding differs from that of the ops one
    after another. The arithmetic on the weights is left to `ktn-fold-constants`.

    Requires: `ktn-decompose`.
  }];
}

def Canonicalize : Pass<"ktn-canonicalize"> {
  let summary = "Bring ops to their canonical forms";
  let description = [{
    Does what `canonicalize` of MLIR does. The patterns of all ops of a context
    are collected once, not for each such pass of each compilation: for a
    function of one op that takes longer than to apply them.

    Requires: nothing.
  }];
}

def FoldConstants : Pass<"ktn-fold-constants", "::mlir::ModuleOp"> {
  let summary = "Compute constant expressions on the host";
  let description = [{
    A variable that no function assigns becomes a constant. Then the ops of each
    function that depend on constants only move to one function `@evaluate`,
    which the `ConstantEvaluator` given to `createFoldConstants` compiles and
    runs; its results replace them. A result larger than 64 KiB and than twice the
    constants it is made of stays an op, unless that has the attribute `ktn.stored`. Without an evaluator nothing is computed.

    Requires: `ktn-decompose`, or a formula is folded only as a whole.
  }];
  let dependentDialects = ["::mlir::func::FuncDialect"];
}

def SpecializeShapes : Pass<"ktn-specialize-shapes", "::mlir::func::FuncOp"> {
  let summary = "Give a function's unknown extents values";
  let description = [{
    Sets the types of the arguments and infers every type anew from them, in
    regions too; what becomes a constant, such as an extent, is folded. An op
    that the new shapes do not fit is an error reported at that op. The pass
    sets each leading `?` to `batch`; `specializeShapes` takes any types.

    Requires: nothing; the function is at the `graph` stage.
  }];
  let options = [Option<"batch", "batch", "int64_t", /*default=*/"-1",
                        "the leading extent of the arguments">];
}

def AssignLayout : Pass<"ktn-assign-layout", "::mlir::func::FuncOp"> {
  let summary = "Make every image op channels_last";
  let description = [{
    Marks the ops with `LayoutOpInterface` channels_last and transposes what they
    read and write. The transposes then sink through elementwise ops, reductions,
    pads, slices and concatenations until two cancel; what only moves axes of
    extent 1 becomes a reshape. Transposes of constants are left to
    `ktn-fold-constants`. A function without channels_first ops is not touched.

    Requires: `ktn-decompose`, or transposes stop at ops that are formulas.
  }];
}

def LowerToLinalg : Pass<"ktn-lower-to-linalg", "::mlir::ModuleOp"> {
  let summary = "Lower ktn ops to linalg on tensors";
  let description = [{
    Rewrites every `ktn` op to `linalg`, `tensor`, `arith`, `math` and `scf` as
    docs/ARCHITECTURE.md says for the stage `linalg`. An op without a lowering
    is an error reported at that op. Unsigned elements become signless; such an
    argument or result of a function is marked `ktn.unsigned`. Sizes are told by
    the function's arguments: shape arithmetic is done on scalars, and views
    that only add or drop axes of extent 1 disappear into the maps of their readers.

    Requires: `ktn-expand-gradients`, `ktn-decompose`, `ktn-assign-layout`.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

def WidenHalves : Pass<"ktn-widen-halves", "::mlir::ModuleOp"> {
  let summary = "Keep tensors of 16-bit floats as f32";
  let description = [{
    For targets that compute nothing in 16 bits: what one op computes for others in f16, or with `bf16` in bf16, becomes
    a tensor of f32 with the same, rounded elements. So products, windows and rows are those of f32 and
    widen nothing; all roundings stay but those of numbers that are of 16 bits already, as of the larger of two.
    Arguments and results of the function keep their types; what a product reads of them many times is copied. Weights stay as small where
    that saves time: those of products without a window, outside of loops.

    ```mlir
    %0 = linalg.generic … ins(%x : tensor<?x784xf32>) {
      %1 = arith.truncf %in : f32 to f16
      %2 = arith.extf %1 : f16 to f32
      linalg.yield %2 : f32 } -> tensor<?x784xf32>
    %3 = linalg.generic … ins(%0, %w : tensor<?x784xf32>, tensor<784x10xf16>) …
    ```
    Requires: `ktn-lower-to-linalg`.
  }];
  let options = [Option<"bf16", "bf16", "bool", /*default=*/"false",
                        "bf16, too">];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def RoundFactors : Pass<"ktn-round-factors", "::mlir::ModuleOp"> {
  let summary = "Round the factors of products to bf16 or f16";
  let description = [{
    The factors of sums of products whose elements and sums are f32 are rounded, to
    nearest even: those of matrix products, convolutions and what a recurrent step multiplies by its
    weights. Sums stay f32, and so does all that is computed elsewhere. What is no sum over a
    dimension that both factors go along by themselves is left alone, as are depthwise windows.

    To bf16: weights become constants of bf16. With `narrow` other factors do too: each is rounded where it
    is computed, once for all products. Without, they are rounded to the same values but stay
    f32, for targets that multiply nothing else; so do weights of windows.
    What reads a factor element by element reads the rounded numbers too. Rounded as well are addends that are stored
    until a later product is added to them, as the shorter way of a residual block is, where the sum becomes a rounded factor; the
    last product is added as f32. With `narrow` a window over an odd number of
    channels gets one more, of zeros, so that sums are made of pairs, and the largest of a window, where only products
    read it, is taken of rounded elements, which is the same.

    ```mlir
    %0 = linalg.generic … ins(%x : tensor<?x784xf32>) {              // rounded once
      %1 = arith.truncf %in : f32 to bf16
      linalg.yield %1 : bf16 } -> tensor<?x784xbf16>
    %2 = linalg.generic … ins(%0, %w : tensor<?x784xbf16>, tensor<784x10xbf16>) {
      %3 = arith.extf %in : bf16 to f32  …  arith.mulf, arith.addf on f32
    ```

    To f16: only weights are rounded, and become constants of f16. What is computed stays f32: no target gains by
    anything else, and it may be larger than 65504. Weights stay f32 that hold a finite number which would become
    infinite, those of windows of more than one element, and those that a loop reads in each turn from the second cache, 1 MiB at most.
    Requires: `ktn-lower-to-linalg`.
  }];
  let options = [Option<"type", "type", "::keratin::Precision",
                        "::keratin::Precision::BF16",
                        "what factors are rounded to",
                        [{::llvm::cl::values(
                          clEnumValN(::keratin::Precision::BF16, "bf16",
                                     "all factors, to bf16"),
                          clEnumValN(::keratin::Precision::F16, "f16",
                                     "weights, to f16"))}]>,
                 Option<"narrow", "narrow", "bool", /*default=*/"false",
                        "keep rounded factors that are computed as bf16">];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def UnrollLoops : Pass<"ktn-unroll-loops", "::mlir::func::FuncOp"> {
  let summary = "Do several steps of a loop in a row";
  let description = [{
    Repeats the body of an `scf.for` of a known number of steps `unroll-factor` times;
    steps that are left follow in another loop. With 0 a loop is unrolled whole when that takes at
    most 64 computations, and stays otherwise; 1 leaves every loop rolled, so that
    the code does not depend on the number of steps.

    Requires: `ktn-lower-to-linalg`.
  }];
  let options = [Option<"unrollFactor", "unroll-factor", "int64_t", /*default=*/"0",
                        "steps in a row; 0 chooses by the size of the code">];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect"];
}

def FuseElementwise : Pass<"ktn-fuse-elementwise", "::mlir::func::FuncOp"> {
  let summary = "Join chains of parallel loops";
  let description = [{
    A parallel `linalg.generic` whose elements only one other parallel generic
    reads becomes part of it. Where the reader repeats elements (broadcasting) this
    happens only if they are cheap to compute again. So does a cheap function of one
    element that several read, where others read that element as well: it is computed again
    by each, not stored. A view with fewer axes
    between the two moves behind the reader. A loop does not grow beyond the number of scalar
    operations and operands that `passes/KernelLimits.h` allows: the time that a long chain
    takes is in proportion to its length.

    Requires: `ktn-lower-to-linalg`.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect"];
}

def MergeAxes : Pass<"ktn-merge-axes", "::mlir::func::FuncOp"> {
  let summary = "Make axes of products that lie side by side one axis";
  let description = [{
    The columns of a product may be several axes, such as the heads of attention
    and the elements of each, and so may what it sums over. Where all its tensors
    have them side by side they become one axis, also of the parallel op that
    goes through its result; all others read a view. The extents are known.

    Requires: `ktn-lower-to-linalg`.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def SkipUnread : Pass<"ktn-skip-unread", "::mlir::func::FuncOp"> {
  let summary = "Compute only those elements that are read";
  let description = [{
    Where all that reads the result of a `linalg.generic` goes along an axis in steps, as a 1 x 1 convolution
    with a stride does, the op computes what is read and nothing between. Then it goes along its own operands
    in steps, and so on: of a residual block in front of such a convolution the last window is the first that computes
    less. The numbers are the same.

    Requires: `ktn-fuse-elementwise`.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def SplitSums : Pass<"ktn-split-sums", "::mlir::func::FuncOp"> {
  let summary = "Add up in two steps what has few results";
  let description = [{
    A sum over the outer axes of many elements, as that over a batch of images for each channel, has no loop that threads
    could share. The outermost of these axes become groups, each with sums of its own, and a second op adds those up. The
    groups are those of the shape, which is known, so that results do not depend on threads.

    Requires: `ktn-lower-to-linalg`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def SplitPools : Pass<"ktn-split-pools", "::mlir::func::FuncOp"> {
  let summary = "Reduce large images that products make band by band";
  let description = [{
    A reduction over all pixels of images that are too large for the second cache, such as global pooling, reads again what
    a product has just written. It becomes one over each band of rows, which `ktn-band-kernels` does right behind the
    product of the band, and one over what bands have.

    Requires: `ktn-lower-to-linalg`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def SplitWindows : Pass<"ktn-split-windows", "::mlir::func::FuncOp"> {
  let summary = "Give windows with few outputs more columns";
  let description = [{
    Outputs are lanes of a vector, so a convolution with three of them leaves most lanes idle. Where its weights are known
    and it moves by one, the products of an input with the weights of several taps become columns of one product, and a
    second op adds each to the output that it belongs to:

        y[w, (t, o)] = sum over c of x[w, c] * k[t, c, o]
        z[w, o]      = sum over t of y[w + t, (t, o)]

    A cost model chooses the taps: none, those of the innermost way of the window, of the innermost two, and so on. None where
    vectors along the inputs are cheaper, of which there must be enough to fill one.

    Requires: `ktn-lower-to-linalg`.
  }];
  let options = [Option<"vectorBits", "vector-bits", "unsigned",
                        /*default=*/"512", "bits of a vector register">];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def FormKernels : Pass<"ktn-form-kernels", "::mlir::ModuleOp"> {
  let summary = "Partition the function into kernels";
  let description = [{
    Turns each function at the `linalg` stage into calls of private functions
    with the attribute `ktn.kernel`, which compute, and views, loops and sizes,
    which do not. With `fuse` a kernel holds a root (a product, a window, a
    reduction) with the elementwise ops that can share its loops, or all ops over one row
    (softmax, layer normalisation), up to the limits of `passes/KernelLimits.h`; without
    it each op is a kernel. Kernels of the same structure are one function, named after the
    layer that came first.

    Requires: `ktn-lower-to-linalg`.
  }];
  let options = [Option<"fuse", "fuse", "bool", /*default=*/"true",
                        "compute several ops in one kernel">];
  let dependentDialects = ["::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def FoldPads : Pass<"ktn-fold-pads", "::mlir::ModuleOp"> {
  let summary = "Let windows read around a border that nothing else needs";
  let description = [{
    A kernel that does nothing but to put a border around an image, for a
    depthwise convolution or a pool alone to read, becomes the first op of that
    kernel: a copy of the image less. What could be computed in its place inside
    of the border was put there before.

    Requires: `ktn-form-kernels`, `ktn-band-kernels`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::tensor::TensorDialect"];
}

def BandKernels : Pass<"ktn-band-kernels", "::mlir::ModuleOp"> {
  let summary = "Compute large images between kernels by bands of rows";
  let description = [{
    Where one kernel writes images that the next goes over with a small window,
    such as a depthwise convolution, and a third may multiply, and what is between
    them is larger than the second cache, they become a loop over bands of rows:
    each turn computes the rows of one image that a few rows of the result need,
    in buffers that stay in the cache. Rows that two bands need are computed for
    each; a band does not depend on another one, so that threads can share them.
    The loop has an attribute `ktn.bands`, what `ktn-plan-memory` makes a function of.

    Requires: `ktn-form-kernels`.
  }];
  let options = [Option<"parallel", "parallel", "bool", /*default=*/"true",
                        "let threads share the bands">,
                 Option<"bandKiB", "band-kib", "unsigned", /*default=*/"1024",
                        "what there may be between the kernels of a band">];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

def PlanMemory : Pass<"ktn-plan-memory", "::mlir::ModuleOp"> {
  let summary = "Give every buffer a place in the arena";
  let description = [{
    Rewrites the function that calls kernels, which already take memrefs, to
    take bytes: weights, arena, batch, inputs and outputs (docs/ARCHITECTURE.md,
    stage `loops`). Buffers whose lives do not overlap share bytes of the
    arena: first fit in the order of size. A batch that is not known scales all
    offsets that depend on it.

    Requires: `ktn-form-kernels` and a pass that emits the kernels on memrefs.
  }];
  let dependentDialects = ["::mlir::memref::MemRefDialect",
                           "::mlir::arith::ArithDialect"];
}

def CallLibm : Pass<"ktn-call-libm", "::mlir::ModuleOp"> {
  let summary = "Call libm for elementary functions";
  let description = [{
    What -O0 has in the place of `ktn-expand-math`: `math.exp`, `expm1`, `log`, `log1p`,
    `tanh`, `erf`, `sin`, `cos` and `powf` of f32 and f64 become calls of the C functions.
    Before the conversion to LLVM, which makes `exp(x) - 1` of `expm1`.
  }];
  let dependentDialects = ["::mlir::func::FuncDialect",
                           "::mlir::vector::VectorDialect"];
}

def ExpandMath : Pass<"ktn-expand-math"> {
  let summary = "Expand elementary functions to plain arithmetic";
  let description = [{
    Rewrites `math.exp`, `expm1`, `log`, `log1p`, `tanh`, `erf`, `sin`, `cos`,
    `powf` and `fpowi` and `arith.remf`, on scalars and on vectors of any width, to
    polynomials in `arith` and `math.fma` (passes/VectorMath.h states the
    errors), so that the object needs no libm. `arith.maximumf` and `minimumf` become the
    instructions that exist: a NaN stays one, a zero may have either sign. f16 and bf16 are computed in f32. A
    `math.exp` with the attribute `ktn.flush` has no positive argument and may
    give 0 where the result is subnormal; a maximum with `ktn.skip_nan` may leave
    out what is NaN. Any other function that would become a call
    is an error reported at that op.

    Requires: loops; vectors have their final width.
  }];
  let options = [
    Option<"hasFma", "has-fma", "bool", /*default=*/"true",
           "the target fuses multiply and add">,
    Option<"hasRounding", "has-rounding", "bool", /*default=*/"true",
           "the target has floor, ceil, trunc and round to even">,
    Option<"hasAvx512", "has-avx512", "bool", /*default=*/"false",
           "the target has AVX-512">,
    Option<"divides", "divides", "bool", /*default=*/"false",
           "the target divides a vector in less time than four products">,
    Option<"permutes", "permutes", "bool", /*default=*/"false",
           "the target has AVX2 and picks one of eight f32 for each lane as "
           "soon as it multiplies">];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
}

def PrepareMemrefs : Pass<"ktn-prepare-memrefs"> {
  let summary = "Leave only what needs no C runtime of memrefs";
  let description = [{
    A copy between memrefs of which one is not dense becomes loops; dense ones stay
    and become memcpy. An allocation is an error reported at that op: buffers
    are places in the arena.

    Requires: `ktn-plan-memory`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect"];
}

def PassPointers : Pass<"ktn-pass-pointers", "::mlir::ModuleOp"> {
  let summary = "Pass memrefs between functions as pointers";
  let description = [{
    Every memref argument becomes a pointer to its first element. Private functions
    (the kernels) also take, as i64, the extents and then the strides that the type leaves
    open. A public one is not told the extent of its bytes, and may only
    `memref.view` them. Attributes `llvm.*` of an argument, such as
    `llvm.noalias`, stay with the pointer.

    Requires: `ktn-prepare-memrefs`.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def ReduceLanes : Pass<"ktn-reduce-lanes"> {
  let summary = "Reduce over the lanes of a vector in a tree";
  let description = [{
    Rewrites `vector.reduction` of floats to elementwise ops on halves. LLVM would keep the
    order of the lanes: a chain as long as the vector. The order is the same for each
    target and length.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::vector::VectorDialect"];
}

def RoundToBf16 : Pass<"ktn-round-to-bf16"> {
  let summary = "Convert numbers to bf16 by way of f32, or by integers";
  let description = [{
    Integers, f64 and f16 become f32 first: for other conversions LLVM calls its runtime library.

    With `expand`, for targets without instructions that round f32 to bf16, that is done with operations on the bits, to
    nearest even, and any NaN becomes the one. `arith-expand` would select between numbers of bf16, for
    which LLVM may call its library where some lanes of a vector are unused.

    Requires: `arith-emulate-unsupported-floats`, after which nothing is computed in bf16.
  }];
  let options = [Option<"expand", "expand", "bool", /*default=*/"false",
                        "the target has no instructions for bf16">];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def ConvertToLlvm : Pass<"ktn-convert-to-llvm", "::mlir::ModuleOp"> {
  let summary = "Convert to the LLVM dialect, all dialects at once";
  let description = [{
    Rewrites ops on vectors to those that LLVM has, and then `vector`, `math`, `memref`, `arith`,
    `index`, `func`, `cf` and `ub` to the LLVM dialect, as the conversion passes of MLIR do one after
    the other: what they need is made once for a context, and no value is converted there and
    back.

    Requires: `ktn-pass-pointers`, and no `scf` or `affine`.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def ConvertF16 : Pass<"ktn-convert-f16"> {
  let summary = "Convert to and from f16 by way of f32, or by integers";
  let description = [{
    A conversion between f16 and f64 goes by way of f32, so that LLVM need not call its runtime library. f64
    becomes f32 by rounding to odd, which leaves to the step from f32 to f16 what it needs to round like one step.

    With `expand`, for targets without instructions that convert between f16 and f32, these conversions become
    integer operations on the bits, of scalars and of vectors, lane by lane: exact for subnormal numbers, infinities
    and NaN, which become quiet and keep their payload; to nearest even.

    Requires: `arith-emulate-unsupported-floats`, after which nothing is computed in f16.
  }];
  let options = [Option<"expand", "expand", "bool", /*default=*/"false",
                        "the target has no instructions for f16">];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

#endif // KERATIN_PASSES_TD
