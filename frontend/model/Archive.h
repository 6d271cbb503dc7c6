//===- Archive.h - the members of a .keras file -----------------*- C++ -*-===//
#ifndef KERATIN_FRONTEND_MODEL_ARCHIVE_H
#define KERATIN_FRONTEND_MODEL_ARCHIVE_H

#include "Bytes.h"

#include <memory>
#include <string>

namespace keratin::model {

/// What a member of an archive may cost. A file is untrusted: it states sizes
/// that need not be true and can hold a gigabyte of zeros in a megabyte.
struct ArchiveLimits {
  uint64_t members = 10'000;
  uint64_t textBytes = uint64_t(32) << 20;
  uint64_t weightBytes = uint64_t(64) << 30;
  /// Of a compressed member; Keras stores them uncompressed.
  uint64_t compressionRatio = 100;
};

/// A `.keras` file: a zip archive, or a directory with the same members.
/// Only members asked for by name are read and nothing is ever written.
class Archive {
public:
  virtual ~Archive() = default;
  virtual bool has(const std::string &member) const = 0;
  /// The bytes of a member. Throws Error when it is missing, larger than
  /// `limit`, encrypted, damaged, or implausibly compressed.
  virtual Bytes read(const std::string &member, uint64_t limit) const = 0;
};

/// Throws Error for a damaged archive and for member names that leave it. With
/// `spills` large members are in a temporary file, mapped.
std::unique_ptr<Archive> openZip(const std::string &path,
                                 const ArchiveLimits &limits = {},
                                 bool spills = false);
std::unique_ptr<Archive> openDirectory(const std::string &path);

} // namespace keratin::model

#endif // KERATIN_FRONTEND_MODEL_ARCHIVE_H
