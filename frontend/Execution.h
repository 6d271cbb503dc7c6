//===- Execution.h - running of compiled code -------------------*- C++ -*-===//
#ifndef KERATIN_FRONTEND_EXECUTION_H
#define KERATIN_FRONTEND_EXECUTION_H

#include "Extraction.h"
#include "codegen/Compile.h"

#include <mutex>

namespace keratin::backend {

/// Scratch memory aligned as the ABI wants it.
class Arena {
public:
  /// Throws Error when there is not so much memory.
  explicit Arena(int64_t bytes);
  ~Arena();
  Arena(const Arena &) = delete;
  Arena &operator=(const Arena &) = delete;
  void *data() const { return memory; }

private:
  void *memory;
  int64_t bytes;
};

/// Who is to run code.
enum class Caller {
  Us,      ///< CompileOptions::quick: soon there, it checks nothing
  UsOften, ///< it checks nothing
  Anybody, ///< through its descriptor
};

/// Code for one signature, and what it was made of.
struct Compiled {
  std::vector<Shape> shapes; ///< of the inputs, without the state
  bool training = false;
  Caller caller = Caller::Us;
  uint64_t calls = 0; ///< counted while `loaded` is quick
  Choices choices;
  /// Shared with functions of the same structure: the names in it are theirs.
  std::shared_ptr<const LoadedCode> loaded;
  const ktn_model_info_t *info = nullptr;
  std::vector<VariablePtr> state, updated;
  /// For each of `updated` its number in `state` where the new value may be
  /// written over the old one, else -1.
  std::vector<int64_t> overwrites;
  std::vector<std::pair<VariablePtr, uint64_t>> folded; ///< with its version
  std::mutex running;
  std::unique_ptr<Arena> arena; ///< of the call that holds `running`
};

/// The outputs for the elements of the inputs and then of the state. Those of
/// `places`, one for each of the last outputs, are written there where they are
/// not null, and are empty in the result. Throws Error when the code refuses,
/// before it writes. Any thread may call this.
std::vector<Array> run(Compiled &code, llvm::ArrayRef<const void *> arguments,
                       llvm::ArrayRef<void *> places);

} // namespace keratin::backend

#endif // KERATIN_FRONTEND_EXECUTION_H
