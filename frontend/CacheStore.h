//===- CacheStore.h - compiled code in files --------------------*- C++ -*-===//
#ifndef KERATIN_FRONTEND_CACHESTORE_H
#define KERATIN_FRONTEND_CACHESTORE_H

#include "codegen/Compile.h"

#include <optional>
#include <string>

namespace keratin::backend {

/// A directory with one file for each compiled function, `<key>.ktn`. Any
/// number of processes may use it at the same time: a file appears complete,
/// and what is not as it was written counts as absent. Nothing here throws.
class CacheStore {
public:
  /// `limit` is about what the files may take in all, in bytes.
  CacheStore(std::string directory, uint64_t limit)
      : directory(std::move(directory)), limit(limit) {}

  /// None when there is no such entry, or a damaged one, which it removes.
  std::optional<CodeImage> load(const CacheKey &key) const;
  /// Does what it can: a full disk only leaves the entry out. The images that
  /// were used least lately make room.
  void store(const CacheKey &key, const CodeImage &image) const;
  /// Makes the directory unless it is there; if nothing can be kept in it, says
  /// why in a sentence for the user.
  std::optional<std::string> problem() const;

private:
  std::string pathOf(const CacheKey &key) const;
  std::error_code makeDirectory() const;
  /// Code of a directory that others can write to is not run.
  bool isPrivate() const;
  void evict() const;

  std::string directory;
  uint64_t limit;
};

} // namespace keratin::backend

#endif // KERATIN_FRONTEND_CACHESTORE_H
