//===- IrFile.h - models that are IR dumps ----------------------*- C++ -*-===//
#ifndef KERATIN_TOOLS_IRFILE_H
#define KERATIN_TOOLS_IRFILE_H

#include "keratin/function.h"

#include <map>

namespace keratin {

/// Extents of inputs by name.
using NamedShapes = std::map<std::string, std::vector<int64_t>>;

/// A .mlir file: the public function of a module at any stage before `llvm`, as
/// keratinc writes them. Includes no MLIR; throws Error.
class IrFile {
public:
  explicit IrFile(const std::string &path);
  ~IrFile();

  /// What K::Function::save does. `shapes` pins inputs.
  std::vector<backend::KernelInfo> save(const std::string &prefix,
                                        const backend::SaveOptions &options,
                                        const NamedShapes &shapes);

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace keratin

#endif // KERATIN_TOOLS_IRFILE_H
