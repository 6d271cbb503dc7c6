//===- KnownElements.cpp - integers that follow from shapes ---------------===//
//
// Keras computes shapes in the graph: `K.shape(x)[1] * 2` is a tensor. Where
// the extents of x are known it is a number, and Keras counts on that.
//
//===----------------------------------------------------------------------===//
#include "Graph.h"

#include "ir/FoldScalars.h"
#include "ir/Ktn.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace keratin::backend {

namespace {

using Element = std::optional<int64_t>;
using Elements = std::vector<Element>;

/// Shape arithmetic is short; longer chains are something else.
constexpr unsigned maxDepth = 64;
constexpr int64_t maxElements = 64;

Elements elementsOf(Value value, unsigned depth);

Element computeScalar(ktn::ScalarBodyOpInterface op,
                      llvm::ArrayRef<int64_t> operands) {
  Block block;
  OpBuilder b(op->getContext());
  b.setInsertionPointToStart(&block);
  SmallVector<Value> args;
  for (auto [operand, number] : llvm::zip_equal(op->getOperands(), operands))
    args.push_back(arith::ConstantOp::create(
        b, op->getLoc(),
        b.getIntegerAttr(getElementTypeOrSelf(operand), number)));
  Value result = op.buildScalar(b, args);
  auto integer =
      dyn_cast_if_present<IntegerAttr>(ktn::foldScalars(block, result));
  return integer ? Element(integer.getInt()) : std::nullopt;
}

Elements elementwise(ktn::ScalarBodyOpInterface op, int64_t count,
                     unsigned depth) {
  std::vector<Elements> operands;
  for (Value operand : op->getOperands()) {
    operands.push_back(elementsOf(operand, depth));
    auto size = static_cast<int64_t>(operands.back().size());
    if (size != 1 && size != count)
      return {};
  }
  Elements result;
  for (int64_t i = 0; i < count; ++i) {
    SmallVector<int64_t> arguments;
    for (const Elements &operand : operands)
      if (Element element = operand[operand.size() == 1 ? 0 : i])
        arguments.push_back(*element);
    result.push_back(arguments.size() == operands.size()
                         ? computeScalar(op, arguments)
                         : std::nullopt);
  }
  return result;
}

Elements extents(ktn::ShapeOp op) {
  Elements result;
  for (int64_t extent : cast<RankedTensorType>(op.getX().getType()).getShape())
    result.push_back(ShapedType::isDynamic(extent) ? Element() : extent);
  return result;
}

Elements sliced(ktn::SliceOp op, unsigned depth) {
  Elements all = elementsOf(op.getX(), depth), result;
  auto count = cast<RankedTensorType>(op.getType()).getNumElements();
  for (int64_t i = 0; i < count; ++i) {
    int64_t position = op.getStarts()[0] + i * op.getStrides()[0];
    if (position >= static_cast<int64_t>(all.size()))
      return {};
    result.push_back(all[position]);
  }
  return result;
}

Elements joined(ktn::ConcatOp op, unsigned depth) {
  Elements result;
  for (Value part : op.getXs()) {
    Elements elements = elementsOf(part, depth);
    result.insert(result.end(), elements.begin(), elements.end());
  }
  return result;
}

Elements product(ktn::ProdOp op, unsigned depth) {
  Elements factors = elementsOf(op.getX(), depth);
  int64_t total = 1;
  for (const Element &factor : factors)
    if (!factor || llvm::MulOverflow(total, *factor, total))
      return {std::nullopt};
  return {total};
}

/// The elements of an integer tensor of at most one axis; empty when even
/// their number cannot be told.
Elements elementsOf(Value value, unsigned depth) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  Operation *op = value.getDefiningOp();
  if (depth == 0 || !op || !type || !type.hasStaticShape() ||
      type.getRank() > 1 || type.getNumElements() > maxElements ||
      !type.getElementType().isSignlessInteger())
    return {};
  int64_t count = type.getNumElements();
  auto found =
      llvm::TypeSwitch<Operation *, Elements>(op)
          .Case([&](ktn::ConstantOp constant) {
            Elements result;
            DenseIntElementsAttr integers;
            if (matchPattern(value, m_Constant(&integers)))
              for (const APInt &integer : integers.getValues<APInt>())
                result.push_back(integer.getSExtValue());
            return result;
          })
          .Case([&](ktn::ShapeOp shape) { return extents(shape); })
          .Case([&](ktn::SliceOp slice) { return sliced(slice, depth - 1); })
          .Case([&](ktn::ConcatOp concat) { return joined(concat, depth - 1); })
          .Case([&](ktn::ProdOp prod) { return product(prod, depth - 1); })
          .Case<ktn::ReshapeOp, ktn::SqueezeOp, ktn::ExpandDimsOp>(
              [&](auto view) { return elementsOf(view.getX(), depth - 1); })
          .Case([&](ktn::ScalarBodyOpInterface scalar) {
            return elementwise(scalar, count, depth - 1);
          })
          .Default(Elements());
  if (static_cast<int64_t>(found.size()) != count)
    found.assign(count, std::nullopt);
  return found;
}

} // namespace

std::vector<std::optional<int64_t>> knownElements(const Tensor &x) {
  if (!x.id())
    return {};
  Graph::Lock lock(Graph::ownerOf(x));
  return elementsOf(Graph::valueOf(x), maxDepth);
}

} // namespace keratin::backend
