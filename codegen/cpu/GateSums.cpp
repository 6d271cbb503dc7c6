//===- GateSums.cpp - sums of gates in vector registers -------------------===//
#include "codegen/cpu/DotLanes.h"
#include "codegen/cpu/GateLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;

namespace keratin {

/// The initial sums: rows by gates by columns, all of whole vectors, since
/// blocks of weights hold zeros after their last unit.
GateEmitter::Sums GateEmitter::startSums() {
  Sums sums;
  OpOperand *init = root.getDpsInitOperand(0);
  for (unsigned row = 0; row < rows; ++row)
    for (unsigned number = 0; number < gates; ++number)
      for (unsigned column = 0; column < columns; ++column) {
        Position place(
            ArrayRef(point(row, number, column)).take_front(lane + 1));
        sums.push_back(
            reader.materialize(reader.read(init->get(), place, lanes), lanes));
      }
  return sums;
}

/// How many steps of the reduction a turn of its loop has. The end of a loop of
/// some 30 turns is foreseen, that of a longer one costs each tile some 20
/// cycles.
int64_t GateEmitter::stepsOfTurn() {
  constexpr int64_t mostOperations = 96;
  int64_t extent = staticLoopExtent(root, reductions.back());
  if (ShapedType::isDynamic(extent))
    return 1;
  int64_t gatesOfStep = packing24 ? 1 : gates;
  int64_t bitsOfStep =
      int64_t(gatesOfStep * columns * lanes) *
      getElementTypeOrSelf(weights->get()).getIntOrFloatBitWidth();
  if (dots != DotUnit::None) {
    extent /= 2;
    bitsOfStep *= 2;
  }
  int64_t most = std::min(
      {mostSteps, mostOperations / int64_t(rows * gatesOfStep * columns),
       mostBytes / (bitsOfStep / 8)});
  int64_t steps = 1;
  while (2 * steps <= most && extent % (2 * steps) == 0)
    steps *= 2;
  return steps;
}

GateEmitter::Sums GateEmitter::reduce(ArrayRef<unsigned> loops,
                                      ValueRange sums) {
  if (loops.empty() && packing24)
    return step24(sums);
  if (loops.empty())
    return dots == DotUnit::None ? step(sums) : stepOfPairs(sums);
  bool isLast = loops.size() == 1;
  bool byPairs = isLast && dots != DotUnit::None;
  int64_t width = byPairs ? 2 : 1;
  int64_t turn = width * (isLast ? stepsOfTurn() : 1);
  Value end = kernel.loopExtent(root, loops[0]);
  bool isOdd = byPairs && staticLoopExtent(root, loops[0]) % 2 != 0;
  if (isOdd)
    end = kernel.index(staticLoopExtent(root, loops[0]) - 1);
  Sums all =
      emitLoop(b, loc, kernel.index(0), end, kernel.index(turn), sums,
               [&](Value iv, ValueRange before) {
                 Sums inner(before);
                 for (int64_t number = 0; number < turn; number += width) {
                   LaneReader::Scope scope(reader);
                   reader.bind(loops[0], kernel.plus(iv, kernel.index(number)));
                   inner = reduce(loops.drop_front(), inner);
                 }
                 return inner;
               });
  if (!isOdd)
    return all;
  LaneReader::Scope scope(reader);
  reader.bind(loops[0], end);
  return stepOfPairs(all, /*isHalf=*/true);
}

/// All rows, gates and columns of a step: each of the fewer, a row's scalar or
/// weights, is in a register for all of the others.
void GateEmitter::forEachSum(
    llvm::function_ref<void(unsigned, unsigned, unsigned)> body) {
  bool byRows = rows > gates * columns;
  for (unsigned outer = 0; outer < (byRows ? rows : gates * columns); ++outer)
    for (unsigned inner = 0; inner < (byRows ? gates * columns : rows);
         ++inner) {
      unsigned vector = byRows ? inner : outer;
      body(byRows ? outer : inner, vector / columns, vector % columns);
    }
}

GateEmitter::Sums GateEmitter::step(ValueRange start) {
  Sums sums(start);
  forEachSum([&](unsigned row, unsigned number, unsigned column) {
    Value &sum = sums[(row * gates + number) * columns + column];
    sum = reader.materialize(reader.evaluate(root, point(row, number, column),
                                             {Lanes{sum, {}}}, lanes)[0],
                             lanes);
  });
  return sums;
}

/// Where in memory what the weights meet at `dims` is, in elements.
AffineExpr GateEmitter::elementOfFactor(ArrayRef<AffineExpr> dims) {
  auto type = cast<MemRefType>(kernel.memrefOf(factor->get()).getType());
  AffineExpr element = getAffineConstantExpr(0, b.getContext());
  for (auto [expr, stride] :
       llvm::zip_equal(root.getMatchingIndexingMap(factor).getResults(),
                       computeStrides(type.getShape())))
    element = element + expr.replaceDims(dims) * stride;
  return canonical(element);
}

/// Where the weights of the present step begin, which has so many.
Value GateEmitter::startOfStep(int64_t elements) {
  AffineExpr number = numberOfTurn(root, reductions, point(0, 0, 0));
  return kernel.plus(start, reader.at(canonical(number * elements)));
}

/// The same with two neighbours of the last reduction, or the last one of an
/// odd number.
GateEmitter::Sums GateEmitter::stepOfPairs(ValueRange before, bool isHalf) {
  Sums sums(before);
  Value rowMemory = kernel.memrefOf(factor->get()),
        packed = kernel.memrefOf(weights->get()),
        first = startOfStep(gates * pairsOfGate() / 2);
  llvm::SmallDenseMap<AffineExpr, Value> pairs;
  llvm::SmallDenseMap<int64_t, Value> factors;
  forEachSum([&](unsigned row, unsigned number, unsigned column) {
    AffineExpr element = elementOfFactor(point(row, number, column));
    Value &pair = pairs[element];
    if (!pair)
      pair = spreadPair(kernel, rowMemory, reader.at(element), isHalf);
    int64_t place = number * pairsOfGate() + column * dotLanes * 2;
    Value &vector = factors[place];
    if (!vector)
      vector =
          loadPairs(kernel, packed, kernel.plus(first, kernel.index(place)));
    Value &sum = sums[(row * gates + number) * columns + column];
    sum = addDots(kernel, sum, pair, vector);
  });
  return sums;
}

/// The sums of one row with weights of 24 bits, of one gate after the other:
/// those come from the second cache a little sooner in one run of memory.
GateEmitter::Sums GateEmitter::sum24() {
  Sums all;
  int64_t scales = startOfScales(
      cast<RankedTensorType>(weights->get().getType()), *packing24);
  auto type = VectorType::get(lanes, b.getF32Type());
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  for (gateOfSums = 0; gateOfSums < gates; ++gateOfSums) {
    Sums sums = reduce(reductions, Sums(columns, zero));
    Value ofGate = kernel.plus(
        start, kernel.index(scales + gateOfSums * columnsOfBlock24));
    scaleSums24(kernel, kernel.memrefOf(weights->get()), ofGate, sums);
    all.append(sums);
  }
  return all;
}

/// A step of those.
GateEmitter::Sums GateEmitter::step24(ValueRange before) {
  Sums sums(before);
  int64_t steps = 1;
  for (unsigned loop : reductions)
    steps *= staticLoopExtent(root, loop);
  Value word = kernel.plus(startOfStep(wordsOfBlock24),
                           kernel.index(gateOfSums * steps * wordsOfBlock24));
  Position place;
  for (AffineExpr expr : root.getMatchingIndexingMap(factor).getResults())
    place.push_back(canonical(expr.replaceDims(point(0, gateOfSums, 0))));
  Value element =
      reader.materialize(reader.read(factor->get(), place, /*width=*/0), 0);
  addProducts24(kernel, kernel.memrefOf(weights->get()), word, element, sums);
  return sums;
}

} // namespace keratin
