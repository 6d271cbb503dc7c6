//===- Bytes.cpp - shared, read-only bytes of a file ----------------------===//
#include "Bytes.h"

#include "keratin/array.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

using namespace keratin;
using namespace keratin::model;

namespace {
struct CloseFile {
  void operator()(std::FILE *file) const { std::fclose(file); }
};
} // namespace

std::string model::describeSize(uint64_t bytes) {
  static constexpr const char *units[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes < 1024)
    return std::to_string(bytes) + " bytes";
  double value = double(bytes) / 1024;
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(units); ++unit)
    value /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %s", value, units[unit]);
  return text;
}

std::shared_ptr<std::byte[]> model::allocateBytes(size_t size,
                                                  const std::string &what) {
  std::byte *bytes = new (std::nothrow) std::byte[size ? size : 1];
  if (!bytes)
    throw Error("no memory for the " + describeSize(size) + " of " + what);
  return std::shared_ptr<std::byte[]>(bytes);
}

Bytes model::readFile(const std::string &path, size_t limit) {
  std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "rb"));
  if (!file)
    throw Error("cannot open '" + path + "': " + std::strerror(errno));
  bool isEnd = std::fseek(file.get(), 0, SEEK_END) == 0;
  long end = std::ftell(file.get());
  if (!isEnd || std::fseek(file.get(), 0, SEEK_SET) != 0)
    throw Error("cannot read '" + path + "': it is not a regular file");
  // ftell of a directory is LONG_MAX.
  if (end < 0 || size_t(end) > limit)
    throw Error("'" + path + "' has " + describeSize(uint64_t(end)) +
                ", more than the limit of " + describeSize(limit));
  std::shared_ptr<std::byte[]> bytes = allocateBytes(size_t(end), path);
  if (std::fread(bytes.get(), 1, size_t(end), file.get()) != size_t(end))
    throw Error("cannot read '" + path + "': " + std::strerror(errno));
  return {std::move(bytes), size_t(end)};
}
