//===- Units.cpp - code that is generated piece by piece ------------------===//
#include "codegen/Units.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace keratin {

/// Operations of a unit, at the stage loops. Passes and LLVM need two
/// milliseconds for an empty one, and ten and more for so many. What is kept of
/// code is as fine as this.
static constexpr size_t opsOfUnit = 100;

static size_t countOps(FunctionOpInterface function) {
  size_t count = 0;
  function.walk([&](Operation *) { ++count; });
  return count;
}

/// Functions with bodies, `entry` in the first group: alone, where there is
/// more than one.
static SmallVector<SmallVector<FunctionOpInterface>>
groupFunctions(ModuleOp module, llvm::StringRef entry, size_t opsOfWhole) {
  SmallVector<std::pair<FunctionOpInterface, size_t>> functions;
  size_t all = 0;
  for (auto function : module.getOps<FunctionOpInterface>()) {
    if (function.isExternal())
      continue;
    size_t ops = countOps(function);
    all += ops;
    functions.insert(function.getName() == entry ? functions.begin()
                                                 : functions.end(),
                     {function, ops});
  }
  SmallVector<SmallVector<FunctionOpInterface>> groups;
  size_t count = 0;
  for (auto [function, ops] : functions) {
    if (groups.empty() || (all > opsOfWhole && count >= opsOfUnit)) {
      groups.emplace_back();
      count = 0;
    }
    groups.back().push_back(function);
    bool isEntry = function.getName() == entry;
    count += isEntry && all > opsOfWhole ? opsOfUnit : ops;
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
    if (isa<FunctionOpInterface>(known))
      b.insert(known->cloneWithoutRegions());
    else
      b.insert(known->clone());
  }
}

/// Gives functions that units define names that follow from their unit alone.
/// Returns what the ones with numbers were called.
static llvm::StringMap<std::string>
nameByNumbers(ModuleOp module, const llvm::DenseSet<StringAttr> &ours,
              StringAttr entry) {
  MLIRContext *context = module.getContext();
  llvm::StringMap<std::string> names;
  llvm::DenseMap<StringAttr, StringAttr> numbers;
  auto numberOf = [&](StringAttr name) {
    StringAttr &number = numbers[name];
    if (number)
      return number;
    std::string text =
        name == entry ? unitEntry.str() : "k" + std::to_string(names.size());
    number = StringAttr::get(context, text);
    if (name != entry)
      names[text] = name.str();
    return number;
  };
  for (auto function : module.getOps<FunctionOpInterface>())
    if (ours.contains(function.getNameAttr()))
      function.setName(numberOf(function.getNameAttr()));
  module.walk([&](Operation *op) {
    for (NamedAttribute attribute : op->getAttrs())
      if (auto symbol = dyn_cast<FlatSymbolRefAttr>(attribute.getValue()))
        if (ours.contains(symbol.getAttr()))
          op->setAttr(attribute.getName(),
                      FlatSymbolRefAttr::get(numberOf(symbol.getAttr())));
  });
  return names;
}

std::string CodeUnits::symbolInWhole(unsigned module,
                                     llvm::StringRef symbol) const {
  if (!symbol.consume_front(unitPrefix))
    return symbol.str();
  auto known =
      names[module].find(symbol.take_until([](char c) { return c == '.'; }));
  if (known == names[module].end())
    return entry + "." + symbol.str();
  return entry + "." + known->second +
         symbol.drop_front(known->first().size()).str();
}

CodeUnits splitUnits(OwningOpRef<ModuleOp> module, llvm::StringRef entry,
                     size_t opsOfWhole) {
  CodeUnits units;
  units.entry = entry.str();
  auto groups = groupFunctions(*module, entry, opsOfWhole);
  // Before anything moves; it knows operations, wherever they are.
  SymbolTable symbols(*module);
  for (auto &group : llvm::drop_begin(groups)) {
    OwningOpRef<ModuleOp> unit = ModuleOp::create(module->getLoc());
    (*unit)->setAttrs((*module)->getAttrs());
    for (FunctionOpInterface function : group)
      function->moveBefore(unit->getBody(), unit->getBody()->end());
    units.modules.push_back(std::move(unit));
  }
  units.modules.insert(units.modules.begin(), std::move(module));
  if (units.modules.size() > 1) {
    constexpr size_t opsOfLongEntry = 500;
    units.entryIsLong = countOps(groups.front().front()) >= opsOfLongEntry;
    for (OwningOpRef<ModuleOp> &unit : units.modules)
      declareOthers(*unit, symbols);
  }
  llvm::DenseSet<StringAttr> ours;
  for (auto &group : groups)
    for (FunctionOpInterface function : group)
      ours.insert(function.getNameAttr());
  auto entryName = StringAttr::get((*units.modules[0])->getContext(), entry);
  for (OwningOpRef<ModuleOp> &unit : units.modules)
    units.names.push_back(nameByNumbers(*unit, ours, entryName));
  return units;
}

} // namespace keratin
