//===- WinogradForm.cpp - what is a sum over windows ----------------------===//
#include "codegen/cpu/Winograd.h"
#include "ir/FloatProducts.h"

#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;

namespace keratin {

static int64_t saturatingProduct(int64_t one, int64_t other) {
  uint64_t product = llvm::SaturatingMultiply(uint64_t(one), uint64_t(other));
  return int64_t(
      std::min<uint64_t>(product, std::numeric_limits<int64_t>::max()));
}

int64_t WindowConv::outerPlaces() const {
  int64_t places = 1;
  for (const OuterAxis &axis : outer)
    places = saturatingProduct(places, axis.extent);
  return places;
}

int64_t WindowConv::outerTaps() const {
  int64_t taps = 1;
  for (const OuterAxis &axis : outer)
    taps *= axis.taps;
  return taps;
}

namespace {
/// Reads a root as a WindowConv.
class WindowReader {
public:
  WindowReader(Kernel &kernel, linalg::GenericOp root)
      : kernel(kernel), root(root) {}

  std::optional<WindowConv> readConvolution();
  std::optional<WindowConv> readGradient();

private:
  /// One that windows have, with its loops.
  struct Axis {
    unsigned loop, tap;
    int64_t extent, taps;
  };

  bool isSumOfProducts();
  bool haveType(Type element);
  bool readWeights();
  bool readImages(AffineMap map);
  bool readWindows(AffineMap map);
  std::optional<TransformedAxis> transformed(const Axis &axis, AffineExpr expr,
                                             int64_t inputExtent);
  void pickAxes();
  bool hasFewPieces();
  bool readInput();
  bool isReadInOrder(OpOperand *operand, unsigned lane);
  bool canBeCounted();
  std::optional<unsigned> loopAt(AffineMap map, unsigned position);
  int64_t extent(unsigned loop) { return staticLoopExtent(root, loop); }

  Kernel &kernel;
  linalg::GenericOp root;
  WindowConv conv;
  SmallVector<Axis, 3> axes;
};
} // namespace

std::optional<unsigned> WindowReader::loopAt(AffineMap map, unsigned position) {
  if (auto dim = dyn_cast<AffineDimExpr>(map.getResult(position)))
    return dim.getPosition();
  return std::nullopt;
}

/// A sum of products of floats of one type, or of bf16, that starts at zero.
bool WindowReader::isSumOfProducts() {
  Type element = getElementTypeOrSelf(root.getResult(0));
  return isFloatProduct(root) && (element.isF32() || element.isF64()) &&
         startsFromZero(root) &&
         (haveType(element) ||
          (element.isF32() && onlyWidensFactors(root) &&
           haveType(BFloat16Type::get(root.getContext()))));
}

bool WindowReader::haveType(Type element) {
  return llvm::all_of(root.getDpsInputs(), [&](Value input) {
    return getElementTypeOrSelf(input) == element;
  });
}

/// [.., c, k] of windows with one to three axes. Loops of one turn are not
/// among the coordinates of the emitters.
bool WindowReader::readWindows(AffineMap map) {
  unsigned rank = map.getNumResults();
  if (rank < 3 || rank > 5 || !map.isProjectedPermutation())
    return false;
  conv.channel = *loopAt(map, rank - 2);
  conv.filter = *loopAt(map, rank - 1);
  conv.channels = extent(conv.channel);
  conv.filters = extent(conv.filter);
  axes.clear();
  for (unsigned axis = 0; axis < rank - 2; ++axis) {
    unsigned tap = *loopAt(map, axis);
    axes.push_back({/*loop=*/0, tap, /*extent=*/0, extent(tap)});
  }
  return conv.channels > 1 && conv.filters > 1;
}

bool WindowReader::readWeights() {
  for (OpOperand *operand : root.getDpsInputOperands()) {
    auto argument = dyn_cast<BlockArgument>(operand->get());
    if (!argument || !argument.hasOneUse() ||
        !readWindows(root.getMatchingIndexingMap(operand)))
      continue;
    conv.factor = operand;
    conv.input = root.getDpsInputOperand(operand->getOperandNumber() == 0);
    conv.hasKnownWeights =
        bool(kernel.from().getArgAttr(argument.getArgNumber(), "ktn.constant"));
    return true;
  }
  return false;
}

/// [n, .., k] or [.., k] with as many axes as windows have.
bool WindowReader::readImages(AffineMap map) {
  unsigned rank = map.getNumResults(), inner = unsigned(axes.size()) + 1;
  if (rank < inner || rank > inner + 1 || !map.isProjectedPermutation() ||
      root.getNumLoops() != rank + inner ||
      loopAt(map, rank - 1) != conv.filter || map.isFunctionOfDim(conv.channel))
    return false;
  for (auto [number, axis] : llvm::enumerate(axes)) {
    if (map.isFunctionOfDim(axis.tap))
      return false;
    axis.loop = *loopAt(map, rank - inner + unsigned(number));
    axis.extent = extent(axis.loop);
  }
  conv.image = std::nullopt;
  conv.images = 1;
  if (rank > inner && extent(*loopAt(map, 0)) != 1) {
    conv.image = loopAt(map, 0);
    int64_t known = extent(*conv.image);
    conv.images = ShapedType::isDynamic(known) ? std::nullopt
                                               : std::optional<int64_t>(known);
  }
  return conv.images.value_or(1) > 0;
}

static AffineExpr placeAlong(const TransformedAxis &axis,
                             MLIRContext *context) {
  return canonical(getAffineDimExpr(*axis.loop, context) * axis.stride +
                   getAffineDimExpr(*axis.tap, context) * axis.dilation);
}

/// `axis` where it has pixels for tiles, and two taps or more for each of the
/// pixels by which windows move.
std::optional<TransformedAxis> WindowReader::transformed(const Axis &axis,
                                                         AffineExpr expr,
                                                         int64_t inputExtent) {
  if (axis.extent < 2 || axis.taps < 2)
    return std::nullopt;
  MLIRContext *context = root.getContext();
  auto valueAt = [&](int64_t loop, int64_t tap) -> int64_t {
    AffineExpr value = expr.replace({{getAffineDimExpr(axis.loop, context),
                                      getAffineConstantExpr(loop, context)},
                                     {getAffineDimExpr(axis.tap, context),
                                      getAffineConstantExpr(tap, context)}});
    auto known = dyn_cast<AffineConstantExpr>(canonical(value));
    return known ? known.getValue() : 0;
  };
  TransformedAxis result;
  result.loop = axis.loop;
  result.tap = axis.tap;
  result.extent = axis.extent;
  result.taps = axis.taps;
  result.inputExtent = inputExtent;
  result.stride = valueAt(1, 0);
  result.dilation = valueAt(0, 1);
  if (std::min(result.stride, result.dilation) != 1 ||
      axis.taps < 2 * result.stride)
    return std::nullopt;
  bool isFound =
      canonical(expr) == placeAlong(result, context) &&
      (inputExtent - 1 - result.dilation * (axis.taps - 1)) / result.stride >=
          axis.extent - 1;
  return isFound ? std::optional(result) : std::nullopt;
}

/// The last two axes of tiles, of those that can be, in `down` and `across`.
/// Those with two taps for a pixel by which windows move gain less than others,
/// and are among the channels where there is one.
void WindowReader::pickAxes() {
  AffineMap map = root.getMatchingIndexingMap(conv.input);
  auto type = cast<RankedTensorType>(conv.input->get().getType());
  SmallVector<TransformedAxis, 3> found;
  SmallVector<int64_t, 3> numbers;
  bool hasMany = false;
  conv.outer.clear();
  for (auto [number, axis] : llvm::enumerate(axes)) {
    std::optional<TransformedAxis> along;
    for (auto [position, expr] : llvm::enumerate(map.getResults()))
      if (!along)
        along = transformed(axis, expr, type.getDimSize(position));
    if (!along)
      continue;
    bool isOfMany = along->taps > 2 * along->stride;
    if (hasMany && !isOfMany)
      continue;
    if (isOfMany && !hasMany) {
      found.clear();
      numbers.clear();
    }
    hasMany |= isOfMany;
    found.push_back(*along);
    numbers.push_back(int64_t(number));
  }
  conv.weightAxes.assign(numbers.end() - std::min<size_t>(numbers.size(), 2),
                         numbers.end());
  conv.across = found.empty() ? TransformedAxis() : found.back();
  conv.down = found.size() < 2 ? TransformedAxis() : found[found.size() - 2];
  auto several = [](unsigned loop, int64_t turns) {
    return turns > 1 ? std::optional(loop) : std::nullopt;
  };
  for (auto [number, axis] : llvm::enumerate(axes))
    if (!llvm::is_contained(conv.weightAxes, number))
      conv.outer.push_back({several(axis.loop, axis.extent),
                            several(axis.tap, axis.taps), axis.extent,
                            axis.taps});
}

/// All pieces of a tile wait for products. Of three taps there are most.
bool WindowReader::hasFewPieces() {
  int64_t most = conv.down.isThere() ? 16 : 96;
  constexpr int64_t mostTaps = 16;
  auto pieces = [](const TransformedAxis &axis) {
    return TileForm().piecesOf(axis.taps, axis.stride);
  };
  for (const OuterAxis &axis : conv.outer)
    if (axis.extent < 1 || axis.taps < 1 || axis.taps > mostTaps)
      return false;
  return conv.outerTaps() <= mostTaps &&
         std::max(conv.down.taps, conv.across.taps) <= 3 * most &&
         pieces(conv.down) * pieces(conv.across) <= most;
}

/// x[n, z(d, t), h + i, w + j, c]
bool WindowReader::readInput() {
  pickAxes();
  if (!conv.across.isThere() || !hasFewPieces())
    return false;
  if (conv.images)
    conv.images = saturatingProduct(*conv.images, conv.outerPlaces());
  MLIRContext *context = root.getContext();
  SmallVector<unsigned> loops = {conv.filter, conv.channel};
  SmallVector<AffineExpr> known = {getAffineDimExpr(conv.channel, context)};
  for (const TransformedAxis &axis : {conv.down, conv.across})
    if (axis.isThere()) {
      loops.append({*axis.loop, *axis.tap});
      known.push_back(placeAlong(axis, context));
    }
  size_t seen = 0;
  AffineMap map = root.getMatchingIndexingMap(conv.input);
  for (AffineExpr expr : map.getResults()) {
    if (llvm::is_contained(known, canonical(expr)))
      ++seen;
    else if (llvm::any_of(loops, [&](unsigned loop) {
               return expr.isFunctionOfDim(loop);
             }))
      return false;
  }
  return seen == known.size();
}

/// Whether neighbours along `lane` are neighbours in memory.
bool WindowReader::isReadInOrder(OpOperand *operand, unsigned lane) {
  return llvm::none_of(accessesOf(kernel, root), [&](const Access &access) {
    return access.operand == operand &&
           laneAccess(cast<ShapedType>(access.tensor.getType()),
                      access.position, lane) == LaneAccess::Gather;
  });
}

/// Whether no cost overflows. What does not fit in memory is refused later.
bool WindowReader::canBeCounted() {
  constexpr double mostChannels = 1 << 24;
  constexpr double mostProducts = 1e15;
  double channels = double(conv.outerTaps()) * double(conv.down.taps) *
                    double(conv.across.taps) * double(conv.channels);
  double products = double(conv.images.value_or(conv.outerPlaces())) *
                    double(conv.down.extent) * double(conv.across.extent) *
                    channels * double(conv.filters);
  return std::max(channels, double(conv.filters)) <= mostChannels &&
         products <= mostProducts;
}

std::optional<WindowConv> WindowReader::readConvolution() {
  OpOperand *output = root.getDpsInitOperand(0);
  if (isSumOfProducts() && readWeights() &&
      root.getNumReductionLoops() == axes.size() + 1 &&
      readImages(root.getMatchingIndexingMap(output)) && readInput() &&
      isReadInOrder(conv.input, conv.channel) && canBeCounted())
    return conv;
  return std::nullopt;
}

std::optional<WindowConv> WindowReader::readGradient() {
  OpOperand *output = root.getDpsInitOperand(0);
  if (!isSumOfProducts() || !readWindows(root.getMatchingIndexingMap(output)) ||
      root.getNumParallelLoops() != axes.size() + 2)
    return std::nullopt;
  conv.hasKnownWeights = false;
  for (OpOperand *operand : root.getDpsInputOperands()) {
    conv.factor = operand;
    conv.input = root.getDpsInputOperand(operand->getOperandNumber() == 0);
    if (readImages(root.getMatchingIndexingMap(operand)) && readInput() &&
        isReadInOrder(conv.input, conv.channel) &&
        isReadInOrder(conv.factor, conv.filter) && canBeCounted())
      return conv;
  }
  return std::nullopt;
}

std::optional<WindowConv> readConvolution(Kernel &kernel,
                                          linalg::GenericOp root) {
  return WindowReader(kernel, root).readConvolution();
}

std::optional<WindowConv> readWindowGradient(Kernel &kernel,
                                             linalg::GenericOp root) {
  return WindowReader(kernel, root).readGradient();
}

} // namespace keratin
