//===- Npz.h - NumPy's array files ------------------------------*- C++ -*-===//
//
// The format is numpy.lib.format's, versions 1 to 3; an .npz is a zip archive
// of .npy files. Row-major arrays of bool, int8..int64, uint8 and float16..64.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_TOOLS_NPZ_H
#define KERATIN_TOOLS_NPZ_H

#include "keratin/array.h"

#include <map>
#include <string>
#include <string_view>

namespace keratin {

/// Arrays by name; the one of an .npy file has the name "".
using Arrays = std::map<std::string, Array>;

/// Reads an .npz or .npy file, told apart by their first bytes. Throws Error,
/// which names the file and array, for what is not of the format, is of a dtype
/// not listed above, column-major, or larger than `maxArrayBytes`.
Arrays readArrays(const std::string &path);

/// Bytes that one array may have, against archives that unpack without end.
inline constexpr int64_t maxArrayBytes = int64_t(1) << 33;

/// Writes an .npz (names as given), or for a path that ends in .npy the only
/// array. The file is complete or as it was. Throws Error.
void writeArrays(const std::string &path, const Arrays &arrays);

/// One array in the bytes of an .npy file. `what` names it in errors.
Array parseNpy(std::string_view bytes, const std::string &what);

} // namespace keratin

#endif // KERATIN_TOOLS_NPZ_H
