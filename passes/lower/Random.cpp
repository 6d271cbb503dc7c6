//===- Random.cpp - random numbers ----------------------------------------===//
#include "passes/lower/Lower.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <array>
#include <cmath>

using namespace mlir;

namespace keratin::lower {

namespace {

/// Philox 4x32-10: J. K. Salmon et al., Parallel random numbers: as easy as 1,
/// 2, 3, SC 2011. A word is the lower half of an i64 whose upper half is
/// anything, from one multiplication to the next: so a lane of a vector
/// multiplies, shifts and mixes without being narrowed and widened each time.
class Philox {
public:
  Philox(OpBuilder &b, Location loc) : b(b), loc(loc) {}

  /// The low and the high half of an i64.
  std::pair<Value, Value> split(Value wide) {
    return {wide, arith::ShRUIOp::create(b, loc, wide, constant(32))};
  }

  /// Two words as the i64 of which they are the halves.
  Value join(Value low, Value high) {
    Value shifted = arith::ShLIOp::create(b, loc, high, constant(32));
    return arith::OrIOp::create(b, loc, lower(low), shifted);
  }

  /// A word as i32.
  Value narrow(Value word) {
    return arith::TruncIOp::create(b, loc, b.getI32Type(), word);
  }

  /// The words of one block.
  std::array<Value, 4> block(std::array<Value, 4> counter,
                             std::array<Value, 2> key) {
    constexpr int rounds = 10;
    for (int round = 0; round < rounds; ++round) {
      auto [low0, high0] = product(counter[0], 0xD2511F53);
      auto [low1, high1] = product(counter[2], 0xCD9E8D57);
      counter = {mix(high1, counter[1], key[0]), low1,
                 mix(high0, counter[3], key[1]), low0};
      key = {bump(key[0], 0x9E3779B9), bump(key[1], 0xBB67AE85)};
    }
    return counter;
  }

private:
  Value constant(int64_t value) {
    return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(value));
  }
  Value lower(Value word) {
    return arith::AndIOp::create(b, loc, word, constant(0xFFFFFFFF));
  }
  /// The product of two words, low half first.
  std::pair<Value, Value> product(Value word, uint32_t factor) {
    return split(arith::MulIOp::create(b, loc, lower(word), constant(factor)));
  }
  Value mix(Value x, Value y, Value z) {
    Value xy = arith::XOrIOp::create(b, loc, x, y);
    return arith::XOrIOp::create(b, loc, xy, z);
  }
  Value bump(Value word, uint32_t step) {
    return arith::AddIOp::create(b, loc, word, constant(step));
  }

  OpBuilder &b;
  Location loc;
};

/// The upper bits of the integer `bits`, as many as the significand of `type`
/// holds, as a fraction of their range.
Value unitFloat(OpBuilder &b, Location loc, Value bits, FloatType type) {
  auto integer = cast<IntegerType>(bits.getType());
  int precision = APFloat::semanticsPrecision(type.getFloatSemantics());
  Value shift = arith::ConstantOp::create(
      b, loc, b.getIntegerAttr(integer, integer.getWidth() - precision));
  Value kept = arith::ShRUIOp::create(b, loc, bits, shift);
  // Exact at this width; so is the narrowing.
  FloatType wide = integer.getWidth() == 64 ? cast<FloatType>(b.getF64Type())
                                            : cast<FloatType>(b.getF32Type());
  Value count = arith::SIToFPOp::create(b, loc, wide, kept);
  Value scale = arith::ConstantOp::create(
      b, loc, b.getFloatAttr(wide, std::ldexp(1.0, -precision)));
  Value unit = arith::MulFOp::create(b, loc, count, scale);
  return wide == type ? unit : arith::TruncFOp::create(b, loc, type, unit);
}

/// The elements that one block gives.
SmallVector<Value> elementsOf(OpBuilder &b, Location loc,
                              const std::array<Value, 4> &words, Type type) {
  auto floating = dyn_cast<FloatType>(type);
  Philox philox(b, loc);
  SmallVector<Value> elements;
  if (floating && floating.getWidth() == 64) {
    for (int low : {0, 2})
      elements.push_back(
          unitFloat(b, loc, philox.join(words[low], words[low + 1]), floating));
    return elements;
  }
  for (Value word : words) {
    Value narrow = philox.narrow(word);
    elements.push_back(floating ? unitFloat(b, loc, narrow, floating) : narrow);
  }
  return elements;
}

/// The number of elements that one block gives.
int64_t elementsPerBlock(Type element) {
  return element.getIntOrFloatBitWidth() == 64 ? 2 : 4;
}

/// The elements of block `index` of a sequence; `state` is the key and the
/// call.
SmallVector<Value> blockAt(OpBuilder &b, Location loc, Value index,
                           ValueRange state, Type element) {
  Philox philox(b, loc);
  auto [key0, key1] = philox.split(state[0]);
  auto [call0, call1] = philox.split(state[1]);
  auto [low, high] =
      philox.split(arith::IndexCastOp::create(b, loc, b.getI64Type(), index));
  return elementsOf(
      b, loc, philox.block({low, high, call0, call1}, {key0, key1}), element);
}

/// The maps that read the key and the call in each of `loops` loops.
SmallVector<AffineMap> stateMaps(OpBuilder &b, unsigned loops) {
  return {AffineMap::get(loops, 0, b.getAffineConstantExpr(0)),
          AffineMap::get(loops, 0, b.getAffineConstantExpr(1))};
}

/// The position of the present element among all, row by row.
Value linearPosition(OpBuilder &b, Location loc, ArrayRef<OpFoldResult> sizes) {
  Value position = arith::ConstantIndexOp::create(b, loc, 0);
  for (auto [axis, size] : llvm::enumerate(sizes)) {
    Value extent = getValueOrCreateConstantIndexOp(b, loc, size);
    Value index = linalg::IndexOp::create(b, loc, axis);
    position = arith::MulIOp::create(b, loc, position, extent);
    position = arith::AddIOp::create(b, loc, position, index);
  }
  return position;
}

/// Element i of n is number i / m of block i mod m, where m = ceil(n / p) and
/// each block gives p.
struct LowerRandom : Lowering<ktn::RandomOp> {
  using Lowering::Lowering;

  FailureOr<Value> lower(ktn::RandomOp op, Operands operands,
                         RankedTensorType type, OpBuilder &b) const override {
    if (type.hasStaticShape())
      return lowerStatic(op.getLoc(), operands.getState(), type, b);
    return lowerDynamic(
        op.getLoc(), operands.getState(), type,
        sizesFromShape(b, op.getLoc(), type, operands.getShape()), b);
  }

private:
  /// One loop over the blocks gives all elements of each, so that no block is
  /// computed twice; those of one number follow each other in the result.
  static Value lowerStatic(Location loc, Value state, RankedTensorType type,
                           OpBuilder &b) {
    Type element = type.getElementType();
    int64_t parts = elementsPerBlock(element), count = type.getNumElements();
    auto blocks = RankedTensorType::get(
        {static_cast<int64_t>(llvm::divideCeil(count, parts))}, element);
    SmallVector<Value> outputs;
    for (int64_t part = 0; part < parts; ++part)
      outputs.push_back(tensor::EmptyOp::create(b, loc, blocks, ValueRange()));
    SmallVector<Type> types(parts, blocks);
    SmallVector<AffineMap> maps = stateMaps(b, 1);
    maps.append(parts, b.getMultiDimIdentityMap(1));
    auto generic = linalg::GenericOp::create(
        b, loc, types, ValueRange{state, state}, outputs, maps,
        {utils::IteratorType::parallel},
        [&](OpBuilder &b, Location loc, ValueRange args) {
          Value index = linalg::IndexOp::create(b, loc, 0);
          linalg::YieldOp::create(
              b, loc, blockAt(b, loc, index, args.take_front(2), element));
        });
    // Insertions are made in place, and a slice in front is a view.
    int64_t extent = blocks.getNumElements();
    OpFoldResult one = b.getIndexAttr(1);
    Value all = tensor::EmptyOp::create(b, loc, {parts * extent}, element);
    for (auto [part, numbers] : llvm::enumerate(generic.getResults())) {
      OpFoldResult begin = b.getIndexAttr(static_cast<int64_t>(part) * extent);
      all = tensor::InsertSliceOp::create(b, loc, numbers, all, {begin},
                                          {b.getIndexAttr(extent)}, {one});
    }
    if (parts * extent != count)
      all = tensor::ExtractSliceOp::create(b, loc, all, {b.getIndexAttr(0)},
                                           {b.getIndexAttr(count)}, {one});
    return createReshape(b, loc, all, type);
  }

  /// The number of blocks is no multiple of the batch, so no tensor can have
  /// it: each element computes its block.
  static Value lowerDynamic(Location loc, Value state, RankedTensorType type,
                            ArrayRef<OpFoldResult> sizes, OpBuilder &b) {
    Type element = type.getElementType();
    int64_t parts = elementsPerBlock(element);
    OpFoldResult count = b.getIndexAttr(1);
    for (OpFoldResult size : sizes)
      count =
          applySize(b, loc, b.getAffineSymbolExpr(0) * b.getAffineSymbolExpr(1),
                    {count, size});
    SmallVector<Value> begins; // the first element of each number
    for (int64_t part = 0; part < parts; ++part)
      begins.push_back(getValueOrCreateConstantIndexOp(
          b, loc,
          applySize(b, loc, b.getAffineSymbolExpr(0).ceilDiv(parts) * part,
                    {count})));
    return createParallel(
        b, loc, type, sizes, {state, state}, stateMaps(b, type.getRank()),
        [&](OpBuilder &b, Location loc, ValueRange args) -> Value {
          Value position = linearPosition(b, loc, sizes);
          SmallVector<Value> isPast;
          Value block = position;
          for (Value begin : ArrayRef(begins).drop_front()) {
            isPast.push_back(arith::CmpIOp::create(
                b, loc, arith::CmpIPredicate::sge, position, begin));
            Value inPart = arith::SubIOp::create(b, loc, position, begin);
            block =
                arith::SelectOp::create(b, loc, isPast.back(), inPart, block);
          }
          SmallVector<Value> elements =
              blockAt(b, loc, block, args.take_front(2), element);
          Value chosen = elements[0];
          for (auto [past, value] :
               llvm::zip_equal(isPast, ArrayRef(elements).drop_front()))
            chosen = arith::SelectOp::create(b, loc, past, value, chosen);
          return chosen;
        });
  }
};

} // namespace

void populateRandom(const TypeConverter &converter,
                    RewritePatternSet &patterns) {
  patterns.add<LowerRandom>(converter, patterns.getContext());
}

} // namespace keratin::lower
