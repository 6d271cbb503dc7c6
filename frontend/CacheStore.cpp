//===- CacheStore.cpp - compiled code in files ----------------------------===//
#include "CacheStore.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstring>

namespace fs = llvm::sys::fs;
using llvm::StringRef;

namespace keratin::backend {

namespace {

constexpr StringRef entrySuffix = ".ktn", temporarySuffix = ".tmp";

/// What a file begins with. Weights and then the object follow.
struct EntryHeader {
  char magic[8];
  uint64_t version;
  CacheKey key;
  uint64_t weightsBytes, objectBytes;
  /// Of the header with zeros in this place, and of what follows.
  std::array<uint8_t, 32> checksum;
  uint64_t isQuick; ///< as of CodeImage
  char padding[24];
};
static_assert(sizeof(EntryHeader) % KTN_ALIGNMENT == 0,
              "weights in the file are aligned like the file");

constexpr char entryMagic[8] = {'K', 'T', 'N', 'C', 'O', 'D', 'E', '\n'};
constexpr uint64_t entryVersion = 2;

std::array<uint8_t, 32> checksumOf(EntryHeader header, StringRef weights,
                                   StringRef object) {
  header.checksum = {};
  llvm::BLAKE3 hash;
  hash.update(
      StringRef(reinterpret_cast<const char *>(&header), sizeof header));
  hash.update(weights);
  hash.update(object);
  return hash.final();
}

/// A part of the bytes of a file, which it keeps.
class PartOfFile final : public llvm::MemoryBuffer {
public:
  PartOfFile(std::shared_ptr<llvm::MemoryBuffer> file, StringRef part)
      : file(std::move(file)) {
    init(part.begin(), part.end(), /*RequiresNullTerminator=*/false);
  }
  BufferKind getBufferKind() const override { return MemoryBuffer_Malloc; }

private:
  std::shared_ptr<llvm::MemoryBuffer> file;
};

/// The bytes of a file in memory of our own: a mapped file that shrinks ends
/// the process that reads it.
std::shared_ptr<llvm::MemoryBuffer> readFile(const std::string &path) {
  llvm::Expected<fs::file_t> file = fs::openNativeFileForRead(path);
  if (!file) {
    llvm::consumeError(file.takeError());
    return nullptr;
  }
  fs::file_status status;
  std::shared_ptr<llvm::WritableMemoryBuffer> buffer;
  if (!fs::status(*file, status) &&
      status.type() == fs::file_type::regular_file)
    buffer = takePageBuffer(static_cast<int64_t>(status.getSize()), path);
  size_t done = 0;
  while (buffer && done < buffer->getBufferSize()) {
    llvm::Expected<size_t> count =
        fs::readNativeFile(*file, buffer->getBuffer().drop_front(done));
    if (!count || *count == 0) {
      llvm::consumeError(count.takeError());
      buffer = nullptr;
    } else {
      done += *count;
    }
  }
  (void)fs::closeFile(*file);
  return buffer;
}

std::optional<CodeImage> parse(std::shared_ptr<llvm::MemoryBuffer> file,
                               const CacheKey &key) {
  StringRef bytes = file->getBuffer();
  EntryHeader header;
  if (bytes.size() < sizeof header)
    return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof header);
  bytes = bytes.drop_front(sizeof header);
  if (std::memcmp(header.magic, entryMagic, sizeof entryMagic) != 0 ||
      header.version != entryVersion || header.key != key ||
      header.isQuick > 1 || header.weightsBytes > bytes.size() ||
      header.objectBytes != bytes.size() - header.weightsBytes)
    return std::nullopt;
  StringRef weights = bytes.take_front(header.weightsBytes);
  StringRef object = bytes.drop_front(header.weightsBytes);
  if (checksumOf(header, weights, object) != header.checksum)
    return std::nullopt;
  return CodeImage{std::make_unique<PartOfFile>(file, object),
                   std::make_unique<PartOfFile>(file, weights),
                   header.isQuick == 1};
}

} // namespace

std::string CacheStore::pathOf(const CacheKey &key) const {
  llvm::SmallString<128> path(directory);
  llvm::sys::path::append(path,
                          llvm::toHex(key, /*LowerCase=*/true) + entrySuffix);
  return path.str().str();
}

std::error_code CacheStore::makeDirectory() const {
  return fs::create_directories(directory, /*IgnoreExisting=*/true,
                                fs::owner_all);
}

bool CacheStore::isPrivate() const {
  struct stat status;
  return stat(directory.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == geteuid() &&
         (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

std::optional<std::string> CacheStore::problem() const {
  if (std::error_code code = makeDirectory())
    return "cannot make the directory '" + directory + "': " + code.message();
  if (!isPrivate())
    return "'" + directory +
           "' is not a directory of this user that nobody else can write to";
  return std::nullopt;
}

std::optional<CodeImage> CacheStore::load(const CacheKey &key) const {
  if (!isPrivate())
    return std::nullopt;
  std::string path = pathOf(key);
  std::shared_ptr<llvm::MemoryBuffer> file = readFile(path);
  if (!file)
    return std::nullopt;
  std::optional<CodeImage> image = parse(std::move(file), key);
  if (!image)
    (void)fs::remove(path);
  else // its time is that of its last use, which eviction goes by
    ::utimensat(AT_FDCWD, path.c_str(), /*times=now*/ nullptr, 0);
  return image;
}

void CacheStore::store(const CacheKey &key, const CodeImage &image) const {
  StringRef weights = image.weights->getBuffer();
  StringRef object = image.object->getBuffer();
  uint64_t bytes = sizeof(EntryHeader) + weights.size() + object.size();
  if (bytes > limit || makeDirectory() || !isPrivate())
    return;
  EntryHeader header = {};
  std::memcpy(header.magic, entryMagic, sizeof entryMagic);
  header.version = entryVersion;
  header.key = key;
  header.weightsBytes = weights.size();
  header.objectBytes = object.size();
  header.isQuick = image.isQuick;
  header.checksum = checksumOf(header, weights, object);

  std::string path = pathOf(key);
  int fd;
  llvm::SmallString<128> temporary;
  if (fs::createUniqueFile(path + ".%%%%%%%%" + temporarySuffix, fd, temporary,
                           fs::OF_None, fs::owner_read | fs::owner_write))
    return;
  llvm::raw_fd_ostream os(fd, /*shouldClose=*/true);
  os << StringRef(reinterpret_cast<const char *>(&header), sizeof header)
     << weights << object;
  os.close();
  bool incomplete = os.has_error();
  os.clear_error();
  if (incomplete || fs::rename(temporary, path)) {
    (void)fs::remove(temporary);
    return;
  }
  // Counting all files each time would take longer than a compilation: a
  // number of small entries may come between.
  if (key[0] == 0 || bytes > limit / 256)
    evict();
}

void CacheStore::evict() const {
  struct Entry {
    std::string path;
    uint64_t bytes;
    llvm::sys::TimePoint<> used;
  };
  std::vector<Entry> entries;
  uint64_t total = 0;
  auto now = std::chrono::system_clock::now();
  std::error_code code;
  for (fs::directory_iterator file(directory, code), end; !code && file != end;
       file.increment(code)) {
    llvm::ErrorOr<fs::basic_file_status> status = file->status();
    StringRef path = file->path();
    if (!status)
      continue; // another process was faster
    if (path.ends_with(temporarySuffix) &&
        now - status->getLastModificationTime() > std::chrono::hours(1))
      (void)fs::remove(path); // of a process that ended amid its work
    if (!path.ends_with(entrySuffix))
      continue;
    entries.push_back(
        {path.str(), status->getSize(), status->getLastModificationTime()});
    total += entries.back().bytes;
  }
  if (total <= limit)
    return;
  llvm::sort(entries,
             [](const Entry &a, const Entry &b) { return a.used < b.used; });
  // Below the limit, or the next entry would come here again.
  for (const Entry &entry : entries) {
    if (total <= limit - limit / 4)
      break;
    (void)fs::remove(entry.path);
    total -= entry.bytes;
  }
}

} // namespace keratin::backend
