//===- JoinObjects.h - several objects become one ---------------*- C++ -*-===//
#ifndef KERATIN_CODEGEN_JOINOBJECTS_H
#define KERATIN_CODEGEN_JOINOBJECTS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBufferRef.h"
#include "llvm/Support/raw_ostream.h"

#include <functional>
#include <string>

namespace keratin {

/// Read-only bytes that become a section of their own, with a symbol of its
/// size at its start that other parts refer to.
struct DataSection {
  std::string symbol;
  llvm::ArrayRef<char> bytes;
  uint64_t alignment = 1;
  /// More than the code may reach: behind the rest of the program, where the
  /// machine knows of such a place.
  bool isLarge = false;
};

/// An object, and what its symbols are called in the whole: where nothing says,
/// what they are called.
struct ObjectPart {
  using Rename = std::function<std::string(llvm::StringRef)>;
  ObjectPart(llvm::MemoryBufferRef object, Rename rename = nullptr)
      : object(object), rename(std::move(rename)) {}

  llvm::MemoryBufferRef object;
  Rename rename;
};

/// Writes one relocatable ELF object with all that `objects` define, like
/// `ld -r`: sections of the same name and kind are joined in the order of the
/// objects. A hidden symbol that is defined in one and used in others becomes
/// local. The file that the first one names is the only one that is named. The
/// bytes of `data` go to the stream as they are, without a copy in memory. The
/// output depends on nothing but the arguments. Objects are those that LLVM
/// emits for one 64-bit little-endian target; errors name what is different.
llvm::Error joinObjects(llvm::ArrayRef<ObjectPart> objects,
                        llvm::ArrayRef<DataSection> data,
                        llvm::raw_ostream &stream);

} // namespace keratin

#endif // KERATIN_CODEGEN_JOINOBJECTS_H
