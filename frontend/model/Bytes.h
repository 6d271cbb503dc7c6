//===- Bytes.h - shared, read-only bytes of a file --------------*- C++ -*-===//
#ifndef KERATIN_FRONTEND_MODEL_BYTES_H
#define KERATIN_FRONTEND_MODEL_BYTES_H

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace keratin::model {

/// Bytes that live as long as anyone holds `data`; arrays point into them.
struct Bytes {
  std::shared_ptr<const std::byte[]> data;
  size_t size = 0;

  std::string_view text() const {
    return {reinterpret_cast<const char *>(data.get()), size};
  }
};

/// The whole file. Throws Error when it cannot be read or is larger than
/// `limit` bytes.
Bytes readFile(const std::string &path, size_t limit);

/// Uninitialised bytes to fill. Throws Error, naming `what`, when there is not
/// enough memory.
std::shared_ptr<std::byte[]> allocateBytes(size_t size,
                                           const std::string &what);

/// "12 bytes", "3.4 MiB", …
std::string describeSize(uint64_t bytes);

} // namespace keratin::model

#endif // KERATIN_FRONTEND_MODEL_BYTES_H
