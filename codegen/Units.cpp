//===- Units.cpp - code that is generated piece by piece ------------------===//
#include "codegen/Units.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace keratin {

/// Operations of a unit. LLVM needs about a millisecond for an empty one, and
/// some ten for this many.
static constexpr size_t opsOfUnit = 2000;

static size_t countOps(LLVM::LLVMFuncOp function) {
  size_t count = 0;
  function.walk([&](Operation *) { ++count; });
  return count;
}

/// Functions with bodies, `entry` in the first group.
static SmallVector<SmallVector<LLVM::LLVMFuncOp>>
groupFunctions(ModuleOp module, llvm::StringRef entry) {
  SmallVector<LLVM::LLVMFuncOp> functions;
  for (auto function : module.getOps<LLVM::LLVMFuncOp>())
    if (!function.isExternal())
      functions.insert(function.getName() == entry ? functions.begin()
                                                   : functions.end(),
                       function);
  SmallVector<SmallVector<LLVM::LLVMFuncOp>> groups;
  size_t count = opsOfUnit;
  for (LLVM::LLVMFuncOp function : functions) {
    if (count >= opsOfUnit) {
      groups.emplace_back();
      count = 0;
    }
    groups.back().push_back(function);
    count += countOps(function);
  }
  return groups;
}

/// Symbols that the operations of `module` use, in order.
static llvm::SetVector<StringAttr> usedSymbols(ModuleOp module) {
  llvm::SetVector<StringAttr> names;
  module.walk([&](Operation *op) {
    for (NamedAttribute attribute : op->getAttrs())
      if (auto symbol = dyn_cast<FlatSymbolRefAttr>(attribute.getValue()))
        names.insert(symbol.getAttr());
  });
  return names;
}

/// What a module uses of others: constants are copied, functions declared.
static void declareOthers(ModuleOp module, const SymbolTable &symbols) {
  OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
  for (StringAttr name : usedSymbols(module)) {
    Operation *known = symbols.lookup(name);
    if (!known || known->getParentOp() == module)
      continue;
    if (isa<LLVM::LLVMFuncOp>(known))
      b.insert(known->cloneWithoutRegions());
    else
      b.insert(known->clone());
  }
}

CodeUnits splitUnits(OwningOpRef<ModuleOp> module, llvm::StringRef entry) {
  CodeUnits units;
  units.entry = entry.str();
  auto groups = groupFunctions(*module, entry);
  // Before anything moves; it knows operations, wherever they are.
  SymbolTable symbols(*module);
  for (auto &group : llvm::drop_begin(groups)) {
    OwningOpRef<ModuleOp> unit = ModuleOp::create(module->getLoc());
    (*unit)->setAttrs((*module)->getAttrs());
    for (LLVM::LLVMFuncOp function : group)
      function->moveBefore(unit->getBody(), unit->getBody()->end());
    units.modules.push_back(std::move(unit));
  }
  units.modules.insert(units.modules.begin(), std::move(module));
  if (units.modules.size() == 1)
    return units;
  units.entryIsAlone = groups.front().size() == 1;
  for (auto &group : groups)
    for (LLVM::LLVMFuncOp function : group)
      if (function.getName() != entry)
        units.shared.insert(function.getName());
  for (OwningOpRef<ModuleOp> &unit : units.modules)
    declareOthers(*unit, symbols);
  return units;
}

} // namespace keratin
