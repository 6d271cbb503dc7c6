//===- OneRow.cpp - one row times weights of 24 bits ----------------------===//
#include "codegen/cpu/OneRow.h"

#include "codegen/cpu/InPlace.h"
#include "ir/FloatProducts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {

/// Finds the factors and the loops; false where those are others.
static bool findLoops(linalg::GenericOp root, OneRowPlan &plan) {
  std::optional<unsigned> lane;
  for (auto [loop, kind] : llvm::enumerate(root.getIteratorTypesArray())) {
    int64_t extent = staticLoopExtent(root, loop);
    if (ShapedType::isDynamic(extent) || extent == 0)
      return false;
    if (kind == utils::IteratorType::reduction)
      plan.sums.push_back(loop);
    else if (extent != 1 && lane)
      return false;
    else if (extent != 1)
      lane = loop;
  }
  if (!lane || plan.sums.empty())
    return false;
  plan.lane = *lane;
  plan.row = root.getDpsInputOperand(0);
  plan.weights = root.getDpsInputOperand(1);
  if (root.getMatchingIndexingMap(plan.row).isFunctionOfDim(*lane))
    std::swap(plan.row, plan.weights);
  return !root.getMatchingIndexingMap(plan.row).isFunctionOfDim(*lane) &&
         root.getMatchingIndexingMap(plan.weights).isFunctionOfDim(*lane);
}

std::optional<OneRowPlan> planOneRow(Kernel &kernel, linalg::GenericOp root,
                                     const VectorUnit &unit) {
  constexpr int64_t leastSteps = 16, mostBlocks = 4;
  OneRowPlan plan = {};
  if (!unit.weights24 || unit.littleCode || !isProductOfF32(root) ||
      !findLoops(root, plan))
    return std::nullopt;
  int64_t steps = 1, columns = staticLoopExtent(root, plan.lane);
  for (unsigned loop : plan.sums)
    steps =
        llvm::SaturatingMultiply<uint64_t>(steps, staticLoopExtent(root, loop));
  if (steps < leastSteps)
    return std::nullopt;
  std::optional<Packing24> packing =
      packing24Of(kernel, root, plan.weights, plan.lane);
  if (!packing)
    return std::nullopt;
  plan.packing = *packing;
  plan.blocks = int64_t(llvm::divideCeil(columns, columnsOfBlock24));
  plan.blocksOfTile = std::min(plan.blocks, mostBlocks);
  plan.asksAhead = unit.farWeights();
  return plan;
}

namespace {
class OneRowEmitter {
public:
  OneRowEmitter(Kernel &kernel, linalg::GenericOp root, const OneRowPlan &plan,
                ArrayRef<Output> outputs)
      : kernel(kernel), b(kernel.builder()), loc(kernel.loc()), reader(kernel),
        root(root), plan(plan), outputs(outputs) {}

  void run();

private:
  using Sums = SmallVector<Value>;

  void emitBlocks(Value from, Value to);
  void emitTile(Value first, int64_t blocks, int64_t columns);
  Value startOf(Value first, int64_t number);
  Sums reduce(ArrayRef<unsigned> loops, ArrayRef<Value> starts, Sums sums);
  Sums step(ArrayRef<Value> starts, Sums sums);
  Position pointOf(int64_t column);

  Kernel &kernel;
  OpBuilder &b;
  Location loc;
  LaneReader reader;
  linalg::GenericOp root;
  const OneRowPlan &plan;
  ArrayRef<Output> outputs;
  Value words; ///< of the weights
};
} // namespace

void OneRowEmitter::run() {
  unsigned number = cast<BlockArgument>(plan.weights->get()).getArgNumber();
  kernel.setPackedArgument(number, plan.packing);
  kernel.to()->setAttr(kernelAttr, b.getStringAttr("matmul24"));
  words = kernel.memrefOf(plan.weights->get());
  reader.setLane(plan.lane);
  if (kernel.pickShared({plan.blocks})) {
    auto [from, to] = kernel.share(kernel.index(plan.blocks), 1);
    return emitBlocks(from, to);
  }
  kernel.emitOnce([&] {
    LaneReader::Scope scope(reader);
    emitBlocks(kernel.index(0), kernel.index(plan.blocks));
  });
}

/// Tiles of several blocks, then blocks one by one, the last of which may have
/// fewer columns.
void OneRowEmitter::emitBlocks(Value from, Value to) {
  int64_t columns = staticLoopExtent(root, plan.lane);
  int64_t rest = columns % columnsOfBlock24;
  Value whole = kernel.least(to, kernel.index(columns / columnsOfBlock24));
  auto some = [&](Value from, Value to, int64_t blocks, int64_t columns) {
    emitTurns(kernel, reader, from, to, blocks,
              [&](Value first) { emitTile(first, blocks, columns); });
  };
  // The share of a call may begin behind the last whole block.
  Value count = arith::SubIOp::create(b, loc, whole, kernel.least(from, whole));
  Value tiles =
      arith::DivUIOp::create(b, loc, count, kernel.index(plan.blocksOfTile));
  Value end = arith::AddIOp::create(
      b, loc, from,
      arith::MulIOp::create(b, loc, tiles, kernel.index(plan.blocksOfTile)));
  some(from, end, plan.blocksOfTile, columnsOfBlock24);
  if (plan.blocksOfTile > 1)
    some(end, whole, 1, columnsOfBlock24);
  if (rest != 0)
    some(arith::MaxUIOp::create(b, loc, from, whole), to, 1, rest);
}

/// The loops of the root at a column of the tile.
Position OneRowEmitter::pointOf(int64_t column) {
  Position point;
  for (unsigned loop = 0; loop < root.getNumLoops(); ++loop) {
    AffineExpr expr = getAffineDimExpr(loop, b.getContext());
    if (loop == plan.lane)
      expr = expr + column;
    else if (staticLoopExtent(root, loop) == 1)
      expr = getAffineConstantExpr(0, b.getContext());
    point.push_back(expr);
  }
  return point;
}

/// Where the words of a block of the tile are.
Value OneRowEmitter::startOf(Value first, int64_t number) {
  int64_t ofBlock = cast<MemRefType>(words.getType()).getDimSize(1);
  return arith::MulIOp::create(b, loc, kernel.plus(first, kernel.index(number)),
                               kernel.index(ofBlock));
}

/// Some blocks side by side, each of which has so many columns.
void OneRowEmitter::emitTile(Value first, int64_t blocks, int64_t columns) {
  LaneReader::Scope scope(reader);
  reader.bind(plan.lane, arith::MulIOp::create(b, loc, first,
                                               kernel.index(columnsOfBlock24)));
  Sums starts;
  for (int64_t number = 0; number < blocks; ++number)
    starts.push_back(startOf(first, number));
  auto type = VectorType::get(lanes24, b.getF32Type());
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  constexpr int64_t vectors = columnsOfBlock24 / lanes24;
  Sums sums = reduce(plan.sums, starts, Sums(size_t(blocks * vectors), zero));
  Value scales = kernel.index(startOfScales(
      cast<RankedTensorType>(plan.weights->get().getType()), plan.packing));
  for (auto [number, start] : llvm::enumerate(starts)) {
    auto ofBlock =
        MutableArrayRef(sums).slice(number * size_t(vectors), size_t(vectors));
    scaleSums24(kernel, words, kernel.plus(start, scales), ofBlock);
    for (auto [vector, sum] : llvm::enumerate(ofBlock)) {
      int64_t column = int64_t(vector) * lanes24;
      if (column >= columns)
        break;
      auto width = unsigned(std::min(lanes24, columns - column));
      if (width != lanes24)
        sum = vector::ExtractStridedSliceOp::create(
            b, loc, sum, ArrayRef<int64_t>{0}, ArrayRef<int64_t>{width},
            ArrayRef<int64_t>{1});
      storeOutputs(reader, root, outputs,
                   pointOf(int64_t(number) * columnsOfBlock24 + column), width,
                   sum);
    }
  }
}

OneRowEmitter::Sums OneRowEmitter::reduce(ArrayRef<unsigned> loops,
                                          ArrayRef<Value> starts, Sums sums) {
  if (loops.empty())
    return step(starts, std::move(sums));
  return emitLoop(b, loc, kernel.index(0), kernel.loopExtent(root, loops[0]),
                  kernel.index(1), sums, [&](Value iv, ValueRange inner) {
                    LaneReader::Scope scope(reader);
                    reader.bind(loops[0], iv);
                    return reduce(loops.drop_front(), starts, Sums(inner));
                  });
}

/// One element of the row times its weights of all blocks.
OneRowEmitter::Sums OneRowEmitter::step(ArrayRef<Value> starts, Sums sums) {
  constexpr int64_t wordsAhead = 1536 / 4, lineWords = 64 / 4;
  constexpr size_t vectors = columnsOfBlock24 / lanes24;
  Position point = pointOf(0);
  Value place = reader.at(
      canonical(numberOfTurn(root, plan.sums, point) * wordsOfBlock24));
  Value element = reader.materialize(
      reader.read(
          plan.row->get(),
          atPoint(root.getMatchingIndexingMap(plan.row).getResults(), point),
          0),
      0);
  for (auto [number, start] : llvm::enumerate(starts)) {
    Value word = kernel.plus(start, place);
    addProducts24(kernel, words, word, element,
                  MutableArrayRef(sums).slice(number * vectors, vectors));
    if (plan.asksAhead)
      for (int64_t line = 0; line < wordsOfBlock24; line += lineWords)
        prefetch24(kernel, words,
                   kernel.plus(word, kernel.index(wordsAhead + line)));
  }
  return sums;
}

void emitOneRow(Kernel &kernel, linalg::GenericOp root, const OneRowPlan &plan,
                ArrayRef<Output> outputs) {
  OneRowEmitter(kernel, root, plan, outputs).run();
  if (outputs.size() == kernel.results().size())
    markInPlace(kernel, root);
}

} // namespace keratin
