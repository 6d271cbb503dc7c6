//===- Dumps.cpp - IR on its way to people --------------------------------===//
#include "codegen/Dumps.h"

#include "codegen/Link.h"

#include "mlir/IR/Operation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
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

/// The names of passes in `pipeline`, such as `a.module(b{c=1 d=2},f.func(e))`,
/// each once.
static std::vector<std::string> passesOf(llvm::StringRef pipeline) {
  std::vector<std::string> names;
  std::string name;
  unsigned options = 0; // how many braces are open
  for (char c : pipeline) {
    options += c == '{';
    if (options == 0 && llvm::is_contained({'(', ')', ','}, c)) {
      // In front of a parenthesis is the op that passes run on.
      if (c != '(' && !name.empty() && !llvm::is_contained(names, name))
        names.push_back(name);
      name.clear();
    } else if (options == 0) {
      name += c;
    }
    options -= c == '}';
  }
  return names;
}

llvm::Error checkDumpedPass(llvm::StringRef pass, PassManager &pm) {
  std::string pipeline;
  llvm::raw_string_ostream os(pipeline);
  pm.printAsTextualPipeline(os);
  std::vector<std::string> names = passesOf(pipeline);
  names.insert(names.begin(), "all");
  if (llvm::is_contained(names, pass))
    return llvm::Error::success();
  return llvm::createStringError("no pass '" + pass +
                                 "' to dump the IR after; there are " +
                                 llvm::join(names, ", "));
}

void DumpAfterPass::runAfterPass(Pass *ran, Operation *op) {
  llvm::StringRef name = ran->getArgument();
  // Adaptors that only run other passes have no name.
  if (name.empty() || (pass != "all" && pass != name))
    return;
  std::string file;
  llvm::raw_string_ostream os(file);
  os << llvm::format("%03u-", ++dumps.count) << name;
  if (auto symbol =
          op->getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName()))
    for (char c : "." + symbol.str())
      os << (llvm::isAlnum(c) ? c : c == '.' ? c : '_');
  os << ".mlir";
  llvm::SmallString<128> path(directory);
  llvm::sys::path::append(path, file);

  std::string text;
  llvm::raw_string_ostream(text) << OpWithFlags(op, elidedFlags()) << '\n';
  if (llvm::Error error = writeFile(path, text)) {
    std::string problem = llvm::toString(std::move(error));
    if (!dumps.hasFailed.exchange(true))
      emitError(op->getLoc()) << problem;
  }
}

void DumpAfterPass::runAfterPassFailed(Pass *ran, Operation *op) {
  runAfterPass(ran, op);
}

} // namespace keratin
