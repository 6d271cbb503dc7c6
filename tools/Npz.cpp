//===- Npz.cpp - NumPy's array files --------------------------------------===//
#include "Npz.h"

#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <zip.h>

namespace keratin {

//===----------------------------------------------------------------------===//
// .npy
//===----------------------------------------------------------------------===//

static constexpr std::string_view npyMagic = "\x93NUMPY";

namespace {

/// The dictionary of a header, a Python literal of three known keys:
/// {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
struct NpyHeader {
  std::string descr;
  bool fortranOrder = false;
  std::vector<int64_t> shape;
};

class HeaderParser {
public:
  explicit HeaderParser(std::string_view text) : rest(text) {}

  /// Nothing when the text is not of the form.
  std::optional<NpyHeader> parse() {
    NpyHeader header;
    bool hasDescr = false, hasOrder = false, hasShape = false;
    if (!eat("{"))
      return std::nullopt;
    while (!eat("}")) {
      if (eat("'descr':"))
        hasDescr = parseString(header.descr);
      else if (eat("'fortran_order':"))
        hasOrder = parseBool(header.fortranOrder);
      else if (eat("'shape':"))
        hasShape = parseTuple(header.shape);
      else
        return std::nullopt;
      eat(",");
    }
    skipSpace();
    if (!hasDescr || !hasOrder || !hasShape || !rest.empty())
      return std::nullopt;
    return header;
  }

private:
  void skipSpace() {
    while (!rest.empty() && (rest[0] == ' ' || rest[0] == '\n'))
      rest.remove_prefix(1);
  }
  bool eat(std::string_view token) {
    skipSpace();
    if (!rest.starts_with(token))
      return false;
    rest.remove_prefix(token.size());
    return true;
  }
  bool parseString(std::string &out) {
    if (!eat("'"))
      return false;
    size_t end = rest.find('\'');
    if (end == std::string_view::npos)
      return false;
    out = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    return true;
  }
  bool parseBool(bool &out) {
    out = eat("True");
    return out || eat("False");
  }
  bool parseTuple(std::vector<int64_t> &out) {
    if (!eat("("))
      return false;
    while (!eat(")")) {
      skipSpace();
      int64_t value;
      auto [end, error] =
          std::from_chars(rest.data(), rest.data() + rest.size(), value);
      if (error != std::errc() || value < 0 || out.size() == 64)
        return false;
      rest.remove_prefix(end - rest.data());
      out.push_back(value);
      eat(",");
    }
    return true;
  }

  std::string_view rest;
};

/// NumPy's names of our element types, little-endian.
struct DescrRow {
  std::string_view descr;
  DType dtype;
};
constexpr DescrRow descrs[] = {
    {"|b1", DType::Bool},    {"|i1", DType::Int8},    {"|u1", DType::UInt8},
    {"<i2", DType::Int16},   {"<i4", DType::Int32},   {"<i8", DType::Int64},
    {"<f2", DType::Float16}, {"<f4", DType::Float32}, {"<f8", DType::Float64}};

} // namespace

static DType parseDescr(const std::string &descr, const std::string &what) {
  std::string known;
  for (const DescrRow &row : descrs) {
    if (row.descr == descr)
      return row.dtype;
    known += (known.empty() ? "" : ", ") + std::string(row.descr);
  }
  throw Error(what + ": element type '" + descr + "' is not one of " + known);
}

/// Size of the elements. Throws when it overflows or is more than allowed.
static int64_t dataSize(const NpyHeader &header, DType dtype,
                        const std::string &what) {
  int64_t bytes = dtypeSize(dtype);
  for (int64_t extent : header.shape)
    if (extent == 0)
      return 0;
  for (int64_t extent : header.shape) {
    if (bytes > maxArrayBytes / extent)
      throw Error(what + ": shape " + shapeName(header.shape) +
                  " is larger than the " + std::to_string(maxArrayBytes) +
                  " bytes allowed");
    bytes *= extent;
  }
  return bytes;
}

/// Splits an .npy file into the text of its header and its data.
static std::pair<std::string_view, std::string_view>
splitNpy(std::string_view bytes, const std::string &what) {
  if (!bytes.starts_with(npyMagic) || bytes.size() < 12)
    throw Error(what + ": not an .npy file");
  auto byte = [&](size_t index) -> size_t {
    return static_cast<unsigned char>(bytes[index]);
  };
  size_t version = byte(6), start = version == 1 ? 10 : 12;
  if (version < 1 || version > 3)
    throw Error(what + ": .npy version " + std::to_string(version) +
                ", expected 1 to 3");
  size_t length = byte(8) | byte(9) << 8;
  if (version > 1)
    length |= byte(10) << 16 | byte(11) << 24;
  if (length > bytes.size() - start)
    throw Error(what + ": .npy header of " + std::to_string(length) +
                " bytes in a file of " + std::to_string(bytes.size()));
  return {bytes.substr(start, length), bytes.substr(start + length)};
}

Array parseNpy(std::string_view bytes, const std::string &what) {
  auto [text, data] = splitNpy(bytes, what);
  std::optional<NpyHeader> header = HeaderParser(text).parse();
  if (!header)
    throw Error(what + ": malformed .npy header");
  if (header->fortranOrder && header->shape.size() > 1)
    throw Error(what + ": column-major (fortran_order), expected row-major: "
                       "save numpy.ascontiguousarray(array)");
  DType dtype = parseDescr(header->descr, what);
  int64_t size = dataSize(*header, dtype, what);
  if (static_cast<uint64_t>(size) != data.size())
    throw Error(what + ": shape " + shapeName(header->shape) + " needs " +
                std::to_string(size) + " bytes, the file has " +
                std::to_string(data.size()));
  Array array(dtype, header->shape);
  if (size > 0)
    std::memcpy(array.mutableData(), data.data(), size);
  return array;
}

static std::string makeNpy(const Array &array, const std::string &what) {
  std::string_view descr;
  for (const DescrRow &row : descrs)
    if (row.dtype == array.dtype())
      descr = row.descr;
  if (descr.empty()) // bfloat16, which NumPy has not
    return makeNpy(array.to(DType::Float32), what);
  std::string header = "{'descr': '" + std::string(descr) +
                       "', 'fortran_order': False, 'shape': (";
  for (size_t axis = 0; axis < array.shape().size(); ++axis)
    header += (axis ? ", " : "") + std::to_string(array.shape()[axis]);
  header += array.shape().size() == 1 ? ",), }" : "), }";
  // The data begins at a multiple of 64.
  header.append((64 - (10 + header.size() + 1) % 64) % 64, ' ');
  header += '\n';
  std::string bytes(npyMagic);
  bytes += '\1';
  bytes += '\0';
  bytes += static_cast<char>(header.size() & 0xFF);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  bytes.append(static_cast<const char *>(array.data()), array.byteSize());
  return bytes;
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

namespace {
struct CloseZip {
  void operator()(zip_t *archive) const { zip_discard(archive); }
};
struct CloseEntry {
  void operator()(zip_file_t *entry) const { zip_fclose(entry); }
};
} // namespace
using ZipArchive = std::unique_ptr<zip_t, CloseZip>;
using ZipEntry = std::unique_ptr<zip_file_t, CloseEntry>;

static std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file)
    throw Error(path + ": cannot be opened");
  std::streamoff size = file.tellg();
  if (size < 0 || size > maxArrayBytes)
    throw Error(path + ": not a file of at most " +
                std::to_string(maxArrayBytes) + " bytes");
  std::string bytes(static_cast<size_t>(size), 0);
  file.seekg(0);
  if (!file.read(bytes.data(), size))
    throw Error(path + ": cannot be read");
  return bytes;
}

static std::string readEntry(zip_t *archive, uint64_t index,
                             const std::string &what) {
  zip_stat_t facts;
  if (zip_stat_index(archive, index, 0, &facts) != 0 ||
      !(facts.valid & ZIP_STAT_SIZE))
    throw Error(what + ": damaged entry");
  // The header may be a little more than the array.
  if (facts.size > static_cast<uint64_t>(maxArrayBytes) + 65536)
    throw Error(what + ": " + std::to_string(facts.size) +
                " bytes, more than the " + std::to_string(maxArrayBytes) +
                " allowed");
  ZipEntry entry(zip_fopen_index(archive, index, 0));
  if (!entry)
    throw Error(what + ": " + zip_strerror(archive));
  // Grows as data arrives: a small file that promises much allocates little.
  std::string bytes;
  constexpr size_t step = size_t(1) << 22;
  while (bytes.size() < facts.size) {
    size_t done = bytes.size(), want = std::min(step, facts.size - done);
    bytes.resize(done + want);
    zip_int64_t got = zip_fread(entry.get(), bytes.data() + done, want);
    if (got <= 0)
      throw Error(what + ": damaged or truncated data");
    bytes.resize(done + static_cast<size_t>(got));
  }
  char more;
  if (zip_fread(entry.get(), &more, 1) != 0) // also checks the CRC
    throw Error(what + ": damaged data");
  return bytes;
}

static Arrays readNpz(const std::string &path) {
  int code = 0;
  ZipArchive archive(zip_open(path.c_str(), ZIP_RDONLY, &code));
  if (!archive)
    throw Error(path + ": not an .npz archive");
  Arrays arrays;
  zip_int64_t count = zip_get_num_entries(archive.get(), 0);
  for (zip_int64_t index = 0; index < count; ++index) {
    const char *given = zip_get_name(archive.get(), index, 0);
    std::string name = given ? given : "";
    if (!name.ends_with(".npy"))
      throw Error(path + ": entry '" + name + "' is not an .npy array");
    std::string what = path + ": " + name.substr(0, name.size() - 4);
    arrays[name.substr(0, name.size() - 4)] =
        parseNpy(readEntry(archive.get(), index, what), what);
  }
  return arrays;
}

Arrays readArrays(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  char first[6] = {};
  if (!file)
    throw Error(path + ": cannot be opened");
  file.read(first, sizeof first);
  if (std::string_view(first, sizeof first) != npyMagic)
    return readNpz(path);
  Arrays arrays;
  arrays[""] = parseNpy(readFile(path), path);
  return arrays;
}

static void writeNpy(const std::string &path, const Array &array) {
  std::string bytes = makeNpy(array, path), temporary = path + ".tmp";
  std::ofstream file(temporary, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file || std::rename(temporary.c_str(), path.c_str()) != 0) {
    std::remove(temporary.c_str());
    throw Error(path + ": cannot be written");
  }
}

static void writeNpz(const std::string &path, const Arrays &arrays) {
  int code = 0;
  ZipArchive archive(zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code));
  if (!archive)
    throw Error(path + ": cannot be written");
  std::vector<std::string> files; // read by zip_close
  files.reserve(arrays.size());
  for (const auto &[name, array] : arrays) {
    files.push_back(makeNpy(array, name));
    zip_source_t *source = zip_source_buffer(archive.get(), files.back().data(),
                                             files.back().size(), 0);
    zip_int64_t index =
        source ? zip_file_add(archive.get(), (name + ".npy").c_str(), source,
                              ZIP_FL_ENC_UTF_8)
               : -1;
    if (index < 0 ||
        zip_set_file_compression(archive.get(), index, ZIP_CM_STORE, 0) != 0)
      throw Error(path + ": " + zip_strerror(archive.get()));
  }
  if (zip_close(archive.get()) != 0)
    throw Error(path + ": " + zip_strerror(archive.get()));
  (void)archive.release(); // zip_close freed it
}

void writeArrays(const std::string &path, const Arrays &arrays) {
  if (!path.ends_with(".npy"))
    return writeNpz(path, arrays);
  if (arrays.size() != 1)
    throw Error(path + ": an .npy file holds one array, not " +
                std::to_string(arrays.size()) + "; name an .npz file");
  writeNpy(path, arrays.begin()->second);
}

} // namespace keratin
