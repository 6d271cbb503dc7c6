//===- Bands.cpp - where turns of a loop over bands begin -----------------===//
#include "passes/Bands.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace keratin {

Value FirstRow::read(OpBuilder &b, Location loc, Value behind) const {
  Value each = arith::ConstantIndexOp::create(b, loc, factor);
  return b.createOrFold<arith::MulIOp>(loc, behind, each);
}

Value FirstRow::made(OpBuilder &b, Location loc, Value read) const {
  if (!most)
    return read;
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  Value row = b.createOrFold<arith::AddIOp>(loc, read, constant(-low));
  row = b.createOrFold<arith::MaxSIOp>(loc, row, constant(0));
  return b.createOrFold<arith::MinSIOp>(loc, row, constant(*most));
}

DictionaryAttr BandStart::toAttr(OpBuilder &b) const {
  SmallVector<int64_t> numbers;
  for (const FirstRow &step : steps)
    numbers.append({step.factor, step.low, step.most.value_or(-1)});
  return b.getDictionaryAttr(
      {b.getNamedAttr("bands", b.getI64IntegerAttr(bands)),
       b.getNamedAttr("steps", b.getDenseI64ArrayAttr(numbers)),
       b.getNamedAttr("apart", b.getI64IntegerAttr(apart)),
       b.getNamedAttr("moved", b.getI64IntegerAttr(moved))});
}

std::optional<BandStart> BandStart::of(DictionaryAttr fields) {
  BandStart start;
  for (auto [name, number] :
       {std::pair("bands", &start.bands), std::pair("apart", &start.apart),
        std::pair("moved", &start.moved)}) {
    auto field = fields.getAs<IntegerAttr>(name);
    if (!field || field.getInt() < 0)
      return std::nullopt;
    *number = field.getInt();
  }
  auto steps = fields.getAs<DenseI64ArrayAttr>("steps");
  if (!steps || steps.size() % 3 != 0 || start.moved > start.apart ||
      (steps.empty() && start.moved > 0))
    return std::nullopt;
  for (ArrayRef<int64_t> rest = steps; !rest.empty();
       rest = rest.drop_front(3)) {
    start.steps.push_back({rest[0], rest[1], std::nullopt});
    if (rest[2] >= 0)
      start.steps.back().most = rest[2];
  }
  return start;
}

} // namespace keratin
