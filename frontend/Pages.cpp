//===- Pages.cpp - bytes that stay in their file --------------------------===//
#include "Pages.h"

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <map>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>

namespace keratin {

namespace {
/// What is mapped: the beginning and the end of each file. Dropping pages of
/// anything else would lose what they hold.
struct Mappings {
  std::mutex mutex;
  std::map<uintptr_t, uintptr_t> ends;
};
} // namespace

static Mappings &mappings() {
  static Mappings only;
  return only;
}

TemporaryPages::TemporaryPages() {
  std::error_code code;
  std::string path = std::filesystem::temp_directory_path(code).string();
  if (code)
    return;
  path += "/keratin-XXXXXX";
  file = mkostemp(path.data(), O_CLOEXEC);
  if (file >= 0)
    unlink(path.c_str());
}

TemporaryPages::~TemporaryPages() {
  if (file >= 0)
    close(file);
}

bool TemporaryPages::append(const void *data, size_t bytes) {
  const auto *next = static_cast<const std::byte *>(data);
  for (size_t left = bytes; left > 0;) {
    ssize_t wrote = write(file, next, left);
    if (wrote < 0 && errno == EINTR)
      continue;
    if (wrote <= 0)
      return false;
    next += wrote;
    left -= static_cast<size_t>(wrote);
  }
  size += bytes;
  return true;
}

FilePages TemporaryPages::map() const {
  if (size == 0)
    return {};
  void *data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  if (data == MAP_FAILED)
    return {};
  auto begin = reinterpret_cast<uintptr_t>(data);
  {
    std::lock_guard<std::mutex> lock(mappings().mutex);
    mappings().ends[begin] = begin + size;
  }
  auto unmap = [begin, bytes = size](const std::byte *mapped) {
    std::lock_guard<std::mutex> lock(mappings().mutex);
    mappings().ends.erase(begin);
    munmap(const_cast<std::byte *>(mapped), bytes);
  };
  return {std::shared_ptr<const std::byte[]>(
              static_cast<const std::byte *>(data), unmap),
          size};
}

void releasePages(const void *data, size_t size) {
  auto begin = reinterpret_cast<uintptr_t>(data);
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  std::lock_guard<std::mutex> lock(mappings().mutex);
  auto after = mappings().ends.upper_bound(begin);
  if (after == mappings().ends.begin())
    return;
  auto [mapped, end] = *std::prev(after);
  if (begin + size > end)
    return;
  uintptr_t first = (begin + page - 1) / page * page,
            last = (begin + size) / page * page;
  // Pages are private and were never written, so they come back from the file.
  if (first < last)
    madvise(reinterpret_cast<void *>(first), last - first, MADV_DONTNEED);
}

} // namespace keratin
