//===- Dumps.cpp - IR on its way to people --------------------------------===//
#include "codegen/Dumps.h"

#include "codegen/Link.h"

#include "mlir/IR/Operation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Pass/Pass.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace keratin {

OpPrintingFlags elidedFlags() {
  return OpPrintingFlags()
      .elideLargeElementsAttrs(/*largeElementLimit=*/32)
      .elideLargeResourceString(/*largeResourceLimit=*/0)
      .enableDebugInfo(/*enable=*/true, /*prettyForm=*/false);
}

void DumpAfterPass::runAfterPass(Pass *ran, Operation *op) {
  llvm::StringRef name = ran->getArgument();
  // Adaptors that only run other passes have no name.
  if (name.empty() || (pass != "all" && pass != name))
    return;
  std::string file;
  llvm::raw_string_ostream os(file);
  os << llvm::format("%03u-", ++counter) << name;
  if (auto symbol =
          op->getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName()))
    for (char c : "." + symbol.str())
      os << (llvm::isAlnum(c) ? c : c == '.' ? c : '_');
  os << ".mlir";
  llvm::SmallString<128> path(directory);
  llvm::sys::path::append(path, file);

  std::string text;
  llvm::raw_string_ostream(text) << OpWithFlags(op, elidedFlags()) << '\n';
  if (llvm::Error error = writeFile(path, text))
    emitError(op->getLoc()) << llvm::toString(std::move(error));
}

void DumpAfterPass::runAfterPassFailed(Pass *ran, Operation *op) {
  runAfterPass(ran, op);
}

} // namespace keratin
