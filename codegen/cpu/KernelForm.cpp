//===- KernelForm.cpp - what a kernel may look like -----------------------===//
#include "codegen/cpu/KernelForm.h"

#include "codegen/cpu/Kernel.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/CheckedArithmetic.h"

using namespace mlir;

namespace keratin {

static bool isNumber(Type type) { return type.isIntOrIndexOrFloat(); }

/// What models compute with; there are no signs any more.
static bool isElement(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type))
    return integer.isSignless() &&
           llvm::is_contained({1u, 8u, 16u, 32u, 64u}, integer.getWidth());
  return type.isIndex() || type.isF16() || type.isBF16() || type.isF32() ||
         type.isF64();
}

/// Whether `type` is a tensor of elements.
static bool isTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && isElement(tensor.getElementType());
}

/// Whether the elements of `type` can be counted in bits.
static bool isCountable(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  std::optional<int64_t> bits = 64;
  if (tensor)
    for (int64_t extent : tensor.getShape())
      if (!ShapedType::isDynamic(extent) && extent != 0)
        bits = bits ? llvm::checkedMul(*bits, extent) : std::nullopt;
  return bits.has_value();
}

/// Whether `op` computes numbers from numbers and does nothing else.
static bool isArithmetic(Operation &op) {
  return op.getNumRegions() == 0 && isMemoryEffectFree(&op) &&
         llvm::all_of(op.getOperandTypes(), isNumber) &&
         llvm::all_of(op.getResultTypes(), isNumber);
}

static LogicalResult verifySignature(func::FuncOp kernel) {
  if (!isa_and_nonnull<StringAttr>(kernel->getAttr(kernelAttr)))
    return kernel.emitError("the kind of a kernel is a string");
  if (!llvm::hasSingleElement(kernel.getBody()))
    return kernel.emitError("a kernel has one block");
  if (!isa<func::ReturnOp>(kernel.front().getTerminator()))
    return kernel.emitError("a kernel ends in a return");
  unsigned results = kernel.getNumResults();
  if (results == 0 || results > kernel.getNumArguments())
    return kernel.emitError("a kernel has a destination for each result");
  for (auto [number, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    if (!isTensor(type) && !isNumber(type))
      return kernel.emitError("argument #")
             << number << " is a " << type
             << ", neither a number nor a tensor of numbers";
    if (!isCountable(type))
      return kernel.emitError("argument #")
             << number << " is a " << type
             << ", more bytes than a process can address";
  }
  for (auto [result, destination] :
       llvm::zip_equal(kernel.getResultTypes(),
                       kernel.getArgumentTypes().take_back(results)))
    if (!isTensor(result) || result != destination)
      return kernel.emitError("result ")
             << result << " has the destination " << destination;
  return success();
}

/// Whether `use` of the destination of result `number` leaves its elements to
/// what the kernel writes there.
static bool isWritten(OpOperand &use, unsigned number) {
  Operation *user = use.getOwner();
  if (isa<func::ReturnOp>(user))
    return use.getOperandNumber() == number;
  if (auto generic = dyn_cast<linalg::GenericOp>(user))
    return generic.isDpsInit(&use) &&
           generic.getMatchingBlockArgument(&use).use_empty();
  return isa<linalg::FillOp, tensor::DimOp>(user);
}

static LogicalResult verifyDestinations(func::FuncOp kernel) {
  unsigned first = kernel.getNumArguments() - kernel.getNumResults();
  for (unsigned number = 0; number < kernel.getNumResults(); ++number) {
    if (kernel.getArgAttr(first + number, "ktn.constant"))
      return kernel.emitError("the destination of result #")
             << number << " is a constant";
    for (OpOperand &use : kernel.getArgument(first + number).getUses())
      if (!isWritten(use, number))
        return use.getOwner()->emitError("reads the destination of result #")
               << number << ", which has no elements yet";
  }
  return success();
}

/// Bodies compute numbers; those of a generic also read elements of tensors.
static LogicalResult verifyBody(Block &body, bool readsTensors) {
  for (Operation &op : body.without_terminator()) {
    if (auto extract = dyn_cast<tensor::ExtractOp>(op);
        extract && readsTensors &&
        extract.getTensor().getParentBlock() != &body)
      continue;
    if (!isArithmetic(op))
      return op.emitError("is not an op of the body of a kernel's op");
  }
  return success();
}

/// Whether a position is made of sums, products by constants and quotients that
/// exist, with no constant beyond all tensors.
static bool isPosition(AffineExpr expr) {
  constexpr int64_t largest = int64_t(1) << 40;
  WalkResult walk = expr.walk([](AffineExpr part) {
    bool fits = true;
    if (auto constant = dyn_cast<AffineConstantExpr>(part))
      fits = -largest <= constant.getValue() && constant.getValue() <= largest;
    else if (auto binary = dyn_cast<AffineBinaryOpExpr>(part);
             binary && part.getKind() != AffineExprKind::Add) {
      auto right = dyn_cast<AffineConstantExpr>(binary.getRHS());
      fits = right &&
             (part.getKind() == AffineExprKind::Mul || right.getValue() > 0);
    }
    return fits ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !walk.wasInterrupted();
}

static LogicalResult verifyGeneric(linalg::GenericOp op) {
  for (AffineMap map : op.getIndexingMapsArray())
    if (!llvm::all_of(map.getResults(), isPosition))
      return op.emitError("reads at positions that are not of any tensor: ")
             << AffineMapAttr::get(map);
  return verifyBody(*op.getBody(), /*readsTensors=*/true);
}

static LogicalResult verifyDim(tensor::DimOp op) {
  auto type = dyn_cast<RankedTensorType>(op.getSource().getType());
  std::optional<int64_t> axis = op.getConstantIndex();
  if (!type || !axis || *axis < 0 || *axis >= type.getRank())
    return op.emitError("is not the extent of a known axis");
  return success();
}

static LogicalResult verifyView(Operation &op) {
  if (!isa<BlockArgument>(op.getOperand(0)))
    return op.emitError("a kernel reshapes nothing but its arguments");
  // Its size may be computed only after the view is needed.
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op);
      expand && !expand.getOutputShape().empty())
    return op.emitError("a kernel computes no extents of its views");
  return success();
}

static LogicalResult verifyPad(tensor::PadOp op) {
  for (ArrayRef<int64_t> borders : {op.getStaticLow(), op.getStaticHigh()})
    for (int64_t border : borders)
      if (!ShapedType::isDynamic(border) && (border < 0 || border > INT32_MAX))
        return op.emitError("has a border of ") << border << " elements";
  return verifyBody(*op.getBody(), /*readsTensors=*/false);
}

static LogicalResult verifyOp(Operation &op) {
  for (Type type :
       llvm::concat<Type>(op.getOperandTypes(), op.getResultTypes())) {
    if (!isTensor(type) && !isNumber(type))
      return op.emitError("is not an op of a kernel: it has a ") << type;
    if (!isCountable(type))
      return op.emitError("has a ")
             << type << ", more bytes than a process can address";
  }
  if (auto dim = dyn_cast<tensor::DimOp>(op))
    return verifyDim(dim);
  if (isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(op))
    return verifyView(op);
  if (auto pad = dyn_cast<tensor::PadOp>(op))
    return verifyPad(pad);
  if (auto generic = dyn_cast<linalg::GenericOp>(op))
    return verifyGeneric(generic);
  if (isArithmetic(op) ||
      isa<linalg::FillOp, tensor::EmptyOp, tensor::ConcatOp>(op))
    return success();
  return op.emitError("is not an op of a kernel");
}

LogicalResult verifyKernel(func::FuncOp kernel) {
  if (failed(verifySignature(kernel)))
    return failure();
  for (Operation &op : kernel.front().without_terminator())
    if (failed(verifyOp(op)))
      return failure();
  return verifyDestinations(kernel);
}

} // namespace keratin
