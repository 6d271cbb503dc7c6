//===- Hdf5.cpp - reading of untrusted HDF5 files -------------------------===//
#include "Hdf5.h"

#include <hdf5.h>
#include <hdf5_hl.h>

#include <algorithm>
#include <cstring>
#include <mutex>

using namespace keratin;
using namespace keratin::model;

namespace {

/// Bytes that a compressed dataset may unpack to, in bytes stored.
constexpr uint64_t maxCompressionRatio = 1000;
/// Bytes of a chunk beyond those of its dataset.
constexpr uint64_t maxChunkMargin = uint64_t(1) << 20;
/// Of an attribute: the JSON of a model.
constexpr uint64_t maxAttributeBytes = uint64_t(32) << 20;

/// The library is not reentrant, prints to stderr and loads plug-ins: one user
/// at a time, silently and without plug-ins.
class Session {
public:
  Session() : lock(mutex()) {
    H5open();
    H5Eget_auto2(H5E_DEFAULT, &report, &reportData);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    H5PLget_loading_state(&plugins);
    H5PLset_loading_state(0);
  }
  ~Session() {
    H5PLset_loading_state(plugins);
    H5Eset_auto2(H5E_DEFAULT, report, reportData);
  }
  Session(const Session &) = delete;
  Session &operator=(const Session &) = delete;

private:
  static std::recursive_mutex &mutex() {
    static std::recursive_mutex only;
    return only;
  }
  std::unique_lock<std::recursive_mutex> lock;
  H5E_auto2_t report = nullptr;
  void *reportData = nullptr;
  unsigned plugins = 0;
};

/// An identifier of the library, closed at the end of its scope.
class Handle {
public:
  Handle(hid_t id, herr_t (*close)(hid_t)) : id(id), close(close) {}
  ~Handle() {
    if (id >= 0)
      close(id);
  }
  Handle(const Handle &) = delete;
  Handle &operator=(const Handle &) = delete;
  operator hid_t() const { return id; }
  bool valid() const { return id >= 0; }

private:
  hid_t id;
  herr_t (*close)(hid_t);
};

std::vector<hsize_t> extentsOf(hid_t space) {
  int rank = H5Sget_simple_extent_ndims(space);
  std::vector<hsize_t> extents(std::max(rank, 0));
  if (rank > 0)
    H5Sget_simple_extent_dims(space, extents.data(), nullptr);
  return extents;
}

/// The product, or nothing when it does not fit.
std::optional<uint64_t> product(const std::vector<hsize_t> &extents,
                                uint64_t factor) {
  for (hsize_t extent : extents)
    if (__builtin_mul_overflow(factor, extent, &factor))
      return std::nullopt;
  return factor;
}

/// The element type whose bytes in memory equal those of `type` in the file.
std::optional<DType> elementType(hid_t type) {
  static const std::pair<hid_t, DType> plain[] = {
      {H5T_IEEE_F32LE, DType::Float32}, {H5T_IEEE_F64LE, DType::Float64},
      {H5T_STD_I8LE, DType::Int8},      {H5T_STD_U8LE, DType::UInt8},
      {H5T_STD_I16LE, DType::Int16},    {H5T_STD_I32LE, DType::Int32},
      {H5T_STD_I64LE, DType::Int64}};
  for (auto [candidate, dtype] : plain)
    if (H5Tequal(type, candidate) > 0)
      return dtype;
  size_t size = H5Tget_size(type);
  H5T_class_t kind = H5Tget_class(type);
  bool little = H5Tget_order(type) == H5T_ORDER_LE;
  // NumPy's float16 differs from no predefined type but by its fields.
  if (kind == H5T_FLOAT && size == 2 && little) {
    size_t sign, exponent, exponentBits, mantissa, mantissaBits;
    H5Tget_fields(type, &sign, &exponent, &exponentBits, &mantissa,
                  &mantissaBits);
    if (exponentBits == 5 && mantissaBits == 10)
      return DType::Float16;
    if (exponentBits == 8 && mantissaBits == 7)
      return DType::BFloat16;
  }
  // Keras stores bfloat16 as two opaque bytes.
  if (kind == H5T_OPAQUE && size == 2)
    return DType::BFloat16;
  // h5py's bool: an enumeration over one byte.
  if (kind == H5T_ENUM && size == 1)
    return DType::Bool;
  return std::nullopt;
}

std::string trimmed(const char *text, size_t size) {
  return std::string(text, std::find(text, text + size, '\0'));
}

} // namespace

struct Hdf5File::Impl {
  Impl(Bytes fileBytes, std::string what);
  ~Impl() {
    Session session;
    if (file >= 0)
      H5Fclose(file);
  }

  [[noreturn]] void fail(const std::string &path,
                         const std::string &problem) const {
    throw Error(what + ": '" + path + "' " + problem);
  }
  bool exists(const std::string &path) const;
  Array read(const std::string &path) const;
  void checkFilters(hid_t properties, const std::string &path) const;
  void checkChunks(hid_t set, DType dtype, uint64_t size,
                   const std::string &path) const;
  Array mapContiguous(hid_t set, DType dtype, std::vector<int64_t> shape,
                      uint64_t size, const std::string &path) const;
  Array readChunked(hid_t set, hid_t type, DType dtype,
                    std::vector<int64_t> shape, uint64_t size,
                    const std::string &path) const;
  std::optional<std::vector<std::string>>
  readTexts(const std::string &path, const std::string &attribute) const;

  Bytes bytes;
  std::string what;
  hid_t file = -1;
};

Hdf5File::Impl::Impl(Bytes fileBytes, std::string what)
    : bytes(std::move(fileBytes)), what(std::move(what)) {
  // Read-only: the library neither writes to nor frees the bytes.
  unsigned flags = H5LT_FILE_IMAGE_DONT_COPY | H5LT_FILE_IMAGE_DONT_RELEASE;
  file = H5LTopen_file_image(const_cast<std::byte *>(bytes.data.get()),
                             bytes.size, flags);
  if (file < 0)
    throw Error(this->what + " is not a whole HDF5 file (" +
                describeSize(bytes.size) +
                "): it is truncated or damaged, save the model again or copy "
                "the file again");
}

/// Follows `path` link by link: the library itself would follow links into
/// other files.
bool Hdf5File::Impl::exists(const std::string &path) const {
  for (size_t end = 0; end < path.size();) {
    end = std::min(path.find('/', end + 1), path.size());
    std::string prefix = path.substr(0, end);
    if (H5Lexists(file, prefix.c_str(), H5P_DEFAULT) <= 0)
      return false;
    H5L_info_t link;
    if (H5Lget_info(file, prefix.c_str(), &link, H5P_DEFAULT) < 0)
      return false;
    if (link.type != H5L_TYPE_HARD)
      fail(prefix, "is a soft or external link, which is not followed: save "
                   "the model again with its weights inside");
  }
  return true;
}

void Hdf5File::Impl::checkFilters(hid_t properties,
                                  const std::string &path) const {
  int count = H5Pget_nfilters(properties);
  for (int i = 0; i < count; ++i) {
    unsigned flags = 0, config = 0;
    size_t values = 0;
    char name[64] = "";
    H5Z_filter_t filter =
        H5Pget_filter2(properties, unsigned(i), &flags, &values, nullptr,
                       sizeof name, name, &config);
    if (filter != H5Z_FILTER_DEFLATE && filter != H5Z_FILTER_SHUFFLE &&
        filter != H5Z_FILTER_FLETCHER32)
      fail(path, "is compressed with the filter '" + std::string(name) + "' (" +
                     std::to_string(filter) +
                     "), but only gzip, shuffle and fletcher32 are read: save "
                     "it uncompressed");
  }
}

Array Hdf5File::Impl::mapContiguous(hid_t set, DType dtype,
                                    std::vector<int64_t> shape, uint64_t size,
                                    const std::string &path) const {
  haddr_t offset = H5Dget_offset(set);
  if (size == 0)
    return Array(dtype, std::move(shape));
  if (offset == HADDR_UNDEF || offset > bytes.size ||
      size > bytes.size - offset)
    fail(path, "states " + describeSize(size) + " but the file of " +
                   describeSize(bytes.size) +
                   " does not hold them: it is truncated, copy it again");
  const std::byte *values = bytes.data.get() + offset;
  if (offset % uint64_t(dtypeSize(dtype)) == 0)
    return Array(dtype, std::move(shape), values, bytes.data);
  Array aligned(dtype, std::move(shape));
  std::memcpy(aligned.mutableData(), values, size);
  return aligned;
}

/// The library holds a whole chunk in memory, however little of it is used.
void Hdf5File::Impl::checkChunks(hid_t set, DType dtype, uint64_t size,
                                 const std::string &path) const {
  Handle properties(H5Dget_create_plist(set), H5Pclose);
  if (H5Pget_layout(properties) != H5D_CHUNKED)
    return;
  std::vector<hsize_t> extents(H5S_MAX_RANK);
  int rank = H5Pget_chunk(properties, static_cast<int>(extents.size()),
                          extents.data());
  if (rank < 0)
    fail(path, "is damaged");
  extents.resize(static_cast<size_t>(rank));
  std::optional<uint64_t> chunk =
      product(extents, static_cast<uint64_t>(dtypeSize(dtype)));
  if (!chunk || *chunk > size + maxChunkMargin)
    fail(path, "is stored in chunks of " +
                   (chunk ? describeSize(*chunk) : "too many bytes") +
                   " but has " + describeSize(size) +
                   ": it was not saved by Keras");
}

Array Hdf5File::Impl::readChunked(hid_t set, hid_t type, DType dtype,
                                  std::vector<int64_t> shape, uint64_t size,
                                  const std::string &path) const {
  checkChunks(set, dtype, size, path);
  uint64_t stored = H5Dget_storage_size(set);
  if (stored > bytes.size || size / maxCompressionRatio > stored)
    fail(path, "states " + describeSize(size) + " but stores " +
                   describeSize(stored) + " in a file of " +
                   describeSize(bytes.size) + ": it was not saved by Keras");
  std::shared_ptr<std::byte[]> values = allocateBytes(size, "'" + path + "'");
  if (H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.get()) < 0)
    fail(path, "cannot be read: the file is damaged, copy it again");
  const void *data = values.get();
  return Array(dtype, std::move(shape), data, std::move(values));
}

Array Hdf5File::Impl::read(const std::string &path) const {
  if (!exists(path))
    fail(path, "is missing");
  Handle set(H5Dopen2(file, path.c_str(), H5P_DEFAULT), H5Dclose);
  if (!set.valid())
    fail(path, "is not a readable dataset");
  Handle properties(H5Dget_create_plist(set), H5Pclose);
  Handle space(H5Dget_space(set), H5Sclose);
  Handle type(H5Dget_type(set), H5Tclose);
  if (!properties.valid() || !space.valid() || !type.valid())
    fail(path, "is damaged");

  H5D_layout_t layout = H5Pget_layout(properties);
  if (layout == H5D_VIRTUAL || H5Pget_external_count(properties) > 0)
    fail(path, "keeps its values in another file, which is not read: save the "
               "model again with its weights inside");
  checkFilters(properties, path);
  if (H5Sget_simple_extent_type(space) == H5S_NULL)
    fail(path, "holds no values: save the model again");
  std::optional<DType> dtype = elementType(type);
  if (!dtype)
    fail(path, "has an element type that no Keras weight has: expected a "
               "little-endian float, integer, bool or bfloat16");
  std::vector<hsize_t> extents = extentsOf(space);
  std::optional<uint64_t> size = product(extents, uint64_t(dtypeSize(*dtype)));
  if (!size || *size > uint64_t(INT64_MAX))
    fail(path, "states more elements than there is memory for");
  std::vector<int64_t> shape(extents.begin(), extents.end());
  if (layout == H5D_CONTIGUOUS)
    return mapContiguous(set, *dtype, std::move(shape), *size, path);
  return readChunked(set, type, *dtype, std::move(shape), *size, path);
}

std::optional<std::vector<std::string>>
Hdf5File::Impl::readTexts(const std::string &path,
                          const std::string &attribute) const {
  if (!path.empty() && !exists(path))
    return std::nullopt;
  const char *object = path.empty() ? "." : path.c_str();
  if (H5Aexists_by_name(file, object, attribute.c_str(), H5P_DEFAULT) <= 0)
    return std::nullopt;
  Handle handle(H5Aopen_by_name(file, object, attribute.c_str(), H5P_DEFAULT,
                                H5P_DEFAULT),
                H5Aclose);
  Handle type(handle.valid() ? H5Aget_type(handle) : -1, H5Tclose);
  Handle space(handle.valid() ? H5Aget_space(handle) : -1, H5Sclose);
  if (!type.valid() || !space.valid())
    fail(path + "@" + attribute, "is damaged");
  std::vector<hsize_t> extents = extentsOf(space);
  std::optional<uint64_t> count = product(extents, 1);
  bool variable = H5Tis_variable_str(type) > 0;
  uint64_t width = variable ? sizeof(char *) : H5Tget_size(type);
  // h5py writes an empty list of strings as an empty list of doubles.
  if (count && *count == 0)
    return std::vector<std::string>();
  if (H5Tget_class(type) != H5T_STRING)
    fail(path + "@" + attribute, "is not text");
  if (!count || !width || *count > maxAttributeBytes / width)
    fail(path + "@" + attribute, "states more text than is plausible");

  std::vector<std::string> result;
  std::vector<char> buffer(*count * width);
  if (H5Aread(handle, type, buffer.data()) < 0)
    fail(path + "@" + attribute, "is damaged");
  for (uint64_t i = 0; i < *count; ++i) {
    const char *item = buffer.data() + i * width;
    if (!variable) {
      result.push_back(trimmed(item, width));
      continue;
    }
    const char *text;
    std::copy_n(item, sizeof text, reinterpret_cast<char *>(&text));
    result.emplace_back(text ? text : "");
  }
  if (variable)
    H5Dvlen_reclaim(type, space, H5P_DEFAULT, buffer.data());
  return result;
}

Hdf5File::Hdf5File(Bytes bytes, std::string what) {
  Session session;
  impl = std::make_unique<Impl>(std::move(bytes), std::move(what));
}

Hdf5File::~Hdf5File() = default;
Hdf5File::Hdf5File(Hdf5File &&) = default;

bool Hdf5File::has(const std::string &path) const {
  Session session;
  return impl->exists(path);
}

Array Hdf5File::dataset(const std::string &path) const {
  Session session;
  return impl->read(path);
}

std::optional<std::string> Hdf5File::text(const std::string &path,
                                          const std::string &attribute) const {
  Session session;
  std::optional<std::vector<std::string>> all =
      impl->readTexts(path, attribute);
  if (!all || all->empty())
    return std::nullopt;
  return std::move(all->front());
}

std::optional<std::vector<std::string>>
Hdf5File::texts(const std::string &path, const std::string &attribute) const {
  Session session;
  if (auto all = impl->readTexts(path, attribute))
    return all;
  std::optional<std::vector<std::string>> result;
  for (int part = 0;; ++part) {
    auto chunk = impl->readTexts(path, attribute + std::to_string(part));
    if (!chunk)
      return result;
    if (!result)
      result.emplace();
    result->insert(result->end(), chunk->begin(), chunk->end());
  }
}
