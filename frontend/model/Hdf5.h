//===- Hdf5.h - reading of untrusted HDF5 files -----------------*- C++ -*-===//
#ifndef KERATIN_FRONTEND_MODEL_HDF5_H
#define KERATIN_FRONTEND_MODEL_HDF5_H

#include "Bytes.h"

#include "keratin/array.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace keratin::model {

/// An HDF5 file in memory. Arrays point into the bytes of the file where its
/// layout allows, so weights are not copied.
///
/// Refuses what could reach outside of the file or grow without bound: soft
/// and external links, external and virtual storage, filters that are not
/// built in (which would load plug-ins), and datasets that state more than the
/// file holds. Every refusal is an Error that names the path.
class Hdf5File {
public:
  /// `what` names the file in errors.
  Hdf5File(Bytes bytes, std::string what);
  ~Hdf5File();
  Hdf5File(Hdf5File &&);
  Hdf5File &operator=(Hdf5File &&) = delete;

  /// Whether there is a group or dataset at `path` ("a/b/c").
  bool has(const std::string &path) const;
  /// Throws Error when there is none or its type is not a plain number.
  Array dataset(const std::string &path) const;
  /// A string attribute of the group at `path` ("" is the root).
  std::optional<std::string> text(const std::string &path,
                                  const std::string &attribute) const;
  /// A list of strings. Lists too long for one attribute are in several,
  /// `attribute`0, `attribute`1, … as h5py's users write them.
  std::optional<std::vector<std::string>>
  texts(const std::string &path, const std::string &attribute) const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace keratin::model

#endif // KERATIN_FRONTEND_MODEL_HDF5_H
