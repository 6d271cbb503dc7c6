//===- KernelParts.cpp - kernels of which a call does a part --------------===//
//
// Who calls says from which part on, up to which, and how many there are in
// all; shares of loops follow from that, whatever the number.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/Kernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"

#include <set>

using namespace mlir;

namespace keratin {

void Kernel::allowParts() {
  inParts = true;
  mostParts = 1;
  Block &entry = target.front();
  SmallVector<Type> types(target.getArgumentTypes());
  for (unsigned number = 0; number < 3; ++number) {
    entry.addArgument(b.getIndexType(), location);
    types.push_back(b.getIndexType());
  }
  target.setType(b.getFunctionType(types, {}));
}

void Kernel::allowRows(int64_t rows, int64_t parts, int64_t unit) {
  rowsToShare = rows;
  partsOfRows = parts;
  rowsOfUnit = unit;
  allowParts();
}

SmallVector<int64_t> Kernel::rowsOfCalls() const {
  auto units = int64_t(llvm::divideCeil(rowsToShare, rowsOfUnit));
  auto boundary = [&](int64_t part) {
    return std::min(units * part / partsOfRows * rowsOfUnit, rowsToShare);
  };
  std::set<int64_t> counts;
  for (int64_t end = 1; end <= partsOfRows; ++end)
    for (int64_t begin = 0; begin < end; ++begin)
      counts.insert(boundary(end) - boundary(begin));
  return {counts.begin(), counts.end()};
}

void Kernel::allowTurns(int64_t count, int64_t parts) {
  assert(inParts && "one call does all turns");
  sharesOtherwise = true;
  turns = count;
  enoughParts = std::min(enoughParts, parts);
  auto attrs = b.getDictionaryAttr(b.getNamedAttr(turnAttr, b.getUnitAttr()));
  (void)target.insertArgument(target.getNumArguments() - 3, b.getIndexType(),
                              attrs, location);
}

Value Kernel::isTurn(int64_t number) {
  return arith::CmpIOp::create(b, location, arith::CmpIPredicate::eq,
                               target.getArguments().take_back(4).front(),
                               index(number));
}

Value Kernel::doesAllTurns() { return isTurn(0); }

void Kernel::emitTurn(int64_t number, llvm::function_ref<void()> body) {
  Value doesIt =
      arith::OrIOp::create(b, location, doesAllTurns(), isTurn(number));
  auto branch =
      scf::IfOp::create(b, location, doesIt, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  body();
}

bool Kernel::hasSharedColumns(Value tensor) const {
  while (auto pad = tensor.getDefiningOp<tensor::PadOp>())
    tensor = pad.getSource();
  auto argument = dyn_cast<BlockArgument>(tensor);
  return argument && sharedColumns.contains(argument.getArgNumber());
}

std::optional<unsigned> Kernel::pickShared(ArrayRef<int64_t> turns) const {
  if (!inParts)
    return std::nullopt;
  constexpr int64_t forMany = 16, forSome = 8;
  const auto *outer = llvm::find_if(turns, [](int64_t number) {
    return !ShapedType::isDynamic(number) && number >= forMany;
  });
  if (outer == turns.end()) {
    outer = llvm::max_element(turns);
    const auto *unknown = llvm::find(turns, ShapedType::kDynamic);
    if (unknown != turns.end() && (outer == turns.end() || *outer < forSome))
      outer = unknown;
  }
  if (outer == turns.end() || (!ShapedType::isDynamic(*outer) && *outer < 2))
    return std::nullopt;
  return outer - turns.begin();
}

std::pair<Value, Value> Kernel::shareRows() {
  sharesByRows = true;
  return shareTurns(index(rowsToShare), rowsOfUnit);
}

std::pair<Value, Value> Kernel::share(Value extent, int64_t step) {
  if (!inParts)
    return {index(0), extent};
  sharesOtherwise = true;
  return shareTurns(extent, step);
}

std::pair<Value, Value> Kernel::shareTurns(Value extent, int64_t step) {
  std::optional<int64_t> known = getConstantIntValue(extent);
  constexpr int64_t manyParts = 64;
  int64_t knownTurns = known ? llvm::divideCeil(*known, step) : manyParts;
  mostParts = std::max(mostParts, knownTurns);
  Value turns = index(knownTurns), tile = index(step), most = index(step - 1);
  // Outside of loops, if the extent is known there.
  OpBuilder::InsertionGuard guard(b);
  Operation *last = extent.getDefiningOp();
  for (Value constant : {turns, tile, most})
    if (constant.getDefiningOp()->getBlock() == last->getBlock() &&
        last->isBeforeInBlock(constant.getDefiningOp()))
      last = constant.getDefiningOp();
  b.setInsertionPointAfter(last);
  if (!known)
    turns = arith::DivUIOp::create(
        b, location, arith::AddIOp::create(b, location, extent, most), tile);
  ValueRange arguments = target.getArguments().take_back(3);
  auto boundary = [&](Value part) -> Value {
    Value turn = arith::MulIOp::create(b, location, turns, part);
    turn = arith::DivUIOp::create(b, location, turn, arguments[2]);
    return arith::MulIOp::create(b, location, turn, tile);
  };
  Value from = boundary(arguments[0]), to = boundary(arguments[1]);
  return {from, arith::MinUIOp::create(b, location, to, extent)};
}

void Kernel::emitOnce(llvm::function_ref<void()> body, bool first) {
  if (!inParts)
    return body();
  auto [from, to] = share(index(1), 1);
  if (first) {
    from = arith::MinUIOp::create(b, location, target.getArguments().end()[-3],
                                  index(1));
    to = index(1);
  }
  emitLoop(b, location, from, to, index(1), {}, [&](Value, ValueRange) {
    body();
    return SmallVector<Value>();
  });
}

} // namespace keratin
