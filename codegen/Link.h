//===- Link.h - objects become libraries and programs -----------*- C++ -*-===//
#ifndef KERATIN_CODEGEN_LINK_H
#define KERATIN_CODEGEN_LINK_H

#include "codegen/Target.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

namespace keratin {

/// Writes a file through a temporary one: it is complete or as it was before.
llvm::Error writeFile(llvm::StringRef path, llvm::ArrayRef<char> bytes);

/// Files that appear together or not at all: each is made beside its place.
class OutputFiles {
public:
  OutputFiles() = default;
  OutputFiles(const OutputFiles &) = delete;
  OutputFiles &operator=(const OutputFiles &) = delete;
  /// Removes what has not taken its place.
  ~OutputFiles();

  /// Lets `write` make, at the path that it is given, the file for `path`.
  llvm::Error add(llvm::StringRef path,
                  llvm::function_ref<llvm::Error(llvm::StringRef)> write);
  llvm::Error add(llvm::StringRef path, llvm::ArrayRef<char> bytes);
  /// All files take their places.
  llvm::Error commit();

private:
  struct File {
    std::string path, temporary;
  };
  llvm::SmallVector<File> files;
};

/// A static library of the object in a file, called `member` in it.
llvm::Error writeLibrary(llvm::StringRef path, llvm::StringRef member,
                         llvm::StringRef object);

/// A shared library of the object in a file, linked by the C compiler for the
/// target or by lld. Programs that need it will look for `soname`.
llvm::Error linkShared(llvm::StringRef path, llvm::StringRef soname,
                       llvm::StringRef object, const Target &target);

/// A program that runs the model `name` (runtime/Main.c) in an object file on
/// a pool of threads, built by the C compiler for the target. `threads` is how
/// many it has when it is not told; 0 leaves that to the machine.
llvm::Error linkProgram(llvm::StringRef path, llvm::StringRef name, int threads,
                        llvm::StringRef object, const Target &target);

/// A file with `bytes` that is removed with this object.
class TemporaryFile {
public:
  static llvm::Expected<TemporaryFile> create(llvm::StringRef suffix,
                                              llvm::ArrayRef<char> bytes);
  TemporaryFile(TemporaryFile &&other) : path(std::move(other.path)) {
    other.path.clear();
  }
  ~TemporaryFile();

  llvm::StringRef name() const { return path; }

private:
  explicit TemporaryFile(std::string path) : path(std::move(path)) {}
  std::string path;
};

} // namespace keratin

#endif // KERATIN_CODEGEN_LINK_H
