//===- Pipelines.h - the named stages of a compilation ----------*- C++ -*-===//
#ifndef KERATIN_PASSES_PIPELINES_H
#define KERATIN_PASSES_PIPELINES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <functional>
#include <optional>

namespace keratin {

/// What is true of the module after each stage is told in docs/ARCHITECTURE.md.
enum class Stage { Graph, Core, Layout, Linalg, Kernels, Loops, Llvm };

/// "graph", "core" …, as on the command line.
llvm::StringRef stageName(Stage stage);
std::optional<Stage> parseStage(llvm::StringRef name);

/// Runs the argument-free function `@evaluate` of a module at the `graph` stage
/// on the host and returns the values of its results. Injected by codegen: what
/// constants are worth is decided by the compiler itself, not by a second
/// implementation of every op.
using ConstantEvaluator =
    std::function<llvm::FailureOr<llvm::SmallVector<mlir::ElementsAttr>>(
        mlir::ModuleOp)>;

/// The attribute of an op of the graph whose value is worth storing, if it is
/// known, however large it is: a table of products.
inline constexpr llvm::StringLiteral storedAttr = "ktn.stored";

/// How convolutions are computed whose windows have two taps or more for each
/// pixel that they move by, along one axis or two.
enum class Winograd {
  Off,  ///< as sums over the window
  Auto, ///< each in the way that is expected to take least time
  F2,   ///< wherever that applies in tiles of four inputs, as F(2x2, 3x3),
  F4,   ///< of six, as F(4x4, 3x3),
  F8    ///< or of eight, as F(4x4, 5x5)
};
/// "off", "auto", "2", "4" and "8", as on the command line.
std::optional<Winograd> parseWinograd(llvm::StringRef name);

/// What the factors of products are rounded to; sums are f32 all the same.
enum class Precision {
  F32,
  BF16, ///< all factors
  F16   ///< weights
};
/// "f32", "bf16" and "f16", as on the command line.
std::optional<Precision> parsePrecision(llvm::StringRef name);

/// Which weights become integers of 24 bits with a scale for each column, of
/// those that one row of a product meets.
enum class Weights24 {
  None,
  Far, ///< those that each call gets from behind the second cache
  All
};

/// What a target has to sum products of bf16 in f32.
enum class DotUnit {
  None,    ///< numbers are widened first
  Vectors, ///< pairs in the lanes of vectors (AVX512_BF16)
  Tiles    ///< tile registers (AMX)
};

/// Whether kernels of this kind (`ktn.kernel`) are code with tile registers,
/// for which the system has to be asked.
inline bool isInTileRegisters(llvm::StringRef kind) {
  return kind.starts_with("tiles");
}

struct PipelineOptions {
  /// False is -O0: every stage, but no fusion, no tiles, no own mathematics.
  bool optimize = true;
  /// Bits of the target's vector registers: 128, 256 or 512.
  unsigned vectorBits = 256;
  /// Number of the target's vector registers: 16 or 32.
  unsigned vectorRegisters = 16;
  /// Its second cache; 0 where that is not known.
  unsigned secondCacheKiB = 0;
  /// Whether kernels with enough work are split among threads.
  bool parallel = false;
  /// Whether one instruction multiplies and adds, and one rounds to an integer.
  bool fma = true, rounding = true;
  /// Whether the target has AVX-512.
  bool avx512 = false;
  /// Whether it divides a vector in less time than four products take.
  bool divides = false;
  /// Whether it has AVX2's choice of one of eight f32 for each lane, as soon as
  /// a product.
  bool permutes = false;
  /// Whether it fetches runs of memory ahead soon enough without being asked.
  bool fetchesAhead = false;
  /// Whether weights that one row of a product meets come as one run of memory
  /// sooner than as several side by side.
  bool oneRun = false;
  /// Whether rows that the second cache has come sooner where the tile in front
  /// of theirs asks for them.
  bool asksNextRows = false;
  /// Whether half a vector takes half the time of a vector there.
  bool halfUnits = false;
  Weights24 weights24 = Weights24::None;
  /// Whether products ask for weights that one row meets behind them.
  bool asksForLater = true;
  /// Whether products with known weights may be made of fewer multiplications,
  /// where that is faster.
  bool strassen = false;
  /// Whether two products with known weights may be made by one multiplication
  /// and two sums.
  bool pairs = false;
  /// Whether products of rows of a known table become rows of a table of
  /// products.
  bool foldLookups = false;
  /// How many stores in a row do not hold up products behind them; 0 for any.
  unsigned storesAtOnce = 0;
  /// Whether instructions convert between f16 and f32.
  bool halves = true;
  /// Whether emitters prefer little code, which is compiled sooner, to the code
  /// that runs fastest. Values are the same, but Winograd::Auto is Off.
  bool littleCode = false;
  Winograd winograd = Winograd::Auto;
  Precision precision = Precision::F32;
  DotUnit dots = DotUnit::None;
  /// Steps of a loop in a row; 1 leaves loops rolled, 0 chooses.
  int64_t unrollFactor = 1;
  /// The gradient of a loop keeps one state in so many steps; 0 keeps all.
  int64_t checkpointEvery = 0;
  /// Null leaves constant expressions to run time.
  ConstantEvaluator evaluateConstants;
  /// Appends the passes that turn kernels on tensors into loops on memrefs:
  /// the place where targets part ways. Supplied by codegen.
  std::function<void(mlir::OpPassManager &, const PipelineOptions &)>
      emitKernels;
};

/// Appends the passes that lead from `from` (exclusive) to `to` (inclusive).
void buildPipeline(mlir::OpPassManager &pm, Stage from, Stage to,
                   const PipelineOptions &options);

/// Gives the arguments of `function`, at the `graph` stage, other types that
/// its own allow, and infers all others anew. On failure, which is a
/// diagnostic, the function is of no more use.
llvm::LogicalResult
specializeShapes(mlir::func::FuncOp function,
                 llvm::ArrayRef<mlir::RankedTensorType> argumentTypes);

/// Lets contexts keep the patterns of `ktn-canonicalize`, which otherwise each
/// such pass collects anew.
void registerPatternStore(mlir::DialectRegistry &registry);
/// Likewise those of `ktn-convert-to-llvm`.
void registerLlvmPatterns(mlir::DialectRegistry &registry);

/// Makes every pass and stage known to keratin-opt, the stages as
/// `--keratin-STAGE`, each of which starts from a module of the stage before.
/// `options` are the defaults; `{optimize= vector-bits= vector-registers=}` on
/// the command line replace them.
void registerPassesAndStages(const PipelineOptions &options);

} // namespace keratin

#endif // KERATIN_PASSES_PIPELINES_H
