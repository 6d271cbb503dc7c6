//===- function.h - compiled functions of a graph ---------------*- C++ -*-===//
#ifndef KERATIN_FUNCTION_H
#define KERATIN_FUNCTION_H

#include "keratin/tensor.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct ktn_model_info_t;

namespace keratin::backend {

/// Names that a function, its inputs and its outputs have in dumps, profiles
/// and artefacts. Missing ones are made: placeholders have names, outputs are
/// called after their position.
struct FunctionNames {
  std::string function = "function";
  std::vector<std::string> inputs = {};
  std::vector<std::string> outputs = {};
};

/// What a function computes besides its outputs and updates.
struct FunctionOptions {
  /// Numbers of the outputs that are computed from the values that variables
  /// have after the updates of the call, as Keras wants its metrics. Others are
  /// computed from the values before.
  std::vector<size_t> afterUpdates = {};
  /// Whether a variable that the function does not update is a constant of its
  /// code, until it changes between two calls. False: each is an argument, so
  /// that no change of a variable compiles anything. `save` folds always.
  bool foldVariables = true;
};

/// Memory for the values between kernels: bytes[0] + batch * bytes[1], of which
/// `least`, likewise, are in use at the same time.
struct ArenaInfo {
  int64_t bytes[2], least[2];
};

/// How a function is compiled. What is not said here is what the
/// configuration says, or else the default of the command line `keratinc`.
struct CompileSettings {
  /// native, x86-64-v3, x86-64-v4, aarch64-linux-gnu, or triple,cpu,features;
  /// empty: compile_target of keratin/config.h.
  std::string target = {};
  bool optimize = true; ///< false is -O0, the reference
  /// Threads that the code is for: 1, or any number for 0 and more (num_threads
  /// of keratin/config.h; in a program that is written, this number).
  int threads = 0;
  /// Convolutions whose windows have two taps or more for each pixel that they
  /// move by as products of transformed tiles, which takes fewer
  /// multiplications and rounds differently: "off", or wherever that applies in
  /// tiles of four inputs along one or two axes ("2", F(2x2, 3x3) for
  /// instance), of six ("4", F(4x4, 3x3)) or of eight ("8", F(4x4, 5x5)), or
  /// "auto".
  std::string winograd = "auto";
  /// Products in tile registers (AMX), on targets that have them: "auto" also
  /// takes those of f32, as exactly, as sums of products of bf16; "off" takes
  /// none.
  std::string tiles = "auto";
  /// Weights that one row is multiplied by, as in dense and recurrent layers
  /// for one sample: "auto" stores them as integers of 24 bits with a scale for
  /// each column where the target is faster so, off by at most 2^-23 of the
  /// largest weight of the column; "off" as f32.
  std::string weights24 = "auto";
  /// How products of many rows with known weights are made: "auto" of seven
  /// products of half the rows, columns and sums in place of eight (Strassen,
  /// 1969) where that is faster, at one and a half times the rounding error;
  /// "off" as sums of products.
  std::string strassen = "auto";
  /// How products of f32 are made: "auto" in pairs, of which one
  /// multiplication and two sums take the place of two multiplications
  /// (Winograd, 1968), where the target has units for sums beside those for
  /// products, at up to twice the rounding error; "off" as sums of products.
  std::string pairs = "auto";
  /// What multiplies the rows of an embedding by known weights, as the layer
  /// behind it does: "auto" looks up rows of a table of these products, which
  /// is larger than the embedding by as much as the layer is wider, and has 64
  /// MiB at most; "off" multiplies what was looked up.
  std::string foldLookups = "auto";
  /// What the factors of matrix products, convolutions and recurrent steps are
  /// rounded to: "f32"; "bf16" for about half the memory of weights and more
  /// speed at some 3 significant digits; or "f16" for weights of half the size
  /// at some 4 digits, with all other factors f32. Sums are f32 all the same.
  /// Empty: compute_precision of keratin/config.h.
  std::string precision = {};
  /// Steps of a loop in a row: 1 leaves loops rolled, k makes the code k times
  /// as large, 0 unrolls those that stay small.
  int64_t unrollFactor = 1;
  /// The gradient of a loop that does not say so itself (checkpoint_every of
  /// rnn) keeps one state in so many steps and computes the others again; 0
  /// keeps all.
  int64_t checkpointEvery = 0;
  bool profile = false;      ///< call the profile hook around each kernel
  std::string dumpAfter;     ///< a pass name or "all"; empty: no dumps
  std::string dumpDirectory; ///< where they go
  bool timePasses = false;   ///< print the time of each pass
  /// Progress: (what is being done, done, total).
  std::function<void(std::string_view, unsigned, unsigned)> progress;
  /// Told of the arena of code that is compiled, and not of code that is found
  /// in a cache.
  std::function<void(const ArenaInfo &)> arena;
};

/// How a function is written to files.
struct SaveOptions : CompileSettings {
  /// A C identifier, prefix of the exported symbols; empty: from the file name.
  std::string name = {};
  /// `None` for any batch, or the extent of every leading `None`.
  int64_t batch = None;
  /// Shapes of the inputs where more is known than in the graph; empty: none
  /// is.
  std::vector<Shape> inputShapes = {};
  /// The value of a learning phase that is among the inputs: an artefact has
  /// none of it.
  bool training = false;
  /// obj, lib, so or exe; or a stage, such as llvm, for its text in
  /// PREFIX.mlir.
  std::string emit = "obj";
  /// "embed", or "external" for a file PREFIX.weights.
  std::string weights = "embed";
};

/// One kernel of a compiled function.
struct KernelInfo {
  std::string name;       ///< the layer it computes
  std::string op;         ///< matmul, conv, elementwise …
  std::string shapes;     ///< for people
  int64_t flops[2];       ///< flops[0] + batch * flops[1]
  int64_t bytes[2];       ///< read once + written once, likewise
  int64_t arenaOffset[2]; ///< of its result; -1 when it writes an output
};

/// An input or output of a function.
struct TensorInfo {
  std::string name;
  DType dtype;
  Shape shape;
};

struct SavedFunction;

/// Computes tensors of a graph from values of others. Compiled in process at
/// the first call for the shapes of the call, and kept. A handle: copies are
/// the same function. Calls from several threads are safe; those that update
/// variables wait for each other.
class Function {
public:
  Function() = default;
  explicit operator bool() const { return impl != nullptr; }

  /// The values of the outputs. Throws Error, and updates nothing, when an
  /// input has not the dtype or not the known extents of its tensor; float and
  /// integer inputs of another width are converted. A learning phase among the
  /// inputs takes any scalar: 0 or false is the test phase.
  std::vector<Array> operator()(const std::vector<Array> &inputs) const;

  const std::vector<TensorInfo> &inputs() const;
  const std::vector<TensorInfo> &outputs() const;

  /// How later calls are compiled; forgets what was compiled before. Throws
  /// Error, and changes nothing, for a setting that is not among those allowed.
  void configure(const CompileSettings &settings);

  /// Writes PREFIX.o (.a, .so, or the executable PREFIX), PREFIX.h and, with
  /// external weights, PREFIX.weights. Variables are saved with their present
  /// values, with which those that the function updates begin in each instance
  /// of the model: it is NAME_step then, else NAME_predict. Returns the
  /// kernels; none for a stage, where such a variable is an input and an output
  /// more.
  std::vector<KernelInfo> save(const std::string &prefix,
                               const SaveOptions &options = {}) const;

  /// The IR after a stage: "graph", "core" … "llvm", "asm". Weights are elided.
  std::string lower(std::string_view stage,
                    const SaveOptions &options = {}) const;

  /// The kernels that these options give.
  std::vector<KernelInfo> kernels(const SaveOptions &options = {}) const;

  /// The code in this process for inputs of these shapes: what operator() runs.
  /// Valid until the function is configured anew or gone.
  const ktn_model_info_t *compiled(const std::vector<Shape> &inputShapes) const;
  /// Calls `hook(user, kernel, isEnd)` around each kernel of the code that
  /// `compiled` gives, when it was compiled with `profile`.
  void setProfileHook(const std::vector<Shape> &inputShapes,
                      void (*hook)(void *, int32_t, int32_t), void *user) const;

  struct Impl;
  explicit Function(std::shared_ptr<Impl> impl) : impl(std::move(impl)) {}

private:
  friend std::vector<KernelInfo>
  save(const std::string &prefix, const std::vector<SavedFunction> &functions,
       const SaveOptions &options);
  std::shared_ptr<Impl> impl;
};

/// A function under the name that it has in an artefact of several.
struct SavedFunction {
  std::string name; ///< a C identifier: the symbol is NAME_<this>
  Function function;
  bool training = false; ///< in place of SaveOptions::training
};

/// Writes one artefact with several functions, such as `predict` and `step`.
/// The variables that any of them updates are its state: they live in the
/// memory of each instance of the model, begin with their present values, and
/// can be exported and imported as bytes (docs/LINKING.md). Others are saved
/// with their present values. All functions are of one graph; `inputShapes` is
/// for one function only. Returns the kernels of all.
std::vector<KernelInfo> save(const std::string &prefix,
                             const std::vector<SavedFunction> &functions,
                             const SaveOptions &options = {});

} // namespace keratin::backend

#endif // KERATIN_FUNCTION_H
