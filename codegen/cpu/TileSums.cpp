//===- TileSums.cpp - what a register tile computes -----------------------===//
#include "codegen/cpu/TileLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace keratin {

Position atPoint(ArrayRef<AffineExpr> position, ArrayRef<AffineExpr> point) {
  Position result;
  for (AffineExpr expr : position)
    result.push_back(canonical(expr.replaceDims(point)));
  return result;
}

/// The loops of the root at a row, the first lane of a column, and a tap.
Position TileEmitter::pointOf(unsigned row, unsigned column,
                              ArrayRef<AffineExpr> taps) {
  Position point;
  for (unsigned loop = 0; loop < root.getNumLoops(); ++loop) {
    AffineExpr expr = getAffineDimExpr(loop, b.getContext());
    if (taps[loop])
      expr = taps[loop];
    else if (loop == tiling.lane)
      expr = expr + columns[column].offset;
    else if (loop == tiling.row)
      expr = expr + row % innerRows;
    else if (loop == tiling.outerRow)
      expr = expr + row / innerRows;
    else if (staticLoopExtent(root, loop) == 1)
      expr = getAffineConstantExpr(0, b.getContext());
    point.push_back(expr);
  }
  return point;
}

/// Blocks hold zeros after their last column, so sums may be of whole vectors
/// when nothing else is read along the lane.
bool TileEmitter::sumsWholeVectors() {
  if (!tiling.blocked || tiling.panel || tiling.inBlocks())
    return false;
  for (OpOperand &operand : root->getOpOperands()) {
    if (&operand == tiling.blocked ||
        root.getMatchingBlockArgument(&operand).use_empty())
      continue;
    bool uniform =
        !root.getMatchingIndexingMap(&operand).isFunctionOfDim(tiling.lane);
    if (!uniform && !operand.get().getDefiningOp<linalg::FillOp>())
      return false;
  }
  return llvm::none_of(
             root.getBody()->getOps<linalg::IndexOp>(),
             [&](linalg::IndexOp op) { return op.getDim() == tiling.lane; }) &&
         llvm::none_of(*root.getBody(), [](Operation &op) {
           // What traps on zeros, and what reads where a lane says.
           return isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp,
                      arith::RemUIOp, tensor::ExtractOp>(op);
         });
}

unsigned TileEmitter::sumWidth(unsigned column) {
  unsigned width = columns[column].width;
  if (!sumsWholeVectors())
    return width;
  return width != 0 && width <= tiling.fewestLanes ? tiling.fewestLanes
                                                   : tiling.lanes;
}

/// Whether a block of the reductions is the first one, or the last one.
Value TileEmitter::isAtEnd(bool last) {
  Value all;
  auto add = [&](Value left, Value right) {
    Value equal =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, left, right);
    all = all ? arith::AndIOp::create(b, loc, all, equal) : equal;
  };
  for (unsigned loop :
       ArrayRef(tiling.reductions).take_front(tiling.outerReductions)) {
    Value at = reader.at(getAffineDimExpr(loop, b.getContext()));
    Value end = kernel.loopExtent(root, loop);
    if (last)
      at = arith::AddIOp::create(b, loc, at, kernel.index(1));
    add(at, last ? end : kernel.index(0));
  }
  if (tiling.blockStep != 0) {
    unsigned loop = tiling.reductions[tiling.outerReductions];
    add(last ? block.second : block.first,
        last ? kernel.loopExtent(root, loop) : kernel.index(0));
  }
  return all;
}

/// A tile of a reduction in blocks goes on from what is in the output, and
/// leaves its sums there until they are complete.
void TileEmitter::emitTile() {
  LaneReader::Scope scope(reader);
  auto reductions =
      ArrayRef(tiling.reductions).drop_front(tiling.outerReductions);
  lastSteps.clear();
  bool endsByRow = stepsByRow() != 0;
  if (!tiling.inBlocks() || isPartOfSums)
    return finishTile(reduce(reductions, startSums(), endsByRow));
  auto either = [&](bool last, TypeRange types, llvm::function_ref<Sums()> then,
                    llvm::function_ref<Sums()> otherwise) {
    auto branch = scf::IfOp::create(b, loc, types, isAtEnd(last),
                                    /*withElseRegion=*/true);
    for (bool first : {true, false}) {
      OpBuilder::InsertionGuard guard(b);
      LaneReader::Scope inner(reader);
      Block &body = first ? *branch.thenBlock() : *branch.elseBlock();
      b.setInsertionPointToStart(&body);
      Sums results = first ? then() : otherwise();
      b.setInsertionPointToEnd(&body);
      if (!results.empty())
        scf::YieldOp::create(b, loc, results);
    }
    return Sums(branch.getResults());
  };
  Type element = getElementTypeOrSelf(root.getResult(0));
  SmallVector<Type> types;
  for (unsigned row = 0; row < rows(); ++row)
    for (const Column &column : columns)
      types.push_back(
          column.width == 0 ? element : VectorType::get(column.width, element));
  Sums sums = either(
      /*last=*/false, types, [&] { return startSums(); },
      [&] { return readSums(); });
  sums = reduce(reductions, sums, endsByRow);
  either(
      /*last=*/true, {}, [&] { return finishTile(sums), Sums(); },
      [&] { return writeSums(sums), Sums(); });
}

/// The initial sums, rows by columns by results.
TileEmitter::Sums TileEmitter::startSums() {
  Sums sums;
  SmallVector<AffineExpr> taps(root.getNumLoops());
  for (unsigned row = 0; row < rows(); ++row)
    for (unsigned column = 0; column < columns.size(); ++column)
      for (OpOperand &init : root.getDpsInitsMutable()) {
        unsigned width = sumWidth(column);
        Lanes start =
            reader.read(init.get(),
                        atPoint(root.getMatchingIndexingMap(&init).getResults(),
                                pointOf(row, column, taps)),
                        width);
        sums.push_back(reader.materialize(start, width));
      }
  return sums;
}

/// The argument of the kernel on tensors that the output is written to.
Value TileEmitter::destinationTensor() {
  auto memref = cast<BlockArgument>(outputs[0].destination);
  return kernel.from().getArgument(memref.getArgNumber());
}

/// The sums so far, which are in the output.
TileEmitter::Sums TileEmitter::readSums() {
  const Output &output = outputs[0];
  Sums sums;
  SmallVector<AffineExpr> taps(root.getNumLoops());
  for (unsigned row = 0; row < rows(); ++row)
    for (unsigned column = 0; column < columns.size(); ++column) {
      unsigned width = columns[column].width;
      Lanes lanes =
          reader.read(destinationTensor(),
                      atPoint(output.place, pointOf(row, column, taps)), width);
      sums.push_back(reader.materialize(lanes, width));
    }
  return sums;
}

void TileEmitter::writeSums(Sums sums) {
  const Output &output = outputs[0];
  SmallVector<AffineExpr> taps(root.getNumLoops());
  for (unsigned row = 0; row < rows(); ++row) {
    completeRow(row, sums);
    for (unsigned column = 0; column < columns.size(); ++column)
      reader.write({sums[row * columns.size() + column], {}},
                   output.destination,
                   atPoint(output.place, pointOf(row, column, taps)),
                   columns[column].width);
    endRow();
  }
}

/// The sums of all turns of `loops`, from `sums` on; without the last steps,
/// which are remembered, where they are made row by row.
TileEmitter::Sums TileEmitter::reduce(ArrayRef<unsigned> loops, ValueRange sums,
                                      bool endsByRow) {
  if (loops.empty())
    return step(sums);
  Value from = kernel.index(0), to = kernel.loopExtent(root, loops[0]);
  if (isFromBlockToBlock(loops[0]))
    std::tie(from, to) = block;
  auto steps = [&](Value from, Value to, ValueRange sums, int64_t step = 1) {
    return emitLoop(b, loc, from, to, kernel.index(step), sums,
                    [&](Value iv, ValueRange inner) {
                      LaneReader::Scope scope(reader);
                      reader.bind(loops[0], iv);
                      return reduce(loops.drop_front(), inner,
                                    /*endsByRow=*/false);
                    });
  };
  if (loops[0] == tiling.longTap) {
    int64_t all = staticLoopExtent(root, loops[0]);
    tapsOfStep = tiling.tapsAtOnce;
    int64_t whole = all / tapsOfStep * tapsOfStep;
    Sums before = steps(from, kernel.index(whole), sums, tapsOfStep);
    if (whole == all)
      return before;
    tapsOfStep = all - whole;
    LaneReader::Scope scope(reader);
    reader.bind(loops[0], kernel.index(whole));
    return reduce(loops.drop_front(), before, /*endsByRow=*/false);
  }
  if (endsByRow && loops.size() > 1) {
    int64_t last = staticLoopExtent(root, loops[0]) - 1;
    Sums before(sums);
    if (last > 0)
      before = steps(from, kernel.index(last), sums);
    reader.bind(loops[0], kernel.index(last));
    return reduce(loops.drop_front(), before, endsByRow);
  }
  if (endsByRow)
    to = withoutLastSteps(to);
  // Of many steps only the first ones ask for lines of this tile.
  int64_t first = loops.size() == 1 ? stepsThatAsk() : 0;
  if (first == 0)
    return steps(from, to, sums);
  Sums later = steps(from, kernel.index(first), sums);
  asksForLines = false;
  later = steps(kernel.index(first), to, later);
  asksForLines = true;
  return later;
}

/// Asks for what a step of the reduction asks for.
void TileEmitter::askInStep() {
  if (tiling.tilesOfPrefetch != 0)
    prefetch();
  if (tiling.rowsAhead)
    prefetchRows();
  if (asksForLines && !tiling.added.empty())
    prefetchAdded();
  if (asksForLines)
    prefetchPlaces();
  if (!tiling.far.empty())
    prefetchFar();
  if (!tiling.nextBlocks.empty())
    prefetchNextBlocks();
  if (tiling.tilesOfPanel != 0 && !keepsBlocks)
    prefetchNextPanel();
  if (weightsAhead)
    prefetchWeightsAhead();
  if (tiling.asksFirstCache || (tiling.streams > 1 && tiling.asksAhead))
    prefetchStreams();
  if (tiling.runs > 1 && tiling.tilesOfPrefetch == 0)
    prefetchWindow();
}

/// A tap of a row for all columns, in the `sums` of the tile.
void TileEmitter::multiply(const Tap &tap, MutableArrayRef<Value> sums) {
  for (unsigned column = 0; column < columns.size(); ++column)
    multiply(tap, column, sums);
}

/// A tap of a row for one of the columns.
void TileEmitter::multiply(const Tap &tap, unsigned column,
                           MutableArrayRef<Value> sums) {
  unsigned results = root.getNumResults();
  auto *next = sums.begin() + (tap.row * columns.size() + column) * results;
  SmallVector<Lanes> old;
  for (unsigned result = 0; result < results; ++result)
    old.push_back({next[result], {}});
  unsigned width = sumWidth(column);
  SmallVector<Lanes> values =
      reader.evaluate(root, pointOf(tap.row, column, tap.taps), old, width);
  for (const Lanes &value : values)
    *next++ = reader.materialize(value, width);
}

/// Whether each row is read again for each of a few vectors of columns. Where
/// units have half the width of vectors, a scalar that is broadcast to a vector
/// takes two of the slots of three units, as many as a product, of which two
/// are those that multiply, and maxima want the third; as an operand of each
/// product it takes none. That can be what is in memory as it is multiplied.
bool TileEmitter::readsForEach() {
  constexpr size_t most = 3;
  unsigned bits =
      getElementTypeOrSelf(root.getResult(0)).getIntOrFloatBitWidth();
  return tiling.fewestLanes < tiling.lanes && tiling.row &&
         bits * tiling.lanes >= 512 && // others have no such operands
         tiling.taps.empty() && !tiling.reductions.empty() && !copies &&
         !widens && !hasFewSteps(root) && rows() > 1 && columns.size() > 1 &&
         columns.size() <= most &&
         llvm::all_of(
             root.getDpsInputOperands(),
             [&](OpOperand *operand) {
               return root.getMatchingIndexingMap(operand).isFunctionOfDim(
                          tiling.lane) ||
                      (kernel.memrefOf(operand->get()) &&
                       getElementTypeOrSelf(operand->get())
                               .getIntOrFloatBitWidth() == bits);
             }) &&
         llvm::all_of(columns, [&](const Column &column) {
           return column.width >= tiling.fewestLanes;
         });
}

/// The index `at` of a step for each column, of which nobody knows that they
/// are the same.
TileEmitter::Sums TileEmitter::indexForEach(Value at) {
  Sums indices = {at};
  while (indices.size() < columns.size())
    indices.push_back(hidden(kernel, indices.back()));
  return indices;
}

/// A step of a row, which each column finds by its own of `indices`.
void TileEmitter::multiplyForEach(unsigned row, ArrayRef<Value> indices,
                                  MutableArrayRef<Value> sums) {
  SmallVector<AffineExpr> taps(root.getNumLoops());
  for (auto [column, at] : llvm::enumerate(indices)) {
    // What differs from column to column is found by the first one.
    for (OpOperand *operand : root.getDpsInputOperands())
      if (AffineMap map = root.getMatchingIndexingMap(operand);
          map.isFunctionOfDim(tiling.lane))
        reader.read(operand->get(),
                    atPoint(map.getResults(), pointOf(row, column, taps)),
                    sumWidth(column));
    LaneReader::Scope scope(reader);
    reader.bind(tiling.reductions.back(), at);
    multiply({taps, row, row, {}}, column, sums);
  }
}

/// One step of the reduction: all taps for all rows and columns.
TileEmitter::Sums TileEmitter::step(ValueRange start) {
  Sums sums(start);
  askInStep();
  if (copies)
    readCopies(0, rows());
  if (widens)
    storeColumns(startOfPanel);
  if (readsForEach()) {
    AffineExpr step =
        getAffineDimExpr(tiling.reductions.back(), b.getContext());
    Sums indices = indexForEach(reader.at(step));
    for (unsigned row = 0; row < rows(); ++row)
      multiplyForEach(row, indices, sums);
    return sums;
  }
  if (tiling.turns) {
    multiplyInTurns(sums);
    return sums;
  }
  for (const Tap &tap : tapsOfRows())
    multiply(tap, sums);
  return sums;
}

bool holdsSums(linalg::GenericOp root, ArrayRef<Output> outputs) {
  if (outputs.empty() || root.getNumResults() != 1 ||
      getElementTypeOrSelf(outputs[0].tensor) !=
          getElementTypeOrSelf(root.getResult(0)))
    return false;
  for (auto [loop, kind] : llvm::enumerate(root.getIteratorTypesArray()))
    if (kind == utils::IteratorType::parallel &&
        staticLoopExtent(root, loop) != 1 &&
        llvm::none_of(outputs[0].place, [&](AffineExpr expr) {
          return expr.isFunctionOfDim(loop);
        }))
      return false;
  return true;
}

} // namespace keratin
