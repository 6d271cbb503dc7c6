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
  OpBuilder &b = kernel.builder();
  Location loc = kernel.loc();
  if (loop == outer && !inner)
    return kernel.share(extent, step);
  if (loop != outer && loop != inner)
    return {kernel.index(0), extent};
  auto add = [&](Value x, int64_t y) {
    return b.createOrFold<arith::AddIOp>(loc, x, kernel.index(y));
  };
  auto divide = [&](Value x, int64_t y) {
    return b.createOrFold<arith::DivUIOp>(loc, x, kernel.index(y));
  };
  Value from, to;
  if (loop == outer) {
    Value turns = divide(add(extent, step - 1), step);
    of = kernel.share(
        b.createOrFold<arith::MulIOp>(loc, turns, kernel.index(width)), 1);
    from = divide(of.first, width);
    to = divide(add(of.second, width - 1), width);
  } else {
    from = clamped(of.first);
    to = clamped(of.second);
  }
  if (step == 1)
    return {from, to};
  auto at = [&](Value turn) -> Value {
    Value begin = arith::MulIOp::create(b, loc, turn, kernel.index(step));
    return arith::MinUIOp::create(b, loc, begin, extent);
  };
  return {at(from), at(to)};
}

/// Where the inner loop is at a turn of both: at one of its own, or an end.
Value SharedNest::clamped(Value turn) {
  OpBuilder &b = kernel.builder();
  Location loc = kernel.loc();
  Value start = arith::MulIOp::create(b, loc, place, kernel.index(width));
  turn = arith::SubIOp::create(b, loc, turn, start);
  turn = arith::MaxSIOp::create(b, loc, turn, kernel.index(0));
  return arith::MinSIOp::create(b, loc, turn, kernel.index(width));
}

void SharedNest::enter(unsigned loop, Value at) {
  if (loop == outer)
    place = at;
}

} // namespace keratin
