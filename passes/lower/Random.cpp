//===- Random.cpp - random numbers ----------------------------------------===//
#include "passes/lower/Lower.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <array>
#include <cmath>

using namespace mlir;

namespace keratin::lower {

namespace {

/// Philox 4x32-10: J. K. Salmon et al., Parallel random numbers: as easy as 1,
/// 2, 3, SC 2011.
class Philox {
public:
  Philox(OpBuilder &b, Location loc) : b(b), loc(loc) {}

  /// The low and the high half of an i64.
  std::pair<Value, Value> split(Value wide) {
    Value high = arith::ShRUIOp::create(b, loc, wide, constant64(32));
    return {narrow(wide), narrow(high)};
  }

  Value wordsAsWide(Value low, Value high) {
    Value shifted = arith::ShLIOp::create(b, loc, widen(high), constant64(32));
    return arith::OrIOp::create(b, loc, widen(low), shifted);
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
  Value constant64(int64_t value) {
    return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(value));
  }
  Value narrow(Value wide) {
    return arith::TruncIOp::create(b, loc, b.getI32Type(), wide);
  }
  Value widen(Value word) {
    return arith::ExtUIOp::create(b, loc, b.getI64Type(), word);
  }
  /// The product of two words, low half first.
  std::pair<Value, Value> product(Value word, uint32_t factor) {
    return split(
        arith::MulIOp::create(b, loc, widen(word), constant64(factor)));
  }
  Value mix(Value x, Value y, Value z) {
    Value xy = arith::XOrIOp::create(b, loc, x, y);
    return arith::XOrIOp::create(b, loc, xy, z);
  }
  Value bump(Value word, uint32_t step) {
    Value constant = arith::ConstantOp::create(
        b, loc, b.getI32IntegerAttr(static_cast<int32_t>(step)));
    return arith::AddIOp::create(b, loc, word, constant);
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
  if (!floating)
    return llvm::to_vector_of<Value>(words);
  SmallVector<Value> elements;
  if (floating.getWidth() == 64) {
    Philox philox(b, loc);
    for (int low : {0, 2})
      elements.push_back(unitFloat(
          b, loc, philox.wordsAsWide(words[low], words[low + 1]), floating));
    return elements;
  }
  for (Value word : words)
    elements.push_back(unitFloat(b, loc, word, floating));
  return elements;
}

/// One loop over the blocks gives all words of each, so that none is computed
/// twice; the words of one place follow each other in the result.
struct LowerRandom : Lowering<ktn::RandomOp> {
  using Lowering::Lowering;

  FailureOr<Value> lower(ktn::RandomOp op, Operands operands,
                         RankedTensorType type, OpBuilder &b) const override {
    Location loc = op.getLoc();
    SmallVector<OpFoldResult> sizes =
        sizesFromShape(b, loc, type, operands.getShape());
    OpFoldResult count = sizeProduct(b, loc, sizes);

    Type element = type.getElementType();
    int64_t parts = element.getIntOrFloatBitWidth() == 64 ? 2 : 4;
    OpFoldResult blocks =
        applySize(b, loc, b.getAffineSymbolExpr(0).ceilDiv(parts), {count});
    Value words =
        createBlocks(b, loc, element, parts, blocks, operands.getState());

    auto wordsType = tensorType(words);
    if (type.hasStaticShape() &&
        wordsType.getNumElements() == type.getNumElements())
      return createReshape(b, loc, words, type);
    return createParallel(
        b, loc, type, sizes, {}, {},
        [&](OpBuilder &b, Location loc, ValueRange) -> Value {
          Value position = arith::ConstantIndexOp::create(b, loc, 0);
          for (auto [axis, size] : llvm::enumerate(sizes)) {
            Value extent = getValueOrCreateConstantIndexOp(b, loc, size);
            Value index = linalg::IndexOp::create(b, loc, axis);
            position = arith::MulIOp::create(b, loc, position, extent);
            position = arith::AddIOp::create(b, loc, position, index);
          }
          return tensor::ExtractOp::create(b, loc, words, position);
        });
  }

private:
  static OpFoldResult sizeProduct(OpBuilder &b, Location loc,
                                  ArrayRef<OpFoldResult> sizes) {
    OpFoldResult product = b.getIndexAttr(1);
    for (OpFoldResult size : sizes)
      product =
          applySize(b, loc, b.getAffineSymbolExpr(0) * b.getAffineSymbolExpr(1),
                    {product, size});
    return product;
  }

  /// The elements of `blocks` blocks, `parts` of each.
  static Value createBlocks(OpBuilder &b, Location loc, Type element,
                            int64_t parts, OpFoldResult blocks, Value state) {
    std::optional<int64_t> known = getConstantIntValue(blocks);
    auto type =
        RankedTensorType::get({known.value_or(ShapedType::kDynamic)}, element);
    SmallVector<Value> outputs;
    for (int64_t part = 0; part < parts; ++part)
      outputs.push_back(emptyTensor(b, loc, type, {blocks}));
    SmallVector<Type> types(parts, type);
    SmallVector<AffineMap> maps(parts, b.getMultiDimIdentityMap(1));
    for (int64_t number : {1, 0}) // of the state: the key, then the call
      maps.insert(maps.begin(),
                  AffineMap::get(1, 0, b.getAffineConstantExpr(number)));
    auto generic = linalg::GenericOp::create(
        b, loc, types, ValueRange{state, state}, outputs, maps,
        {utils::IteratorType::parallel},
        [&](OpBuilder &b, Location loc, ValueRange args) {
          Value index = linalg::IndexOp::create(b, loc, 0);
          Philox philox(b, loc);
          auto [key0, key1] = philox.split(args[0]);
          auto [call0, call1] = philox.split(args[1]);
          auto [low, high] = philox.split(
              arith::IndexCastOp::create(b, loc, b.getI64Type(), index));
          std::array<Value, 4> words =
              philox.block({low, high, call0, call1}, {key0, key1});
          linalg::YieldOp::create(b, loc, elementsOf(b, loc, words, element));
        });
    return tensor::ConcatOp::create(b, loc, /*dim=*/0, generic.getResults());
  }
};

} // namespace

void populateRandom(const TypeConverter &converter,
                    RewritePatternSet &patterns) {
  patterns.add<LowerRandom>(converter, patterns.getContext());
}

} // namespace keratin::lower
