//===- FoldPads.cpp - windows read around the border themselves -----------===//
//
//   p = pad(x)            =>   y = depthwise(x), in whose kernel the pad is
//   y = depthwise(p)
//
// What is computed in front of a window has the border around it, where it can
// be written there (PlaceParts) and is no small image, of which the border is
// much: that is one kernel with the window from the beginning (KernelGroups).
// Anything else, an argument of the function or a value that somebody else
// needs as it is, would be copied for it.
//
//===----------------------------------------------------------------------===//
#include "passes/FoldPads.h"
#include "ir/UnrolledTaps.h"
#include "passes/Frames.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <utility>

using namespace mlir;

namespace keratin {
#define GEN_PASS_DEF_FOLDPADS
#include "passes/Passes.h.inc"

/// Whether `expr` moves a window of known extents over one parallel loop of
/// `op`: sums of multiples of loops. Multiplies `taps` by the places of it.
static bool isWindow(linalg::GenericOp op, AffineExpr expr, int64_t &taps) {
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  unsigned parallel = 0;
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray())) {
    if (!expr.isFunctionOfDim(loop))
      continue;
    if (ShapedType::isDynamic(extents[loop]))
      return false;
    if (kind == utils::IteratorType::parallel)
      ++parallel;
    else
      taps = llvm::SaturatingMultiply<uint64_t>(taps, extents[loop]);
  }
  bool isSum =
      !expr.walk([](AffineExpr part) {
             bool fits = !isa<AffineBinaryOpExpr>(part) ||
                         part.getKind() == AffineExprKind::Add ||
                         part.getKind() == AffineExprKind::Mul;
             return fits ? WalkResult::advance() : WalkResult::interrupt();
           })
           .wasInterrupted();
  return parallel == 1 && isSum;
}

/// The only use of a padded argument but for questions how many images there
/// are, which have no border; null where there are more.
static OpOperand *onlyReader(BlockArgument padded, tensor::PadOp pad) {
  OpOperand *reader = nullptr;
  for (OpOperand &use : padded.getUses()) {
    if (auto size = dyn_cast<tensor::DimOp>(use.getOwner()))
      if (std::optional<int64_t> dim = size.getConstantIndex();
          dim && pad.getStaticLow()[*dim] == 0 &&
          pad.getStaticHigh()[*dim] == 0)
        continue;
    if (reader)
      return nullptr;
    reader = &use;
  }
  return reader;
}

uint64_t bytesOfPadded(tensor::PadOp pad) {
  RankedTensorType type = pad.getResultType();
  uint64_t bytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  for (int64_t extent : type.getShape())
    if (!ShapedType::isDynamic(extent))
      bytes = llvm::SaturatingMultiply<uint64_t>(bytes, extent);
  return bytes;
}

/// The places of a window of known extents that the reader `use` of what `pad`
/// makes moves over each axis that has a border; null where that is not all.
static std::optional<int64_t> tapsAtBorder(OpOperand &use, tensor::PadOp pad) {
  // Code for the border is up to eight times as much as the rest and takes
  // tenths of a second to compile. To copy an image takes as long as a window
  // of 3 x 3 does: from here on a microsecond.
  constexpr uint64_t leastBytes = 32 << 10;
  auto root = dyn_cast<linalg::GenericOp>(use.getOwner());
  if (bytesOfPadded(pad) < leastBytes || !root ||
      root.getNumReductionLoops() == 0 || !root.isDpsInput(&use))
    return std::nullopt;
  AffineMap map = root.getMatchingIndexingMap(&use);
  int64_t taps = 1;
  for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
    int64_t low = pad.getStaticLow()[dim], high = pad.getStaticHigh()[dim];
    if (low == 0 && high == 0)
      continue;
    if (ShapedType::isDynamic(low) || ShapedType::isDynamic(high) ||
        pad.getSourceType().isDynamicDim(dim) || dim + 1 == map.getNumResults())
      return std::nullopt;
    if (!isWindow(root, expr, taps))
      return std::nullopt;
  }
  return taps;
}

/// Those of the only reader of the argument `argument` of a window's kernel.
static std::optional<int64_t>
tapsAtBorder(func::FuncOp kernel, unsigned argument, tensor::PadOp pad) {
  auto kind = kernel->getAttrOfType<StringAttr>("ktn.kernel");
  if (!kind || (kind != "depthwise" && kind != "pool") ||
      kernel.getArgAttr(argument, "ktn.strides"))
    return std::nullopt;
  OpOperand *use = onlyReader(kernel.getArgument(argument), pad);
  return use ? tapsAtBorder(*use, pad) : std::nullopt;
}

bool readsAroundBorder(OpOperand &use, tensor::PadOp pad) {
  std::optional<int64_t> taps = tapsAtBorder(use, pad);
  return taps && *taps <= mostUnrolledTaps;
}

bool readsAroundBorder(func::FuncOp kernel, unsigned argument,
                       tensor::PadOp pad) {
  // Such as tiles unroll: then it is known of each tap where it reads.
  std::optional<int64_t> taps = tapsAtBorder(kernel, argument, pad);
  return taps && *taps <= mostUnrolledTaps;
}

/// Whether windows of many taps go over images of so many channels that what
/// they read of a line of them is copied in any case: then its border is, too.
static bool copiesBorder(func::FuncOp kernel, unsigned argument,
                         tensor::PadOp pad) {
  constexpr int64_t mostTaps = 256, fewChannels = 16, mostPixels = 3 << 9;
  std::optional<int64_t> taps = tapsAtBorder(kernel, argument, pad);
  if (!taps || *taps <= mostUnrolledTaps || *taps > mostTaps)
    return false;
  OpOperand *use = onlyReader(kernel.getArgument(argument), pad);
  auto root = cast<linalg::GenericOp>(use->getOwner());
  if (root.getNumResults() != 1)
    return false;
  AffineMap map = root.getMatchingIndexingMap(use);
  AffineMap made = root.getMatchingIndexingMap(root.getDpsInitOperand(0));
  Type element = getElementTypeOrSelf(root.getResult(0));
  auto channel = dyn_cast<AffineDimExpr>(map.getResults().back());
  if (!channel || made.getResults().back() != channel || !element.isF32())
    return false;
  for (OpOperand *operand : root.getDpsInputOperands()) {
    AffineMap read = root.getMatchingIndexingMap(operand);
    if (getElementTypeOrSelf(operand->get()) != element ||
        (read.isFunctionOfDim(channel.getPosition()) &&
         read.getResults().back() != channel))
      return false;
  }
  SmallVector<int64_t> extents = root.getStaticLoopRanges();
  int64_t channels = extents[channel.getPosition()];
  if (ShapedType::isDynamic(channels) || channels <= fewChannels)
    return false;
  // Pixels that some rows of windows read, which move along two axes; all
  // where they move along one.
  constexpr int64_t rows = 4;
  int64_t pixels = 1, axes = 0, first = 0;
  for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
    SmallVector<AffineExpr> last;
    bool isAxis = false;
    for (auto [loop, kind] : llvm::enumerate(root.getIteratorTypesArray())) {
      bool isTap = kind == utils::IteratorType::reduction;
      isAxis |= isTap && expr.isFunctionOfDim(loop);
      last.push_back(getAffineConstantExpr(isTap ? extents[loop] - 1 : rows - 1,
                                           kernel.getContext()));
    }
    if (!isAxis)
      continue;
    int64_t size = pad.getType().getDimSize(dim);
    auto reach = dyn_cast<AffineConstantExpr>(expr.replaceDims(last));
    if (ShapedType::isDynamic(size) || !reach || ++axes > 2)
      return false;
    if (axes == 1)
      first = std::exchange(size, std::min(size, reach.getValue() + 1));
    pixels = llvm::SaturatingMultiply<uint64_t>(pixels, size);
  }
  return (axes == 1 ? first : pixels) <= mostPixels;
}

namespace {
class Folder {
public:
  explicit Folder(ModuleOp module) : symbols(module) {}

  void run(func::FuncOp function);
  /// Kernels that are called no more.
  void eraseUnused(ModuleOp module);

private:
  bool fold(func::CallOp call, unsigned operand);
  func::FuncOp foldedKernel(func::FuncOp kernel, unsigned argument,
                            tensor::PadOp pad);

  SymbolTable symbols;
  llvm::DenseMap<std::tuple<Operation *, unsigned, Operation *>, func::FuncOp>
      known;
  llvm::SetVector<Operation *> replaced;
};
} // namespace

/// `kernel` with `pad` in front of what reads `argument`.
func::FuncOp Folder::foldedKernel(func::FuncOp kernel, unsigned argument,
                                  tensor::PadOp pad) {
  func::FuncOp &folded = known[{kernel, argument, pad}];
  if (folded)
    return folded;
  folded = kernel.clone();
  folded.setName((kernel.getName() + ".padded").str());
  symbols.insert(folded);
  BlockArgument source = folded.getArgument(argument);
  source.setType(pad.getSourceType());
  OpBuilder b = OpBuilder::atBlockBegin(&folded.front());
  IRMapping mapping;
  mapping.map(pad.getSource(), source);
  Operation *border = b.clone(*pad.getConstantPaddingValue().getDefiningOp());
  mapping.map(pad.getConstantPaddingValue(), border->getResult(0));
  Operation *copy = b.clone(*pad, mapping);
  source.replaceUsesWithIf(copy->getResult(0), [&](OpOperand &use) {
    return use.getOwner() != copy && !isa<tensor::DimOp>(use.getOwner());
  });
  folded.setType(b.getFunctionType(folded.front().getArgumentTypes(),
                                   folded.getResultTypes()));
  return folded;
}

bool Folder::fold(func::CallOp call, unsigned operand) {
  auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
  auto before = call.getOperand(operand).getDefiningOp<func::CallOp>();
  if (!kernel || kernel.isExternal() || !before || !before->hasOneUse())
    return false;
  auto frameKernel = symbols.lookup<func::FuncOp>(before.getCallee());
  std::optional<Frame> frame = frameOf(before, frameKernel);
  if (!frame || !frame->pad)
    return false;
  auto empty = before.getOperands().back().getDefiningOp<tensor::EmptyOp>();
  // A buffer with a number has parts that others write.
  if (!empty || empty->hasAttr("ktn.buffer") ||
      frameKernel.getArgAttr(0, "ktn.strides") ||
      !(readsAroundBorder(kernel, operand, frame->pad) ||
        copiesBorder(kernel, operand, frame->pad)))
    return false;
  call.setCallee(foldedKernel(kernel, operand, frame->pad).getName());
  call.setOperand(operand, frame->parts.front().value);
  replaced.insert(kernel);
  replaced.insert(frameKernel);
  before->erase();
  return true;
}

void Folder::run(func::FuncOp function) {
  for (auto call : llvm::to_vector(function.front().getOps<func::CallOp>())) {
    auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
    auto kind =
        kernel ? kernel->getAttrOfType<StringAttr>("ktn.kernel") : StringAttr();
    if (!kind || (kind != "depthwise" && kind != "pool"))
      continue;
    for (unsigned operand = 0; operand + 1 < call.getNumOperands(); ++operand)
      if (fold(call, operand))
        break;
  }
}

void Folder::eraseUnused(ModuleOp module) {
  for (Operation *kernel : replaced)
    if (SymbolTable::symbolKnownUseEmpty(kernel, module))
      symbols.erase(kernel);
}

namespace {
struct FoldPads : impl::FoldPadsBase<FoldPads> {
  void runOnOperation() override {
    Folder folder(getOperation());
    for (auto function : llvm::to_vector(getOperation().getOps<func::FuncOp>()))
      if (!function.isExternal() && !function->hasAttr("ktn.kernel"))
        folder.run(function);
    folder.eraseUnused(getOperation());
  }
};
} // namespace

} // namespace keratin
