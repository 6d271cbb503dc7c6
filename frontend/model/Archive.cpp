//===- Archive.cpp - the members of a .keras file -------------------------===//
#include "Archive.h"

#include "frontend/Pages.h"

#include "keratin/array.h"

#include <zip.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>

using namespace keratin;
using namespace keratin::model;

namespace {

struct CloseZip {
  void operator()(zip_t *zip) const { zip_discard(zip); }
};
struct CloseMember {
  void operator()(zip_file_t *file) const { zip_fclose(file); }
};

std::string describe(int code) {
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  std::string text = zip_error_strerror(&error);
  zip_error_fini(&error);
  return text;
}

/// Whether a member's name stays below the directory it is unpacked to.
bool staysInside(std::string_view name) {
  if (name.starts_with('/') || name.find('\\') != name.npos)
    return false;
  for (size_t begin = 0; begin <= name.size();) {
    size_t end = std::min(name.find('/', begin), name.size());
    if (name.substr(begin, end - begin) == "..")
      return false;
    begin = end + 1;
  }
  return true;
}

class ZipArchive : public Archive {
public:
  ZipArchive(const std::string &path, const ArchiveLimits &limits, bool spills);
  bool has(const std::string &member) const override {
    return zip_name_locate(zip.get(), member.c_str(), 0) >= 0;
  }
  Bytes read(const std::string &member, uint64_t limit) const override;

private:
  void checkSize(const zip_stat_t &stat, uint64_t limit) const;
  std::unique_ptr<zip_t, CloseZip> zip;
  ArchiveLimits limits;
  bool spills;
  uint64_t fileSize = 0;
};

class DirectoryArchive : public Archive {
public:
  explicit DirectoryArchive(const std::string &path) : root(path) {}
  bool has(const std::string &member) const override {
    std::error_code ignored;
    return std::filesystem::is_regular_file(root / member, ignored);
  }
  Bytes read(const std::string &member, uint64_t limit) const override {
    return readFile((root / member).string(), limit);
  }

private:
  std::filesystem::path root;
};

} // namespace

ZipArchive::ZipArchive(const std::string &path, const ArchiveLimits &limits,
                       bool spills)
    : limits(limits), spills(spills) {
  int code = 0;
  zip.reset(zip_open(path.c_str(), ZIP_RDONLY, &code));
  if (!zip)
    throw Error("the zip archive is damaged (" + describe(code) +
                "): save the model again, or copy the file again");
  std::error_code ignored;
  fileSize = std::filesystem::file_size(path, ignored);
  zip_int64_t count = zip_get_num_entries(zip.get(), 0);
  if (uint64_t(count) > limits.members)
    throw Error("the archive has " + std::to_string(count) +
                " members, more than the limit of " +
                std::to_string(limits.members));
  std::set<std::string_view> names;
  for (zip_int64_t i = 0; i < count; ++i) {
    const char *name = zip_get_name(zip.get(), zip_uint64_t(i), 0);
    if (!name || !staysInside(name))
      throw Error("the archive has a member named '" +
                  std::string(name ? name : "") +
                  "' that lies outside of it: it was not saved by Keras");
    // Readers differ in which one they take.
    if (!names.insert(name).second)
      throw Error("the archive has two members named '" + std::string(name) +
                  "': it was not saved by Keras");
  }
}

void ZipArchive::checkSize(const zip_stat_t &stat, uint64_t limit) const {
  std::string name = "archive member '" + std::string(stat.name) + "'";
  if (!(stat.valid & ZIP_STAT_SIZE) || !(stat.valid & ZIP_STAT_COMP_SIZE) ||
      !(stat.valid & ZIP_STAT_COMP_METHOD))
    throw Error(name + " does not state its size");
  if (stat.size > limit)
    throw Error(name + " has " + describeSize(stat.size) +
                ", more than the limit of " + describeSize(limit));
  if (stat.comp_size > fileSize)
    throw Error(name + " states " + describeSize(stat.comp_size) +
                " in a file of " + describeSize(fileSize) +
                ": the file is truncated");
  bool stored = stat.comp_method == ZIP_CM_STORE;
  bool small = stat.size <= (uint64_t(1) << 20);
  if (!stored && !small && stat.size / limits.compressionRatio > stat.comp_size)
    throw Error(name + " unpacks " + describeSize(stat.comp_size) + " to " +
                describeSize(stat.size) + ", more than " +
                std::to_string(limits.compressionRatio) +
                " times its size: it was not saved by Keras");
}

Bytes ZipArchive::read(const std::string &member, uint64_t limit) const {
  std::string name = "archive member '" + member + "'";
  zip_stat_t stat;
  if (zip_stat(zip.get(), member.c_str(), 0, &stat) != 0)
    throw Error("the archive has no member '" + member + "'");
  checkSize(stat, limit);
  std::unique_ptr<zip_file_t, CloseMember> file(
      zip_fopen(zip.get(), member.c_str(), 0));
  if (!file)
    throw Error(name + " cannot be read (" + zip_strerror(zip.get()) + ")");

  // Never more than stated: a member that unpacks to more fails its checksum.
  constexpr uint64_t large = uint64_t(1) << 20, pieceBytes = uint64_t(1) << 20;
  std::optional<TemporaryPages> pages;
  if (spills && stat.size >= large)
    pages.emplace();
  bool isSpilled = pages && pages->isOpen();
  std::shared_ptr<std::byte[]> bytes =
      allocateBytes(isSpilled ? pieceBytes : uint64_t(stat.size), name);
  for (uint64_t done = 0; done < stat.size;) {
    uint64_t left = stat.size - done;
    zip_int64_t got =
        isSpilled
            ? zip_fread(file.get(), bytes.get(), std::min(left, pieceBytes))
            : zip_fread(file.get(), bytes.get() + done, left);
    if (got <= 0)
      throw Error(name + " is damaged after " + describeSize(done) + " of " +
                  describeSize(stat.size) + " (" +
                  zip_file_strerror(file.get()) + ")");
    if (isSpilled && !pages->append(bytes.get(), size_t(got)))
      throw Error(name + ": there is no room for its " +
                  describeSize(stat.size) + " in the temporary directory");
    done += uint64_t(got);
  }
  std::byte more;
  if (zip_fread(file.get(), &more, 1) != 0)
    throw Error(name + " is damaged (" + zip_file_strerror(file.get()) + ")");
  if (!isSpilled)
    return {std::move(bytes), stat.size};
  FilePages mapped = pages->map();
  if (!mapped.data)
    throw Error("no address space for the " + describeSize(stat.size) + " of " +
                name);
  return {std::move(mapped.data), mapped.size};
}

std::unique_ptr<Archive> model::openZip(const std::string &path,
                                        const ArchiveLimits &limits,
                                        bool spills) {
  return std::make_unique<ZipArchive>(path, limits, spills);
}

std::unique_ptr<Archive> model::openDirectory(const std::string &path) {
  return std::make_unique<DirectoryArchive>(path);
}
