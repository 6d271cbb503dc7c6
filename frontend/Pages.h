//===- Pages.h - bytes that stay in their file ------------------*- C++ -*-===//
#ifndef KERATIN_FRONTEND_PAGES_H
#define KERATIN_FRONTEND_PAGES_H

#include <cstddef>
#include <memory>
#include <string>

namespace keratin {

/// Bytes of a file in the address space of the process, read-only: the system
/// reads what is looked at.
struct FilePages {
  std::shared_ptr<const std::byte[]> data; ///< null when they are not mapped
  size_t size = 0;
};

/// Bytes on their way to a temporary file that nobody else sees, and that is
/// gone when its bytes are.
class TemporaryPages {
public:
  /// Opens the file; `isOpen` tells whether there is a place for it.
  TemporaryPages();
  ~TemporaryPages();
  TemporaryPages(const TemporaryPages &) = delete;
  TemporaryPages &operator=(const TemporaryPages &) = delete;

  bool isOpen() const { return file >= 0; }
  /// False when there is no room for them.
  bool append(const void *data, size_t bytes);
  /// All that was appended; nothing when the system refuses.
  FilePages map() const;

private:
  int file = -1;
  size_t size = 0;
};

/// Lets go of the memory of whole pages of bytes in a mapped file, which are
/// read again when somebody looks at them. Other bytes stay what and where they
/// are. Any thread may call it.
void releasePages(const void *data, size_t size);

} // namespace keratin

#endif // KERATIN_FRONTEND_PAGES_H
