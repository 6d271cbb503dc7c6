//===- SharedNest.cpp - nested loops that threads share -------------------===//
#include "codegen/cpu/SharedNest.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace keratin {

std::optional<unsigned> pickSecondLoop(ArrayRef<int64_t> turns,
                                       unsigned first) {
  constexpr int64_t many = 32, some = 8, evenly = 4;
  int64_t own = turns[first];
  if (!ShapedType::isDynamic(own) &&
      (own < 2 || own >= many || (own >= some && own % evenly == 0)))
    return std::nullopt;
  std::optional<unsigned> second;
  int64_t most = 1;
  for (auto [number, count] : llvm::enumerate(turns))
    if (number != first && count > most) {
      second = number;
      most = count;
    }
  return second;
}

std::optional<unsigned> pickKnownLoop(ArrayRef<int64_t> turns) {
  constexpr int64_t enough = 16;
  // What is not known counts as less than any.
  const auto *most = llvm::max_element(turns);
  if (most == turns.end() || *most < 2)
    return std::nullopt;
  for (const int64_t &second : turns)
    if (&second != most && second >= 2 && *most * second >= enough)
      return most - turns.begin();
  return std::nullopt;
}

Value countTurns(Kernel &kernel, Value extent, int64_t step, int64_t width) {
  OpBuilder &b = kernel.builder();
  Location loc = kernel.loc();
  auto end = b.createOrFold<arith::AddIOp>(loc, extent, kernel.index(step - 1));
  auto turns = b.createOrFold<arith::DivUIOp>(loc, end, kernel.index(step));
  return b.createOrFold<arith::MulIOp>(loc, turns, kernel.index(width));
}

std::pair<Value, Value> placesOfTurns(Kernel &kernel,
                                      std::pair<Value, Value> turns,
                                      int64_t step, Value extent) {
  if (step == 1)
    return turns;
  OpBuilder &b = kernel.builder();
  Location loc = kernel.loc();
  auto place = [&](Value turn) -> Value {
    Value at = arith::MulIOp::create(b, loc, turn, kernel.index(step));
    return arith::MinUIOp::create(b, loc, at, extent);
  };
  Value from = place(turns.first);
  return {from, place(turns.second)};
}

Value turnOfInner(Kernel &kernel, Value turn, Value around, int64_t width) {
  OpBuilder &b = kernel.builder();
  Location loc = kernel.loc();
  Value start = arith::MulIOp::create(b, loc, around, kernel.index(width));
  turn = arith::SubIOp::create(b, loc, turn, start);
  turn = arith::MaxSIOp::create(b, loc, turn, kernel.index(0));
  return arith::MinSIOp::create(b, loc, turn, kernel.index(width));
}

SharedNest::SharedNest(Kernel &kernel, ArrayRef<int64_t> turns)
    : kernel(kernel), outer(kernel.pickShared(turns)) {
  if (!outer)
    return;
  if (ShapedType::isDynamic(turns[*outer]))
    outer = pickKnownLoop(turns).value_or(*outer);
  inner = pickSecondLoop(turns, *outer);
  if (!inner)
    return;
  if (*inner < *outer)
    std::swap(outer, inner);
  // One that is not known is around the other, or is not shared.
  if (ShapedType::isDynamic(turns[*inner]))
    outer = std::exchange(inner, std::nullopt);
  else
    width = turns[*inner];
}

std::pair<Value, Value> SharedNest::range(unsigned loop, Value extent,
                                          int64_t step) {
  if (loop == outer && !inner)
    return kernel.share(extent, step);
  if (loop != outer && loop != inner)
    return {kernel.index(0), extent};
  std::pair<Value, Value> turns;
  if (loop == outer) {
    OpBuilder &b = kernel.builder();
    of = kernel.share(countTurns(kernel, extent, step, width), 1);
    turns.first = b.createOrFold<arith::DivUIOp>(kernel.loc(), of.first,
                                                 kernel.index(width));
    turns.second = countTurns(kernel, of.second, width, 1);
  } else {
    turns.first = turnOfInner(kernel, of.first, place, width);
    turns.second = turnOfInner(kernel, of.second, place, width);
  }
  return placesOfTurns(kernel, turns, step, extent);
}

void SharedNest::enter(unsigned loop, Value at) {
  if (loop == outer)
    place = at;
}

} // namespace keratin
