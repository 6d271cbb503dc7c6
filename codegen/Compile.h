//===- Compile.h - the only door of codegen ---------------------*- C++ -*-===//
//
// The frontend says what to compile; behind this header is how.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_CODEGEN_COMPILE_H
#define KERATIN_CODEGEN_COMPILE_H

#include "keratin/abi.h"
#include "passes/Pipelines.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace keratin {

/// What is written: a stage's IR, or a product.
enum class Emit {
  Graph,
  Core,
  Layout,
  Linalg,
  Kernels,
  Loops,
  Llvm,
  Asm,
  Obj,
  Lib,
  So,
  Exe
};
/// The names of the command line: "graph" … "exe".
std::vector<std::string> emitNames();
std::optional<Emit> parseEmit(llvm::StringRef name);
/// The stage whose IR is written; none for Llvm (that is LLVM IR) and products.
std::optional<Stage> stageOf(Emit emit);

enum class WeightsPlacement { Embed, External };

/// Memory for the values between kernels: fixed + per batch bytes, of which
/// `least` are in use at the same time, so that no arena could be smaller.
struct ArenaUse {
  int64_t bytes[2] = {0, 0}, least[2] = {0, 0};
};

/// A hash that no two different compilations share in practice (BLAKE3).
using CacheKey = std::array<uint8_t, 32>;

/// Keeps machine code by what it follows from, for later compilations of this
/// process or others. Any thread may call it; none of it fails: what cannot be
/// kept is not there.
class CodeStore {
public:
  virtual ~CodeStore() = default;
  /// Null where there is none.
  virtual std::unique_ptr<llvm::MemoryBuffer> load(const CacheKey &key) = 0;
  virtual void store(const CacheKey &key, llvm::StringRef object) = 0;
};

/// One compilation. Everything but `name` has a useful default.
struct CompileOptions {
  std::string name;              ///< a C identifier: prefix of the symbols
  std::string target = "native"; ///< or x86-64-v3, aarch64-linux-gnu, …
  bool optimize = true;          ///< false: -O0, the reference
  /// Of a function whose call takes less than some 100 microseconds, make code
  /// that is compiled in little time rather than the best there is, which a
  /// thousand calls would not make up for. It computes the same, but that
  /// Winograd::Auto is Off.
  bool quick = false;
  /// Who calls `run` is ours: it does not check what it is given.
  bool trusted = false;
  WeightsPlacement weights = WeightsPlacement::Embed;
  Winograd winograd = Winograd::Auto; ///< at -O0 there is none
  bool tiles = true; ///< use tile registers where the target has them
  /// Let weights that one row meets be integers of 24 bits where that is
  /// faster; at -O0 none are.
  bool weights24 = true;
  /// Let products with known weights be made of fewer multiplications where
  /// that is faster; at -O0 none are.
  bool strassen = true;
  /// Let two products of f32 be made by one multiplication where
  /// the target has units for sums beside those for products; at -O0 none are.
  bool pairs = true;
  /// Let products of rows of a known table, as an embedding, become rows of a
  /// table of products, of 64 MiB at most; at -O0 none do.
  bool foldLookups = true;
  /// What factors of products are rounded to; at -O0 as well.
  Precision precision = Precision::F32;
  /// Threads that the code is for: 1, or any number for 0 and more; the default
  /// of a program that is written for 2 and more.
  int threads = 0;
  /// Steps of a loop in a row; 1 leaves loops rolled, 0 chooses.
  int64_t unrollFactor = 1;
  /// The gradient of a loop keeps one state in so many steps, where the loop
  /// does not say; 0 keeps all.
  int64_t checkpointEvery = 0;
  bool profile = false;  ///< call the profile hook around each kernel
  std::string dumpAfter; ///< a pass name or "all"; empty: none
  std::string dumpDirectory;
  bool timePasses = false; ///< a table of the time of each pass on stderr
  /// Extents of the function's arguments where they are to be more static than
  /// in the module, -1 is `?`; empty: as they are. Applied first of all. Those
  /// of several functions one after the other.
  std::vector<std::vector<int64_t>> inputShapes;
  /// Told of elements of constants that are not read again for a while, and may
  /// leave memory where they can come back; null: nobody is.
  std::function<void(llvm::ArrayRef<char>)> release;
  /// Where the code of groups of kernels is looked for before it is made, and
  /// kept; null: each compilation makes all of it.
  std::shared_ptr<CodeStore> store;
  /// Progress: (what is being done, done, total); null: silent.
  std::function<void(llvm::StringRef, unsigned, unsigned)> progress;
  /// Told of the arena of what was compiled; null: nobody is.
  std::function<void(const ArenaUse &)> arena;
};

/// One row of `--print-kernels`.
struct KernelRow {
  std::string name, op, shapes;
  int64_t flops[2], bytes[2]; ///< fixed + per batch
  int64_t arenaOffset[2];     ///< of its first result; -1: writes an output
};

/// A compiled function, in memory. The MLIR context of its module must outlive
/// it: problems are its diagnostics.
class CompiledModel {
public:
  virtual ~CompiledModel() = default;
  virtual llvm::ArrayRef<KernelRow> kernels() const = 0;
  /// Descriptor of the code loaded into this process (JITLink of the same
  /// object code); loads at the first call. The model must outlive its use.
  /// Null, with a diagnostic, when the target cannot run here.
  virtual const ktn_model_info_t *load() = 0;
  /// With CompileOptions::profile: called around each kernel of load()'s code.
  virtual void setProfileHook(ktn_profile_fn_t hook, void *user) = 0;
  /// Text of Emit::Llvm (LLVM IR as it goes to the code generator) or
  /// Emit::Asm.
  virtual llvm::FailureOr<std::string> text(Emit emit) = 0;
  /// Writes PREFIX.ll, .s, .o, .a, .so or the program PREFIX; with a product
  /// PREFIX.h and, with external weights, PREFIX.weights. Each is complete or
  /// as it was. With the prefix "-" text goes to stdout.
  virtual llvm::LogicalResult write(Emit emit, llvm::StringRef prefix) = 0;
};

/// Machine code of one function with its weights, as bytes: all that a process
/// on a machine of this kind needs to run it.
struct CodeImage {
  std::unique_ptr<llvm::MemoryBuffer> object;
  std::unique_ptr<llvm::MemoryBuffer> weights; ///< aligned to KTN_ALIGNMENT
  bool isQuick = false; ///< little code, as CompileOptions::quick allows
};

/// A buffer of ktn_pages_take, of any content, for weights of such code: what
/// each run reads from end to end lies in as few pages as can be. Null when
/// there is no memory.
std::unique_ptr<llvm::WritableMemoryBuffer>
takePageBuffer(int64_t bytes, llvm::StringRef name);

/// Code in this process, as long as this lives.
class LoadedCode {
public:
  virtual ~LoadedCode() = default;
  virtual const ktn_model_info_t &info() const = 0;
  /// As CodeImage::isQuick: other code would take less time a call.
  virtual bool isQuick() const = 0;
};

/// Compiles the one public function of `module`, which is at the stage
/// `stageOf(module)`, as NAME_predict. Where functions assign variables of the
/// module (`ktn.variable`) each public function becomes NAME_<its name>, and
/// the variables are the state of an instance of the model. Problems are
/// diagnostics of the module's context; null then. Consumes the module.
std::unique_ptr<CompiledModel> compile(mlir::OwningOpRef<mlir::ModuleOp> module,
                                       const CompileOptions &options);

/// The same as bytes, for loadImage here or in another process.
llvm::FailureOr<CodeImage>
compileImage(mlir::OwningOpRef<mlir::ModuleOp> module,
             const CompileOptions &options);

/// Loads an image that was compiled with the name `name`.
llvm::Expected<std::unique_ptr<LoadedCode>> loadImage(CodeImage image,
                                                      llvm::StringRef name);

/// What decides on the code of a module besides the module and the compiler:
/// the machine and the options. A diagnostic at `loc` for an unknown target.
llvm::FailureOr<std::string>
compilationFingerprint(mlir::Location loc, const CompileOptions &options);

/// What is wrong with CompileOptions::target, in a sentence that lists what is
/// allowed.
llvm::Error checkTarget(llvm::StringRef name);

/// The key of `module` compiled with what `fingerprint` tells. Structure,
/// types, attributes and the elements of constants count. Names do not:
/// locations, `ktn.name`, the symbols of public functions, the keys of
/// resources.
CacheKey cacheKey(mlir::ModuleOp module, llvm::StringRef fingerprint);

/// Tells this build of the compiler, and its LLVM, from every other; none when
/// the files were linked without build ids.
const std::optional<std::string> &compilerIdentity();

/// The stage that a module is at: its attribute `ktn.stage`, which runPipeline
/// sets, or graph.
Stage stageOf(mlir::ModuleOp module);

/// Runs the passes from the stage that the module is at to `to`, in place.
llvm::LogicalResult runPipeline(mlir::ModuleOp module, Stage to,
                                const CompileOptions &options);

/// The IR as text. With weights it can be parsed and compiled on; without, it
/// is for people.
std::string irText(mlir::ModuleOp module, bool withWeights);

/// Writes irText to PREFIX.mlir, or to stdout for the prefix "-".
llvm::LogicalResult writeIr(mlir::ModuleOp module, llvm::StringRef prefix,
                            bool withWeights);

/// What the passes are told for `options`, the evaluator of constants and the
/// emitter of kernels included. A diagnostic at `loc` for an unknown target.
llvm::FailureOr<PipelineOptions> pipelineOptions(mlir::Location loc,
                                                 const CompileOptions &options);

/// Registers what parsing and compiling need with `registry`.
void registerDialects(mlir::DialectRegistry &registry);

} // namespace keratin

#endif // KERATIN_CODEGEN_COMPILE_H
