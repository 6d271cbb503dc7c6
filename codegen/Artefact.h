//===- Artefact.h - entry points and descriptor of a model ------*- C++ -*-===//
#ifndef KERATIN_CODEGEN_ARTEFACT_H
#define KERATIN_CODEGEN_ARTEFACT_H

#include "codegen/Signature.h"

#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"
#include "llvm/TargetParser/Triple.h"

namespace keratin {

/// What the artefact says of itself, and how it finds its weights.
struct ArtefactOptions {
  std::string name;           ///< prefix of the exported symbols
  std::string target;         ///< for people
  std::string options;        ///< for people
  bool embedsWeights = false; ///< they are in the object: weightsSymbol
  bool profile = false;
  /// Only the descriptor and what it refers to, for use in this process.
  bool descriptorOnly = false;
  /// Whoever calls the descriptor's `run` is ours: what it is given is right.
  bool trusted = false;
  /// Export the descriptor as `keratin_model` too, for dlopen.
  bool exportModel = false;
  /// Code with tile registers asks the system for them.
  bool asksForTiles = true;
};

/// "keratin 0.1.0".
llvm::StringRef compilerVersion();

/// Why `name` cannot be the prefix of C symbols; success when it can.
llvm::Error checkModelName(llvm::StringRef name);

/// Adds `NAME_init`, for each function `NAME_<entry>`, `NAME_<entry>_run` and
/// `NAME_<entry>_info`, of the first `NAME_run` and `NAME_model_info` instead,
/// and for state `NAME_state_export` and `NAME_state_import`. They call
/// `<Signature::function>.main`, or `<function>.<variant>.main` of the variant
/// that fits the machine, in the module or in another one. docs/LINKING.md
/// describes them from outside.
void addArtefact(llvm::Module &module, const ModelSignature &model,
                 const ArtefactOptions &options);

/// Why `name` cannot be that of a function beside the others; success when it
/// can.
llvm::Error checkEntryName(llvm::StringRef name);

/// What embedded weights are called in the object of the model `name`.
std::string weightsSymbol(llvm::StringRef name);

/// Whether weights are so many that code of x86-64, which reaches 2 GiB around
/// an instruction, had better have them behind the rest of the program.
bool hasLargeWeights(int64_t weightsBytes);

/// Assembly that defines the embedded weights of the model `name`: the bytes of
/// the file `path`. Megabytes of weights never are LLVM constants. The symbol
/// is local to the object.
std::string embedFile(llvm::StringRef name, int64_t bytes, llvm::StringRef path,
                      const llvm::Triple &triple);

/// Name of the function that a model compiled for profiling calls around its
/// kernels, `void (i32 kernel, i32 isEnd)`; addArtefact defines it.
inline constexpr llvm::StringLiteral profileFunction = "ktn_profile";

} // namespace keratin

#endif // KERATIN_CODEGEN_ARTEFACT_H
