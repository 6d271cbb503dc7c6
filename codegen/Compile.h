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

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace keratin {

/// What is written: a stage's IR, or a product.
enum class Emit { Graph, Core, Layout, Linalg, Kernels, Loops, Llvm, Asm, Obj, Lib, So, Exe };
/// The names of the command line: "graph" … "exe".
std::vector<std::string> emitNames();
std::optional<Emit> parseEmit(llvm::StringRef name);

enum class WeightsPlacement { Embed, External };

/// One compilation. Everything but `name` has a useful default.
struct CompileOptions {
  std::string name;             ///< a C identifier: prefix of the exported symbols
  std::string target = "native";///< native, x86-64-v3, aarch64-linux-gnu, or triple,cpu,features
  bool optimize = true;         ///< false: -O0, the reference
  WeightsPlacement weights = WeightsPlacement::Embed;
  bool profile = false;         ///< call the profile hook around each kernel
  std::string dumpAfter;        ///< a pass name or "all"; empty: none
  std::string dumpDirectory;
  bool timePasses = false;
  /// Progress: (what is being done, done, total); null: silent.
  std::function<void(llvm::StringRef, unsigned, unsigned)> progress;
};

/// One row of `--print-kernels`.
struct KernelRow {
  std::string name, op, shapes;
  int64_t flops[2], bytes[2]; ///< fixed + per batch
  int64_t arenaOffset[2];     ///< of its first result; -1 when it writes an output
};

/// A compiled function, in memory.
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
  /// Writes PREFIX.o (.a, .so, executable), PREFIX.h and, with external
  /// weights, PREFIX.weights. Each is complete or absent. Problems are diagnostics.
  virtual llvm::LogicalResult write(Emit emit, llvm::StringRef prefix) = 0;
};

/// Compiles the one public function of `module` (stage `graph`). Problems are
/// diagnostics of the module's context; null then. Consumes the module.
std::unique_ptr<CompiledModel> compile(mlir::OwningOpRef<mlir::ModuleOp> module,
                                       const CompileOptions &options);

/// Runs the pipeline up to `stage` in place.
llvm::LogicalResult runPipeline(mlir::ModuleOp module, Stage from, Stage to,
                                const CompileOptions &options);

/// Registers what parsing and compiling need with `registry`.
void registerDialects(mlir::DialectRegistry &registry);

} // namespace keratin

#endif // KERATIN_CODEGEN_COMPILE_H
