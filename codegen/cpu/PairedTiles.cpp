//===- PairedTiles.cpp - tiles of sums of pairs ---------------------------===//
#include "codegen/cpu/PairedTiles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cmath>

using namespace mlir;

namespace keratin {

//===----------------------------------------------------------------------===//
// Whether, and how large
//===----------------------------------------------------------------------===//

bool canHavePairs(const VectorUnit &unit) {
  constexpr unsigned bits = 512, registers = 32;
  return unit.pairs && !unit.littleCode && unit.bits == bits &&
         unit.registers == registers;
}

int64_t costOfPairedRows(int64_t rows, int64_t height) {
  // So few take as long as more of them: each waits for its last product.
  constexpr int64_t fewestRows = 5;
  int64_t rest = rows % height;
  return rows - rest + (rest == 0 ? 0 : std::max(rest, fewestRows));
}

unsigned rowsOfPairedTile(int64_t rows, unsigned vectors,
                          const VectorUnit &unit) {
  // Beside sums there are three vectors of weights for each vector of columns,
  // and a pair of sums.
  int64_t most = (unit.registers - 3 * int64_t(vectors) - 2) / vectors;
  // Tiles of one height ask for weights evenly, of others the last one too
  // soon for what comes from memory.
  auto areEven = [&](int64_t height) {
    int64_t rest = rows % height;
    return rest == 0 || 4 * rest >= 3 * height;
  };
  int64_t best = std::min(most, rows);
  for (int64_t height = best; height > most / 2; --height) {
    int64_t cost = costOfPairedRows(rows, height);
    int64_t least = costOfPairedRows(rows, best);
    if (cost < least || (cost == least && areEven(height) && !areEven(best)))
      best = height;
  }
  return unsigned(best);
}

bool arePairsFaster(int64_t depth, int64_t columns, unsigned lanes,
                    const PairedCosts &costs) {
  double vectors = double(llvm::divideCeil(2 * columns, lanes)) / 2;
  double products = double(depth) * vectors;
  double inPairs = products * 2 / 3 * costs.tiles;
  return inPairs + costs.ofRow + costs.ofElement * double(depth) +
             costs.ofVector * vectors <
         costs.most * products;
}

bool canBePaired(Kernel &kernel, Value weights, const PairedPacking &packing) {
  auto bytes = size_t(packing.columns * packing.sums) * sizeof(float);
  ArrayRef<ElementsAttr> values = kernel.valuesOf(weights);
  return !values.empty() && llvm::all_of(values, [&](ElementsAttr value) {
    ArrayRef<char> elements = bytesOfElements(value);
    bool areOneNumber = elements.size() == sizeof(float);
    return (elements.size() == bytes && canBePaired(elements, packing)) ||
           (areOneNumber && canBePaired(elements, {1, 1, 1, true}));
  });
}

Value PairedTiles::constant(TypedAttr value) {
  return arith::ConstantOp::create(b, loc, value);
}

Value PairedTiles::real(double value) {
  return constant(b.getF32FloatAttr(float(value)));
}

/// A number, or a vector of it where `like` is one.
Value PairedTiles::numbers(TypedAttr value, Type like) {
  auto vector = dyn_cast<VectorType>(like);
  if (!vector)
    return constant(value);
  return constant(DenseElementsAttr::get(vector.clone(value.getType()), value));
}

Value PairedTiles::spread(Value scalar, Type vector) {
  return vector::BroadcastOp::create(b, loc, vector, scalar);
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

Value PairedTiles::widened(Value vector, unsigned width) {
  if (width == lanes)
    return vector;
  Value zeros = constant(b.getZeroAttr(vectorType()));
  return vector::InsertStridedSliceOp::create(
      b, loc, vector, zeros, ArrayRef<int64_t>{0}, ArrayRef<int64_t>{1});
}

/// The sum of the lanes: its halves, then those of that.
Value PairedTiles::joinLanes(Value vector) {
  for (int64_t half = lanes / 2; half > 0; half /= 2) {
    auto part = [&](int64_t from) -> Value {
      return vector::ExtractStridedSliceOp::create(
          b, loc, vector, ArrayRef<int64_t>{from}, ArrayRef<int64_t>{half},
          ArrayRef<int64_t>{1});
    };
    vector = arith::AddFOp::create(b, loc, part(0), part(half));
  }
  return vector::ExtractOp::create(b, loc, vector, ArrayRef<int64_t>{0});
}

/// Vectors after which the pairs of a step begin with the same lane.
static constexpr unsigned vectorsOfTurn = 3;

/// Adds `left` times `right` to `sum`, in one rounding where there is such.
static void addFused(OpBuilder &b, Location loc, Value &sum, Value left,
                     Value right) {
  auto fused = arith::FastMathFlagsAttr::get(b.getContext(),
                                             arith::FastMathFlags::contract);
  Value product = arith::MulFOp::create(b, loc, left, right, fused);
  sum = arith::AddFOp::create(b, loc, sum, product, fused);
}

void PairedTiles::addMeasures(Value vector, Value &squares, Value &largest) {
  addFused(b, loc, squares, vector, vector);
  auto bits = VectorType::get(lanes, b.getI32Type());
  Value magnitudes = arith::AndIOp::create(
      b, loc, vector::BitCastOp::create(b, loc, bits, vector),
      constant(DenseElementsAttr::get(bits, b.getI32IntegerAttr(INT32_MAX))));
  largest = arith::MaxUIOp::create(b, loc, largest, magnitudes);
}

/// Adds elements of a row to its measures so far, `vectorsOfTurn` vectors of
/// products of neighbours, one of squares and one of magnitudes: `whole`, and
/// of those `vector` are in pairs.
void PairedTiles::addVector(Value vector, Value whole, unsigned number,
                            Values &sums) {
  SmallVector<int64_t> neighbours;
  for (int64_t lane = 0; lane < lanes; ++lane)
    neighbours.push_back(lane ^ 1);
  Value swapped = vector::ShuffleOp::create(b, loc, vector, vector, neighbours);
  addFused(b, loc, sums[number], vector, swapped);
  addMeasures(whole, sums[vectorsOfTurn], sums[vectorsOfTurn + 1]);
}

PairedTiles::Measures PairedTiles::measure(Load load) {
  int64_t lanes = this->lanes;
  int64_t turn = lanes * vectorsOfTurn, whole = depth / turn * turn;
  int64_t inPairs = depth / stepOfPairs * stepOfPairs;
  Value zeros = constant(b.getZeroAttr(vectorType()));
  Values start(vectorsOfTurn + 1, zeros);
  start.push_back(
      constant(b.getZeroAttr(VectorType::get(lanes, b.getI32Type()))));
  Values all =
      emitLoop(b, loc, kernel.index(0), kernel.index(whole), kernel.index(turn),
               start, [&](Value place, ValueRange before) {
                 Values after(before);
                 for (unsigned number = 0; number < vectorsOfTurn; ++number) {
                   Value vector = load(plus(place, number * lanes), lanes);
                   addVector(vector, vector, number, after);
                 }
                 return after;
               });
  unsigned number = 0;
  for (int64_t place = whole; place < depth; place += lanes, ++number) {
    auto width = unsigned(std::min(lanes, depth - place));
    Value vector = widened(load(kernel.index(place), width), width);
    Value ofPairs = vector;
    if (place + width > inPairs) {
      // Not by a product: zero times infinity is no number.
      SmallVector<bool> isKept;
      for (int64_t lane = 0; lane < lanes; ++lane)
        isKept.push_back(place + lane < inPairs);
      Value mask = constant(DenseElementsAttr::get(
          VectorType::get(lanes, b.getI1Type()), isKept));
      ofPairs = arith::SelectOp::create(b, loc, mask, vector, zeros);
    }
    addVector(ofPairs, vector, number, all);
  }
  // Each product of neighbours is there twice.
  Value pairs;
  for (unsigned number = 0; number < vectorsOfTurn; ++number) {
    SmallVector<float> signs;
    for (int64_t lane = 0; lane < lanes; ++lane)
      signs.push_back(.5F * float(signOfPair(number * lanes + lane, turn)));
    Value part = arith::MulFOp::create(
        b, loc, all[number],
        constant(DenseElementsAttr::get(vectorType(), ArrayRef<float>(signs))));
    pairs = pairs ? arith::AddFOp::create(b, loc, pairs, part) : part;
  }
  Value largest = vector::ReductionOp::create(
      b, loc, vector::CombiningKind::MAXUI, all[vectorsOfTurn + 1]);
  return {joinLanes(pairs), joinLanes(all[vectorsOfTurn]), largest};
}

/// Bits of the mantissa of f32.
static constexpr int64_t mantissa = 23;

/// Two to the power whose exponent, as f32 has it, is `exponent`.
Value PairedTiles::power(Value exponent, Type reals) {
  Value shift = numbers(b.getI32IntegerAttr(mantissa), exponent.getType());
  return arith::BitcastOp::create(
      b, loc, reals, arith::ShLIOp::create(b, loc, exponent, shift));
}

/// What makes the largest magnitude one from 4 to 8, of a number that is not
/// tiny or huge, and what makes up for it: of zeros nothing is left.
PairedTiles::Factors PairedTiles::factorsOfLargest(const Measures &measures) {
  constexpr int64_t least = 3, most = 252, sum = 256;
  Type reals = measures.squares.getType();
  auto number = [&](int64_t value) {
    return numbers(b.getI32IntegerAttr(int32_t(value)),
                   measures.largest.getType());
  };
  Value exponent =
      arith::ShRUIOp::create(b, loc, measures.largest, number(mantissa));
  exponent = arith::MaxUIOp::create(b, loc, exponent, number(least));
  exponent = arith::MinUIOp::create(b, loc, exponent, number(most));
  Value factor =
      power(arith::SubIOp::create(b, loc, number(sum), exponent), reals);
  Value back = power(arith::SubIOp::create(b, loc, exponent, number(2)), reals);
  Value isZero = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                       measures.largest, number(0));
  Value zero = numbers(b.getF32FloatAttr(0), reals);
  return {factor, arith::SelectOp::create(b, loc, isZero, zero, back)};
}

PairedTiles::Factors PairedTiles::select(Value condition, Factors first,
                                         Factors second) {
  auto one = [&](Value x, Value y) -> Value {
    return arith::SelectOp::create(b, loc, condition, x, y);
  };
  return {one(first.first, second.first), one(first.second, second.second)};
}

/// Whether the squares are from `least` to `most`; not where they are none.
Value PairedTiles::isWithin(Value squares, double least, double most) {
  auto compare = [&](arith::CmpFPredicate predicate, double limit) {
    return arith::CmpFOp::create(
        b, loc, predicate, squares,
        numbers(b.getF32FloatAttr(float(limit)), squares.getType()));
  };
  return arith::AndIOp::create(b, loc,
                               compare(arith::CmpFPredicate::OGE, least),
                               compare(arith::CmpFPredicate::OLE, most));
}

Value PairedTiles::isLikeWeights(const Measures &measures) {
  constexpr double most = 16;
  auto depth = double(this->depth);
  return isWithin(measures.squares, depth / most, depth * most);
}

PairedTiles::Factors PairedTiles::factorsOf(const Measures &measures) {
  Value one = numbers(b.getF32FloatAttr(1), measures.squares.getType());
  return select(isLikeWeights(measures), {one, one},
                factorsOfLargest(measures));
}

PairedTiles::Factors PairedTiles::factorsOfColumns(const Measures &measures) {
  constexpr int64_t bias = 127;
  constexpr int usual = 80; // powers of two
  Type reals = measures.squares.getType();
  Type integers = measures.largest.getType();
  auto number = [&](int64_t value) {
    return numbers(b.getI32IntegerAttr(int32_t(value)), integers);
  };
  Value mean = arith::MulFOp::create(
      b, loc, measures.squares,
      numbers(b.getF32FloatAttr(1 / float(depth)), reals));
  Value exponent = arith::ShRUIOp::create(
      b, loc, arith::BitcastOp::create(b, loc, integers, mean),
      number(mantissa));
  Value half = arith::ShRSIOp::create(
      b, loc, arith::SubIOp::create(b, loc, exponent, number(bias)), number(1));
  Factors ofMean = {
      power(arith::SubIOp::create(b, loc, number(bias), half), reals),
      power(arith::AddIOp::create(b, loc, number(bias), half), reals)};
  Value isUsual =
      isWithin(measures.squares, std::ldexp(1, -usual), std::ldexp(1, usual));
  return select(isUsual, ofMean, factorsOfLargest(measures));
}

PairedTiles::Facts
PairedTiles::scaleRow(Load load, llvm::function_ref<void(Value, Value)> store) {
  auto [factor, back] = factorsOf(measure(load));
  Measures scaled = measure([&, factor = factor](Value place, unsigned width) {
    Value vector = load(place, width);
    vector =
        arith::MulFOp::create(b, loc, vector, spread(factor, vector.getType()));
    store(vector, place);
    return vector;
  });
  return {scaled.pairs, back};
}

PairedTiles::Facts PairedTiles::factsOf(const Measures &measures) {
  return {measures.pairs, real(1)};
}

static PairedTiles::Values placeOfFact(Kernel &kernel, ValueRange place,
                                       int64_t number) {
  PairedTiles::Values all(place);
  all.push_back(kernel.index(number));
  return all;
}

void PairedTiles::storeFacts(const Facts &facts, Value memory,
                             ValueRange place) {
  memref::StoreOp::create(b, loc, facts.subtracted, memory,
                          placeOfFact(kernel, place, 0));
  memref::StoreOp::create(b, loc, facts.back, memory,
                          placeOfFact(kernel, place, 1));
}

PairedTiles::Facts PairedTiles::loadFacts(Value memory, ValueRange place) {
  auto load = [&](int64_t number) -> Value {
    return memref::LoadOp::create(b, loc, memory,
                                  placeOfFact(kernel, place, number));
  };
  Value subtracted = load(0);
  return {subtracted, load(1)};
}

void PairedTiles::forVectors(int64_t length,
                             llvm::function_ref<void(Value, unsigned)> body) {
  int64_t whole = length / lanes * lanes;
  emitTurns(kernel, kernel.index(0), kernel.index(whole), lanes,
            [&](Value place) { body(place, lanes); });
  if (whole != length)
    body(kernel.index(whole), unsigned(length - whole));
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

Value PairedTiles::behind(Value address, Value element) {
  Value number = arith::IndexCastOp::create(b, loc, b.getI64Type(), element);
  return LLVM::GEPOp::create(b, loc, address.getType(), b.getF32Type(), address,
                             ArrayRef<LLVM::GEPArg>{number});
}

namespace {
/// What changes the sums of a tile, as one piece of assembly. Of instructions
/// that it may order a compiler reads elements once for several of them, or
/// puts off what is to be done with them, and runs out of registers; and one
/// piece is compiled in a fraction of the time of one for each sum.
class TileAssembly {
public:
  /// Elements are those at `rows`, an address, and behind it.
  TileAssembly(Kernel &kernel, const PairedTiles::Tile &tile, Value rows,
               PairedTiles::Values &sums)
      : kernel(kernel), tile(tile), sums(sums), inputs{rows} {}

  /// The name of a vector of weights, one more input.
  std::string weights(Value vector) {
    inputs.push_back(vector);
    return operand(sums.size() + inputs.size() - 1);
  }

  /// Adds the products of two elements with their weights to a sum, of which
  /// one multiplication has so much more than is subtracted in the end.
  void addPair(size_t number, int64_t place, StringRef weight, StringRef other,
               bool isMinus) {
    StringRef add = isMinus ? "vsubps" : "vaddps";
    std::string left = temporary(number, 0), right = temporary(number, 1);
    line(add, element(number, place), other, left);
    line(add, element(number, place + 1), weight, right);
    line(isMinus ? "vfnmadd231ps" : "vfmadd231ps", left, right,
         operand(number));
  }

  void addProduct(size_t number, int64_t place, StringRef weight) {
    line("vfmadd231ps", element(number, place), weight, operand(number));
  }

  /// Replaces the sums by what the instructions make of them.
  void emit() {
    OpBuilder &b = kernel.builder();
    PairedTiles::Values operands = inputs;
    append_range(operands, sums);
    SmallVector<std::string> constraints(sums.size(), "=v");
    constraints.push_back("r");
    constraints.append(inputs.size() - 1, "v");
    for (size_t number = 0; number < sums.size(); ++number)
      constraints.push_back(std::to_string(number));
    for (StringRef number : temporaries)
      constraints.push_back(("~{zmm" + number + "}").str());
    constraints.push_back("~{memory}");
    Type result = sums.front().getType();
    if (sums.size() != 1)
      result = LLVM::LLVMStructType::getLiteral(
          b.getContext(), llvm::to_vector(ValueRange(sums).getTypes()));
    // It reads memory behind an address, which is an effect to MLIR.
    Value all = LLVM::InlineAsmOp::create(
                    b, kernel.loc(), result, operands, text,
                    llvm::join(constraints, ","), /*has_side_effects=*/true,
                    /*is_align_stack=*/false, LLVM::TailCallKind::None,
                    /*asm_dialect=*/{}, /*operand_attrs=*/{})
                    .getRes();
    for (auto [number, sum] : llvm::enumerate(sums))
      sum = sums.size() == 1 ? all
                             : LLVM::ExtractValueOp::create(
                                   b, kernel.loc(), all, int64_t(number));
  }

private:
  static constexpr StringLiteral temporaries[] = {"30", "31"};

  unsigned lanesOf(size_t number) const {
    return tile.lanes[number % tile.lanes.size()];
  }
  static std::string operand(size_t number) {
    return "$" + std::to_string(number);
  }
  /// One of two registers beside those of sums and weights (rowsOfPairedTile),
  /// as wide as the sum.
  std::string temporary(size_t number, unsigned which) const {
    StringRef kind = lanesOf(number) == 16 ? "%zmm" : "%ymm";
    return (kind + temporaries[which]).str();
  }
  /// An element of the row of the sum, in all lanes.
  std::string element(size_t number, int64_t place) const {
    auto row = int64_t(number / tile.lanes.size());
    int64_t offset = (row * tile.stride + place) * int64_t(sizeof(float));
    return std::to_string(offset) + "(" + operand(sums.size()) + "){1to" +
           std::to_string(lanesOf(number)) + "}";
  }
  void line(StringRef name, StringRef first, StringRef second, StringRef last) {
    if (!text.empty())
      text += "\n\t";
    text += (name + " " + first + ", " + second + ", " + last).str();
  }

  Kernel &kernel;
  const PairedTiles::Tile &tile;
  PairedTiles::Values &sums;
  PairedTiles::Values inputs;
  std::string text;
};
} // namespace

/// Adds the products of a step. Sums of pairs come beside products as they are,
/// so that neither kind of unit waits: a row has its product a little later
/// than its pair.
void PairedTiles::addStep(const Tile &tile, Value step, Weights weights,
                          Values &sums) {
  constexpr size_t later = 4;
  size_t vectors = tile.lanes.size();
  Value rows = behind(tile.rows, step);
  for (int64_t half : {0, 1}) {
    int64_t first = 2 * half, single = 4 + half;
    TileAssembly assembly(kernel, tile, rows, sums);
    auto weightsOf = [&](int64_t number) {
      SmallVector<std::string> names;
      for (unsigned vector = 0; vector < vectors; ++vector)
        names.push_back(assembly.weights(weights(plus(step, number), vector)));
      return names;
    };
    SmallVector<std::string> ofFirst = weightsOf(first);
    SmallVector<std::string> ofSecond = weightsOf(first + 1);
    SmallVector<std::string> ofSingle = weightsOf(single);
    for (size_t turn = 0; turn < sums.size() + later; ++turn) {
      if (turn < sums.size())
        assembly.addPair(turn, first, ofFirst[turn % vectors],
                         ofSecond[turn % vectors], /*isMinus=*/half == 1);
      if (turn >= later)
        assembly.addProduct(turn - later, single,
                            ofSingle[(turn - later) % vectors]);
    }
    assembly.emit();
  }
}

PairedTiles::Values
PairedTiles::multiply(const Tile &tile, Weights weights,
                      llvm::function_ref<void(Value)> beside) {
  auto vectors = unsigned(tile.lanes.size());
  Values start;
  for (unsigned row = 0; row < tile.height; ++row)
    for (unsigned vector = 0; vector < vectors; ++vector)
      start.push_back(row == 0 ? weights(kernel.index(depth), vector)
                               : start[vector]);
  int64_t inPairs = depth / stepOfPairs * stepOfPairs;
  Values sums = emitLoop(b, loc, kernel.index(0), kernel.index(inPairs),
                         kernel.index(stepOfPairs), start,
                         [&](Value step, ValueRange before) {
                           Values after(before);
                           beside(step);
                           addStep(tile, step, weights, after);
                           return after;
                         });
  for (int64_t number = inPairs; number < depth; ++number) {
    Value place = kernel.index(number);
    TileAssembly assembly(kernel, tile, behind(tile.rows, place), sums);
    SmallVector<std::string> factors;
    for (unsigned vector = 0; vector < vectors; ++vector)
      factors.push_back(assembly.weights(weights(place, vector)));
    for (size_t sum = 0; sum < sums.size(); ++sum)
      assembly.addProduct(sum, 0, factors[sum % vectors]);
    assembly.emit();
  }
  return sums;
}

Value PairedTiles::complete(Value sum, Value factors, const Facts &facts) {
  Type type = sum.getType();
  sum = arith::SubFOp::create(b, loc, sum, spread(facts.subtracted, type));
  factors = arith::MulFOp::create(b, loc, factors, spread(facts.back, type));
  return arith::MulFOp::create(b, loc, sum, factors);
}

} // namespace keratin
