//===- KernelRows.cpp - which rows a kernel reads and writes --------------===//
#include "passes/KernelRows.h"

#include "passes/PlaceParts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace keratin {

namespace {
/// A sum of loops, each times a factor, and a constant.
struct LinearExpr {
  llvm::SmallDenseMap<unsigned, int64_t> factors;
  int64_t constant = 0;
};
} // namespace

/// Adds `scale * expr`; false where that is no such sum.
static bool addLinear(LinearExpr &sum, AffineExpr expr, int64_t scale) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
    sum.constant += scale * constant.getValue();
    return true;
  }
  if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    sum.factors[dim.getPosition()] += scale;
    return true;
  }
  auto both = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!both)
    return false;
  if (both.getKind() == AffineExprKind::Add)
    return addLinear(sum, both.getLHS(), scale) &&
           addLinear(sum, both.getRHS(), scale);
  auto factor = dyn_cast<AffineConstantExpr>(both.getRHS());
  return both.getKind() == AffineExprKind::Mul && factor &&
         addLinear(sum, both.getLHS(), scale * factor.getValue());
}

/// The rows that `expr` goes along when the loop `row` of `op` computes those
/// of `result`.
static std::optional<RowWindow> windowOf(linalg::GenericOp op, AffineExpr expr,
                                         unsigned row, RowWindow result) {
  LinearExpr sum;
  if (!addLinear(sum, expr, 1))
    return std::nullopt;
  SmallVector<int64_t> turns = op.getStaticLoopRanges();
  int64_t step = sum.factors.lookup(row), reach = 0;
  for (auto [loop, factor] : sum.factors) {
    if (loop == row || factor == 0)
      continue;
    if (factor < 0 || ShapedType::isDynamic(turns[loop]) ||
        op.getIteratorTypesArray()[loop] != utils::IteratorType::reduction)
      return std::nullopt;
    reach += factor * (turns[loop] - 1);
  }
  if (step < 1 || sum.constant < 0)
    return std::nullopt;
  // The constant stays in the map: rows that nobody reads come first.
  return RowWindow{step * result.factor,
                   step * (result.extent - 1) + 1 + reach + sum.constant};
}

/// What one point of `op` takes, in the time of a product or a sum.
static int64_t flopsOfPoint(linalg::GenericOp op) {
  constexpr int64_t divided = 8, elementary = 20;
  int64_t total = 0;
  for (Operation &scalar : op.getBody()->without_terminator())
    if (isa<arith::DivFOp>(scalar))
      total += divided;
    else if (isa<math::MathDialect>(scalar.getDialect()))
      total += elementary;
    else
      ++total;
  return total;
}

int64_t KernelRows::core(unsigned axis) {
  Value result = source.front().getTerminator()->getOperand(0);
  if (border)
    result = border->getOperand(0);
  return cast<RankedTensorType>(result.getType()).getDimSize(axis);
}

/// Notes that `value` is read; false where that is not how it is read already,
/// or its rows are no rows of images.
bool KernelRows::read(Value value, const RowAccess &access) {
  if (!isa<RankedTensorType>(value.getType()))
    return true;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    unsigned number = argument.getArgNumber();
    if (!isRead[number]) {
      isRead[number] = true;
      accesses[number] = access;
    }
    return accesses[number] == access;
  }
  if (access.row < 0)
    return access.batch < 0 && !windows.contains(value);
  if (access.batch != 0 || access.row != 1)
    return false;
  return windows.try_emplace(value, access.window).first->second ==
         access.window;
}

bool KernelRows::visit(linalg::GenericOp op) {
  bool asksWhere = op->walk([](Operation *inner) {
                       return isa<linalg::IndexOp, tensor::ExtractOp>(inner)
                                  ? WalkResult::interrupt()
                                  : WalkResult::advance();
                     }).wasInterrupted();
  if (op.getNumResults() != 1 || asksWhere)
    return false;
  auto known = windows.find(op.getResult(0));
  if (known == windows.end()) {
    // The same for every row.
    return llvm::all_of(op->getOperands(),
                        [&](Value operand) { return read(operand, {}); });
  }
  RowWindow window = known->second;
  AffineMap map = op.getIndexingMapMatchingResult(op->getResult(0));
  auto image = dyn_cast<AffineDimExpr>(map.getResult(0));
  auto row = dyn_cast<AffineDimExpr>(map.getResult(1));
  if (!image || !row || image == row)
    return false;

  uint64_t points = window.extent;
  for (auto [loop, turns] : llvm::enumerate(op.getStaticLoopRanges()))
    if (loop != image.getPosition() && loop != row.getPosition()) {
      if (ShapedType::isDynamic(turns))
        return false;
      points = llvm::SaturatingMultiply<uint64_t>(points, turns);
    }
  // More than that is no matter of bands.
  constexpr uint64_t most = uint64_t(1) << 32;
  flops += int64_t(std::min(points, most)) * flopsOfPoint(op);

  for (OpOperand &operand : op->getOpOperands()) {
    RowAccess access;
    for (auto [axis, expr] :
         llvm::enumerate(op.getMatchingIndexingMap(&operand).getResults())) {
      bool alongImages = expr.isFunctionOfDim(image.getPosition());
      bool alongRows = expr.isFunctionOfDim(row.getPosition());
      if (!alongImages && !alongRows)
        continue;
      if (expr == image && access.batch < 0) {
        access.batch = int64_t(axis);
        continue;
      }
      std::optional<RowWindow> part =
          alongImages || access.row >= 0
              ? std::nullopt
              : windowOf(op, expr, row.getPosition(), window);
      if (!part)
        return false;
      access.row = int64_t(axis);
      access.window = *part;
    }
    if (!read(operand.get(), access))
      return false;
  }
  return true;
}

bool KernelRows::analyze() {
  if (source.getNumResults() != 1 || source.isExternal() ||
      !llvm::hasSingleElement(source.getBody()))
    return false;
  Value result = source.front().getTerminator()->getOperand(0);
  border = result.getDefiningOp<tensor::PadOp>();
  if (border) {
    if (!border.getConstantPaddingValue() || !border.getLow().empty() ||
        !border.getHigh().empty() || border.getStaticLow()[0] != 0 ||
        border.getStaticHigh()[0] != 0)
      return false;
    result = border.getSource();
  }
  auto type = cast<RankedTensorType>(result.getType());
  if (type.getRank() < 3 || !type.getElementType().isIntOrFloat() ||
      (isa<BlockArgument>(result) && !border))
    return false;
  accesses.resize(source.getNumArguments());
  isRead.resize(source.getNumArguments());
  if (!read(result, {0, 1, {}}))
    return false;
  for (Operation &op : llvm::reverse(source.front().without_terminator())) {
    if (&op == border || isa<arith::ArithDialect>(op.getDialect()) ||
        isa<tensor::EmptyOp, tensor::DimOp>(op))
      continue;
    if (auto fill = dyn_cast<linalg::FillOp>(op)) {
      auto window = windows.find(fill.getResult(0));
      RowAccess access;
      if (window != windows.end())
        access = {0, 1, window->second};
      if (!read(fill.getOutputs()[0], access))
        return false;
      continue;
    }
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (!generic || !visit(generic))
      return false;
  }
  return isStatic();
}

/// Whether all that a kernel of some rows holds has known extents, and no
/// argument is a part of something.
bool KernelRows::isStatic() {
  if (ShapedType::isDynamic(rows()))
    return false;
  for (unsigned number = 0; number < source.getNumArguments(); ++number) {
    if (!isa<RankedTensorType>(source.getArgumentTypes()[number]) ||
        source.getArgAttr(number, stridesAttr) ||
        source.getArgAttr(number, slotAttr) ||
        !typeOf(number, 1).hasStaticShape())
      return false;
  }
  // Of values within only the images may be open, and sizes only say so.
  auto isSize = [](Operation *op) {
    return isa<tensor::EmptyOp>(op) ||
           (isa<arith::ArithDialect>(op->getDialect()) &&
            llvm::all_of(op->getResultTypes(), llvm::IsaPred<IndexType>));
  };
  for (Operation &op : source.front()) {
    bool isArithmetic = isa<arith::ArithDialect>(op.getDialect()) &&
                        !isa<arith::ConstantOp>(op);
    if ((isArithmetic && !isSize(&op)) ||
        ((isArithmetic || isa<tensor::DimOp>(op)) &&
         !llvm::all_of(op.getUsers(), isSize)))
      return false;
    for (Value value : op.getResults())
      if (auto type = dyn_cast<RankedTensorType>(value.getType()))
        if (windows.contains(value)
                ? llvm::any_of(type.getShape().drop_front(),
                               ShapedType::isDynamic)
                : !type.hasStaticShape() &&
                      (!border || value != border.getResult()) &&
                      !isa<tensor::EmptyOp>(op))
          return false;
  }
  return true;
}

std::optional<KernelRows> KernelRows::of(func::FuncOp kernel) {
  KernelRows rows(kernel);
  if (!rows.analyze())
    return std::nullopt;
  return rows;
}

/// `type` with one image and so many rows.
static RankedTensorType withRows(RankedTensorType type, int64_t batch,
                                 int64_t row, int64_t count) {
  SmallVector<int64_t> shape(type.getShape());
  if (batch >= 0)
    shape[batch] = 1;
  if (row >= 0)
    shape[row] = count;
  return type.clone(shape);
}

RankedTensorType KernelRows::typeOf(unsigned number, int64_t count,
                                    bool onlyBeside) {
  auto type = cast<RankedTensorType>(source.getArgumentTypes()[number]);
  if (number + 1 == source.getNumArguments())
    return withRows(type, 0, 1, onlyBeside ? count : low() + count + high());
  const RowAccess &access = accesses[number];
  return withRows(type, access.batch, access.row, access.window.count(count));
}

/// `pad` without what it has in front of the rows and behind them.
static void keepBeside(tensor::PadOp pad) {
  SmallVector<int64_t> low(pad.getStaticLow()), high(pad.getStaticHigh());
  low[1] = high[1] = 0;
  pad.setStaticLow(low);
  pad.setStaticHigh(high);
}

func::FuncOp KernelRows::clone(int64_t count, bool onlyBeside) {
  OpBuilder b(source.getContext());
  SmallVector<Type> types;
  for (unsigned number = 0; number < source.getNumArguments(); ++number)
    types.push_back(typeOf(number, count, onlyBeside));
  auto kernel = cast<func::FuncOp>(source->cloneWithoutRegions());
  kernel.setType(b.getFunctionType(types, types.back()));
  Block *body = kernel.addEntryBlock();
  b.setInsertionPointToStart(body);
  IRMapping map;
  map.map(source.getArguments(), body->getArguments());
  for (Operation &op : source.front()) {
    // Sizes are known now.
    if (isa<tensor::DimOp>(op))
      continue;
    auto typeOfResult = [&](Value value) -> Type {
      auto type = dyn_cast<RankedTensorType>(value.getType());
      if (border && value == border.getResult())
        return types.back();
      auto window = windows.find(value);
      if (!type || window == windows.end())
        return value.getType();
      return withRows(type, 0, 1, window->second.count(count));
    };
    if (auto empty = dyn_cast<tensor::EmptyOp>(op)) {
      auto type = cast<RankedTensorType>(typeOfResult(empty));
      map.map(empty.getResult(),
              tensor::EmptyOp::create(b, op.getLoc(), type, ValueRange()));
      continue;
    }
    if (isa<arith::ArithDialect>(op.getDialect()) &&
        !isa<arith::ConstantOp>(op))
      continue;
    Operation *copy = b.clone(op, map);
    for (auto [before, after] :
         llvm::zip_equal(op.getResults(), copy->getResults()))
      after.setType(typeOfResult(before));
    if (onlyBeside && &op == border)
      keepBeside(cast<tensor::PadOp>(copy));
  }
  return kernel;
}

} // namespace keratin
