//===- MatrixProduct.cpp - a product of two matrices ----------------------===//
#include "codegen/cpu/MatrixProduct.h"
#include "codegen/cpu/Roles.h"
#include "ir/FloatProducts.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace mlir;

namespace keratin {

int64_t LoopGroup::turns() const {
  uint64_t product = 1;
  for (int64_t extent : extents)
    product = llvm::SaturatingMultiply<uint64_t>(product, extent);
  return int64_t(std::min<uint64_t>(product, INT64_MAX));
}

//===----------------------------------------------------------------------===//
// What is such a product
//===----------------------------------------------------------------------===//

namespace {
/// Finds the factors of a product, and what its loops are.
class ProductReader {
public:
  ProductReader(Kernel &kernel, linalg::GenericOp root, Products kind,
                MatrixProduct &product)
      : kernel(kernel), root(root), kind(kind), product(product) {}

  bool run();

private:
  bool isKnown(OpOperand *operand);
  bool readWith(OpOperand *weights);
  bool isPlain(OpOperand &operand);
  bool groupLoops();
  bool isOrder(OpOperand *operand, ArrayRef<const LoopGroup *> groups);
  bool areNeighbours();
  bool areNeighboursOfLeft();
  std::optional<LinearPlace> placeOf(OpOperand *operand);
  int64_t strideOfLeft();
  bool canBeCounted();
  AffineMap mapOf(OpOperand *operand);

  Kernel &kernel;
  linalg::GenericOp root;
  Products kind;
  MatrixProduct &product;
};
} // namespace

/// Where `operand` is read, by the loops that have more than one turn: a window
/// of one pixel is none.
AffineMap ProductReader::mapOf(OpOperand *operand) {
  SmallVector<AffineExpr> dims;
  for (unsigned loop = 0; loop < root.getNumLoops(); ++loop)
    dims.push_back(staticLoopExtent(root, loop) == 1
                       ? getAffineConstantExpr(0, root.getContext())
                       : getAffineDimExpr(loop, root.getContext()));
  AffineMap map = root.getMatchingIndexingMap(operand);
  SmallVector<AffineExpr> results;
  for (AffineExpr expr : map.getResults())
    results.push_back(canonical(expr.replaceDims(dims)));
  return AffineMap::get(root.getNumLoops(), 0, results, root.getContext());
}

/// Whether each dimension of `operand` is a loop, in steps or not, or none.
bool ProductReader::isPlain(OpOperand &operand) {
  return llvm::all_of(mapOf(&operand).getResults(), [&](AffineExpr expr) {
    auto scaled = dyn_cast<AffineBinaryOpExpr>(expr);
    if (scaled && scaled.getKind() == AffineExprKind::Mul &&
        isa<AffineConstantExpr>(scaled.getRHS()))
      expr = scaled.getLHS();
    return isa<AffineDimExpr, AffineConstantExpr>(expr);
  });
}

/// Whether `operand` is a constant that nothing else reads.
bool ProductReader::isKnown(OpOperand *operand) {
  auto argument = dyn_cast<BlockArgument>(operand->get());
  return argument && argument.hasOneUse() &&
         kernel.from().getArgAttr(argument.getArgNumber(), "ktn.constant");
}

/// Samples are the first axis of the output, as everywhere in Keras.
bool ProductReader::groupLoops() {
  AffineMap ofOutput = root.getMatchingIndexingMap(root.getDpsInitOperand(0));
  auto first = dyn_cast<AffineDimExpr>(ofOutput.getResult(0));
  if (!first)
    return false;
  for (unsigned loop = 0; loop < root.getNumLoops(); ++loop) {
    int64_t extent = staticLoopExtent(root, loop);
    bool ofLeft = mapOf(product.left).isFunctionOfDim(loop);
    bool ofWeights = mapOf(product.weights).isFunctionOfDim(loop);
    if (extent == 1)
      continue;
    bool isKnown = !ShapedType::isDynamic(extent);
    if (root.getIteratorTypesArray()[loop] == utils::IteratorType::reduction) {
      if (!ofLeft || !ofWeights || !isKnown)
        return false;
      product.sums.add(loop, extent);
    } else if (ofLeft == ofWeights) {
      return false;
    } else if (loop == first.getPosition()) {
      if (!ofLeft)
        return false;
      product.sample = loop;
      product.samples = isKnown ? std::optional(extent) : std::nullopt;
    } else if (!isKnown) {
      return false;
    } else {
      (ofLeft ? product.rows : product.columns).add(loop, extent);
    }
  }
  if (!product.sample)
    product.samples = 1;
  return !product.columns.loops.empty() && !product.sums.loops.empty();
}

/// Whether `operand` has the dimensions of `groups` in order, the last ones
/// innermost.
bool ProductReader::isOrder(OpOperand *operand,
                            ArrayRef<const LoopGroup *> groups) {
  SmallVector<unsigned> wanted, found;
  for (const LoopGroup *group : groups)
    llvm::append_range(wanted, group->loops);
  for (AffineExpr expr : mapOf(operand).getResults())
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      found.push_back(dim.getPosition());
  return ArrayRef(found).take_back(wanted.size()) == ArrayRef(wanted);
}

/// Whether neighbours of a sum are neighbours in A: in memory, or in what it is
/// computed from.
bool ProductReader::areNeighboursOfLeft() {
  unsigned innermost = product.sums.loops.back();
  if (!isPlain(*product.left))
    return product.leftPlace && product.leftPlace->steps[innermost] == 1;
  return isOrder(product.left, {&product.sums}) &&
         llvm::none_of(accessesOf(kernel, root), [&](const Access &access) {
           return access.operand == product.left &&
                  laneAccess(cast<ShapedType>(access.tensor.getType()),
                             access.position, innermost) == LaneAccess::Gather;
         });
}

/// Whether neighbours of a sum are neighbours in what is multiplied, and those
/// of columns in the output; known weights are packed, for which their loops
/// are to be in order.
bool ProductReader::areNeighbours() {
  if (!product.hasKnownWeights)
    return product.leftPlace && product.weightsPlace && product.samples &&
           isOrder(root.getDpsInitOperand(0), {&product.columns});
  return areNeighboursOfLeft() &&
         (isOrder(product.weights, {&product.sums, &product.columns}) ||
          isOrder(product.weights, {&product.columns, &product.sums})) &&
         isOrder(root.getDpsInitOperand(0), {&product.columns});
}

/// Where `operand` is in memory; null where that does not follow from the
/// loops.
std::optional<LinearPlace> ProductReader::placeOf(OpOperand *operand) {
  Value memref = kernel.memrefOf(operand->get());
  SmallVector<int64_t> strides;
  int64_t offset;
  if (!memref ||
      failed(cast<MemRefType>(memref.getType())
                 .getStridesAndOffset(strides, offset)) ||
      llvm::any_of(strides, ShapedType::isDynamic))
    return std::nullopt;
  LinearPlace place;
  place.steps.assign(root.getNumLoops(), 0);
  SmallVector<AffineExpr> zeros(root.getNumLoops(),
                                getAffineConstantExpr(0, root.getContext()));
  for (auto [expr, stride] :
       llvm::zip_equal(mapOf(operand).getResults(), strides)) {
    auto first =
        dyn_cast<AffineConstantExpr>(canonical(expr.replaceDims(zeros)));
    if (!first)
      return std::nullopt;
    place.first += stride * first.getValue();
    for (unsigned loop = 0; loop < root.getNumLoops(); ++loop) {
      std::optional<int64_t> step = laneStep(expr, loop);
      if (!step)
        return std::nullopt;
      place.steps[loop] += stride * *step;
    }
  }
  return place;
}

std::optional<int64_t> stepOf(const LinearPlace &place,
                              const LoopGroup &group) {
  int64_t first = place.steps[group.loops.back()], step = first;
  for (auto [loop, extent] :
       llvm::reverse(llvm::zip_equal(group.loops, group.extents))) {
    if (place.steps[loop] != step)
      return std::nullopt;
    step *= extent;
  }
  return first;
}

/// Elements from a row of A to the next, where rows follow each other so in
/// memory, those of all samples, and a row's elements are neighbours; else 0.
int64_t ProductReader::strideOfLeft() {
  const std::optional<LinearPlace> &place = product.leftPlace;
  // Also where it begins there.
  if (!place || place->first != 0 ||
      cast<MemRefType>(kernel.memrefOf(product.left->get()).getType())
              .getStridesAndOffset()
              .second != 0)
    return 0;
  LoopGroup rows;
  if (product.sample)
    rows.add(*product.sample, product.samples.value_or(1));
  llvm::append_range(rows.loops, product.rows.loops);
  llvm::append_range(rows.extents, product.rows.extents);
  if (rows.loops.empty() || stepOf(*place, product.sums) != 1)
    return 0;
  return std::max<int64_t>(stepOf(*place, rows).value_or(0), 0);
}

/// Whether no cost overflows. What does not fit in memory is refused later.
bool ProductReader::canBeCounted() {
  constexpr int64_t most = 1 << 24;
  constexpr double mostProducts = 1e15;
  auto isCount = [](int64_t number) { return number > 0 && number <= most; };
  double products =
      double(product.samples.value_or(1)) * double(product.rows.turns()) *
      double(product.columns.turns()) * double(product.sums.turns());
  return isCount(product.samples.value_or(1)) &&
         isCount(product.rows.turns()) && isCount(product.columns.turns()) &&
         isCount(product.sums.turns()) && products <= mostProducts;
}

/// The product with these weights.
bool ProductReader::readWith(OpOperand *weights) {
  product = {};
  product.weights = weights;
  product.left = root.getDpsInputOperand(weights->getOperandNumber() == 0);
  product.hasKnownWeights = isKnown(weights);
  bool arePlain = llvm::all_of(root->getOpOperands(), [&](OpOperand &operand) {
    return isPlain(operand) ||
           (kind == Products::All && &operand == product.left);
  });
  if (!arePlain || !groupLoops())
    return false;
  product.leftPlace = placeOf(product.left);
  if (!product.hasKnownWeights)
    product.weightsPlace = placeOf(weights);
  if (!areNeighbours() || !canBeCounted())
    return false;
  product.leftStride = strideOfLeft();
  return true;
}

bool ProductReader::run() {
  if (!isProductOfF32(root) || !startsFromZero(root))
    return false;
  for (bool known : {true, false})
    for (OpOperand *weights : root.getDpsInputOperands())
      if (isKnown(weights) == known && (known || kind == Products::All) &&
          readWith(weights))
        return true;
  return false;
}

std::optional<MatrixProduct> readProduct(Kernel &kernel, linalg::GenericOp root,
                                         Products kind) {
  MatrixProduct product;
  if (!ProductReader(kernel, root, kind, product).run())
    return std::nullopt;
  return product;
}

bool haveColumnsInside(linalg::GenericOp root, const MatrixProduct &product) {
  AffineMap map = root.getMatchingIndexingMap(product.weights);
  auto placeOf = [&](unsigned loop) {
    return *map.getResultPosition(getAffineDimExpr(loop, root.getContext()));
  };
  return placeOf(product.columns.loops.back()) >
         placeOf(product.sums.loops.back());
}

//===----------------------------------------------------------------------===//
// Where it is
//===----------------------------------------------------------------------===//

Coordinates coordinatesOf(Kernel &kernel, LaneReader &reader,
                          const LoopGroup &group, Value turn) {
  Coordinates coordinates;
  for (size_t number = group.loops.size(); number-- > 0;) {
    Value at = turn;
    if (number > 0) {
      Value extent = kernel.index(group.extents[number]);
      at = kernel.over(turn, extent, /*rest=*/true);
      turn = kernel.over(turn, extent, /*rest=*/false);
    }
    coordinates.push_back({group.loops[number], reader.symbol(at)});
  }
  return coordinates;
}

Position pointAt(linalg::GenericOp root, ArrayRef<Coordinates> coordinates) {
  Position point;
  for (unsigned loop = 0; loop < root.getNumLoops(); ++loop)
    point.push_back(staticLoopExtent(root, loop) == 1
                        ? getAffineConstantExpr(0, root.getContext())
                        : getAffineDimExpr(loop, root.getContext()));
  for (const Coordinates &some : coordinates)
    for (auto [loop, expr] : some)
      point[loop] = expr;
  return point;
}

Value rowsOfLeft(Kernel &kernel, linalg::GenericOp root,
                 const MatrixProduct &product) {
  OpBuilder &b = kernel.builder();
  int64_t inSample = product.rows.turns(), depth = product.sums.turns();
  OpFoldResult rows = b.getIndexAttr(product.knownRows());
  if (product.sample && !product.samples)
    rows = kernel.times(kernel.loopExtent(root, *product.sample), inSample);
  int64_t known = getConstantIntValue(rows).value_or(ShapedType::kDynamic);
  auto layout =
      StridedLayoutAttr::get(b.getContext(), 0, {product.leftStride, 1});
  auto type = MemRefType::get({known, depth}, b.getF32Type(), layout);
  return memref::ReinterpretCastOp::create(
      b, kernel.loc(), type, kernel.memrefOf(product.left->get()),
      b.getIndexAttr(0), ArrayRef<OpFoldResult>{rows, b.getIndexAttr(depth)},
      ArrayRef<OpFoldResult>{b.getIndexAttr(product.leftStride),
                             b.getIndexAttr(1)});
}

} // namespace keratin
