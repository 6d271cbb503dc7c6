//===- BandKernels.cpp - large images go from kernel to kernel by bands ---===//
//
//   t = expand(x)                for band:
//   y = depthwise(t)       =>      t = expand(rows of x)
//   z = project(y)                 y = depthwise(rows of t)
//                                  rows of z = project(y)
//
// All bands have the same number of rows, so that there is one kernel of each
// kind. What computes the rows in front of a window with a border has the
// border around the rows of the band, and the window moves over it at the ends
// of the image:
//
//   border  00000                   00000
//   rows    xxxxx <- the first      xxxxx <- all others but the last
//           xxxxx    window         xxxxx
//   border  00000                   00000
//
// The last band begins early enough to be whole.
//
//===----------------------------------------------------------------------===//
#include "passes/Bands.h"
#include "passes/FoldPads.h"
#include "passes/KernelRows.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace keratin {
#define GEN_PASS_DEF_BANDKERNELS
#include "passes/Passes.h.inc"

namespace {

/// Bytes between kernels that stay where they are: less than that is in a
/// second cache anyway.
constexpr int64_t largeBytes = 3 << 19;
/// Bytes between the kernels of a band.
constexpr int64_t bandBytes = 1 << 20;
/// FLOPs that a core does while a byte goes to the third cache or comes back.
constexpr int64_t flopsOfByte = 4;
/// Bands that are done at the same time: enough for few threads, more where
/// their buffers are a part of what whole images would take.
constexpr int64_t fewestPieces = 4, mostPieces = 16, partOfWhole = 2;

/// A call in a chain: its result is operand `input` of the next one.
struct Link {
  func::CallOp call;
  KernelRows rows;
  unsigned input = 0; ///< the operand that is the result of the link before

  RankedTensorType type() {
    return cast<RankedTensorType>(call.getResult(0).getType());
  }
  /// Bytes of so many rows of an image of the result, with what is around them;
  /// what overflows is large.
  int64_t bytesOf(int64_t count) {
    RankedTensorType band = rows.typeOf(call.getNumOperands() - 1, count);
    uint64_t bytes = llvm::divideCeil(band.getElementTypeBitWidth(), 8);
    for (int64_t extent : band.getShape())
      bytes = llvm::SaturatingMultiply<uint64_t>(bytes, extent);
    return int64_t(std::min<uint64_t>(bytes, uint64_t(1) << 60));
  }
};
using Chain = SmallVector<Link, 3>;

/// How many rows each link of a chain computes for a band, and how many bands
/// an image has.
struct BandPlan {
  SmallVector<int64_t> rows;
  int64_t bands = 0;
};

class Bander {
public:
  Bander(ModuleOp module, bool parallel)
      : module(module), symbols(module), parallel(parallel) {}

  void run(func::FuncOp function);
  /// Kernels that only whole images were computed with.
  void eraseUnused();

private:
  std::optional<Link> linkOf(func::CallOp call);
  std::optional<Link> linkBefore(Link &link);
  std::optional<Link> linkBehind(Link &link);
  void addBorderInFront(Chain &chain);
  std::optional<Chain> chainAround(func::CallOp call);
  std::optional<BandPlan> plan(Chain &chain);
  int64_t piecesOf(Chain &chain, const BandPlan &plan);
  void rewrite(Chain &chain, const BandPlan &plan);
  func::FuncOp bandKernel(KernelRows &rows, int64_t count);

  ModuleOp module;
  SymbolTable symbols;
  bool parallel;
  llvm::DenseMap<std::pair<Operation *, int64_t>, func::FuncOp> known;
  llvm::SetVector<Operation *> replaced;
};

} // namespace

//===----------------------------------------------------------------------===//
// Chains
//===----------------------------------------------------------------------===//

std::optional<Link> Bander::linkOf(func::CallOp call) {
  auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
  if (!kernel || !kernel->hasAttr("ktn.kernel") || call.getNumResults() != 1)
    return std::nullopt;
  // A part of something else has its place already.
  auto empty = call.getOperands().back().getDefiningOp<tensor::EmptyOp>();
  if (!empty || empty->hasAttr("ktn.buffer"))
    return std::nullopt;
  std::optional<KernelRows> rows = KernelRows::of(kernel);
  if (!rows)
    return std::nullopt;
  // Sums over windows that overlap are computed by tiles of the image, which
  // bands would cut elsewhere.
  if (kernel->getAttrOfType<StringAttr>("ktn.kernel") == "conv")
    for (unsigned number = 0; number + 1 < call.getNumOperands(); ++number) {
      RowWindow window = rows->access(number).window;
      if (window.extent > 1 && window.factor == 1)
        return std::nullopt;
    }
  return Link{call, std::move(*rows)};
}

/// What computes the rows that a window of `link` goes over, for it alone.
std::optional<Link> Bander::linkBefore(Link &link) {
  for (unsigned number = 0; number + 1 < link.call.getNumOperands(); ++number) {
    const RowAccess &access = link.rows.access(number);
    auto call = link.call.getOperand(number).getDefiningOp<func::CallOp>();
    if (access.batch != 0 || access.row != 1 || !call ||
        call->getBlock() != link.call->getBlock() || !call->hasOneUse())
      continue;
    if (std::optional<Link> before = linkOf(call))
      return before;
  }
  return std::nullopt;
}

/// What computes each row from the same row of `link`, which nobody else needs.
std::optional<Link> Bander::linkBehind(Link &link) {
  if (!link.call->hasOneUse())
    return std::nullopt;
  OpOperand &use = *link.call->use_begin();
  auto call = dyn_cast<func::CallOp>(use.getOwner());
  if (!call || call->getBlock() != link.call->getBlock() ||
      use.getOperandNumber() + 1 == call.getNumOperands())
    return std::nullopt;
  std::optional<Link> behind = linkOf(call);
  if (!behind || behind->rows.hasBorder())
    return std::nullopt;
  behind->input = use.getOperandNumber();
  const RowAccess &access = behind->rows.access(behind->input);
  if (access.batch != 0 || access.row != 1 || !access.window.isSame())
    return std::nullopt;
  return behind;
}

/// Puts a pad that only the first link reads, with its own window, in front of
/// it: what it copies goes no farther than the second cache.
void Bander::addBorderInFront(Chain &chain) {
  Link &first = chain.front();
  std::optional<Link> pad = linkBefore(first);
  if (!pad ||
      pad->rows.kernel()->getAttrOfType<StringAttr>("ktn.kernel") != "pad")
    return;
  for (OpOperand &use : pad->call->getUses())
    first.input = use.getOperandNumber();
  chain.insert(chain.begin(), std::move(*pad));
}

/// Whether `border` is nothing but that, which `window` does without.
static bool isLeftOut(Link &border, Link &window) {
  func::FuncOp kernel = border.rows.kernel();
  if (kernel->getAttrOfType<StringAttr>("ktn.kernel") != "pad")
    return false;
  auto pads = kernel.getOps<tensor::PadOp>();
  return !pads.empty() &&
         readsAroundBorder(window.rows.kernel(), window.input, *pads.begin());
}

/// The chain with the window `call` in its middle.
std::optional<Chain> Bander::chainAround(func::CallOp call) {
  auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
  auto kind =
      kernel ? kernel->getAttrOfType<StringAttr>("ktn.kernel") : StringAttr();
  if (!kind || (kind != "depthwise" && kind != "pool"))
    return std::nullopt;
  std::optional<Link> window = linkOf(call);
  if (!window)
    return std::nullopt;
  Chain chain;
  if (std::optional<Link> before = linkBefore(*window)) {
    for (OpOperand &use : before->call->getUses())
      window->input = use.getOperandNumber();
    chain.push_back(std::move(*before));
  }
  std::optional<Link> behind = linkBehind(*window);
  // What is behind the chain reads the border too.
  if (!behind && window->rows.hasBorder())
    return std::nullopt;
  if (!behind && !chain.empty() && isLeftOut(chain.front(), *window))
    return std::nullopt;
  chain.push_back(std::move(*window));
  if (behind)
    chain.push_back(std::move(*behind));
  if (chain.size() < 2)
    return std::nullopt;
  addBorderInFront(chain);
  return chain;
}

//===----------------------------------------------------------------------===//
// Rows of a band
//===----------------------------------------------------------------------===//

/// Rows that each link computes for `count` rows of the last.
static SmallVector<int64_t> rowsOfLinks(Chain &chain, int64_t count) {
  SmallVector<int64_t> rows(chain.size(), count);
  for (size_t link = chain.size() - 1; link-- > 0;) {
    Link &next = chain[link + 1];
    rows[link] =
        std::min(next.rows.access(next.input).window.count(rows[link + 1]),
                 chain[link].rows.rows());
  }
  return rows;
}

/// The bands that take the least time, if that is less than without.
std::optional<BandPlan> Bander::plan(Chain &chain) {
  int64_t rows = chain.back().rows.rows();
  int64_t images = chain.back().type().getDimSize(0);
  // An image of an unknown number may be the only one.
  if (ShapedType::isDynamic(images))
    images = 1;
  int64_t between = 0;
  for (Link &link : chain)
    if (&link != &chain.back())
      between += link.bytesOf(link.rows.rows());
  constexpr int64_t mostRows = 1 << 20;
  if (rows > mostRows ||
      between > INT64_MAX / 64 / std::max<int64_t>(images, 1) ||
      between * images < largeBytes)
    return std::nullopt;

  std::optional<BandPlan> best;
  int64_t least = 0;
  for (int64_t count = 1; count <= rows; ++count) {
    BandPlan plan{rowsOfLinks(chain, count), (rows + count - 1) / count};
    int64_t bytes = 0, flops = 0;
    for (auto [link, part] : llvm::zip_equal(chain, plan.rows)) {
      flops += link.rows.flopsOfRow() * part;
      if (&link != &chain.back())
        bytes += link.bytesOf(part);
    }
    if (bytes > bandBytes)
      break;
    int64_t turns = plan.bands * images;
    if (turns < 2)
      continue;
    // Threads have the same number of bands each; what is computed does not
    // depend on whether there are any.
    int64_t time = flops * int64_t(llvm::alignTo(turns, 4));
    if (!best || time <= least) {
      best = std::move(plan);
      least = time;
    }
  }
  if (!best)
    return std::nullopt;
  int64_t again = 0;
  for (auto [link, part] : llvm::zip_equal(chain, best->rows))
    again += link.rows.flopsOfRow() * (part * best->bands - link.rows.rows());
  // Each byte goes there and back; half of that should be won.
  if (again > between * flopsOfByte)
    return std::nullopt;
  return best;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

func::FuncOp Bander::bandKernel(KernelRows &rows, int64_t count) {
  func::FuncOp &kernel = known[{rows.kernel(), count}];
  if (!kernel) {
    kernel = rows.clone(count);
    kernel.setName((kernel.getName() + ".rows" + llvm::Twine(count)).str());
    symbols.insert(kernel);
  }
  return kernel;
}

namespace {
/// Arithmetic on sizes that are known or computed in the loop.
struct Sizes {
  OpBuilder &b;
  Location loc;

  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Value times(Value value, int64_t factor) {
    return b.createOrFold<arith::MulIOp>(loc, value, constant(factor));
  }
  Value plus(Value value, int64_t more) {
    return b.createOrFold<arith::AddIOp>(loc, value, constant(more));
  }
  Value clamp(Value value, int64_t least, int64_t most) {
    value = b.createOrFold<arith::MaxSIOp>(loc, value, constant(least));
    return b.createOrFold<arith::MinSIOp>(loc, value, constant(most));
  }
};
} // namespace

/// The part of `whole` that a band of `type` reads, from `image` and `row` on
/// along the axes of `access`.
static Value slice(Sizes sizes, Value whole, RankedTensorType type,
                   const RowAccess &access, Value image, Value row) {
  if ((access.batch < 0 && access.row < 0) ||
      (type == whole.getType() && isZeroInteger(row) && isZeroInteger(image)))
    return whole;
  OpBuilder &b = sizes.b;
  SmallVector<OpFoldResult> offsets(type.getRank(), b.getIndexAttr(0));
  SmallVector<OpFoldResult> ones(type.getRank(), b.getIndexAttr(1));
  if (access.batch >= 0)
    offsets[access.batch] = getAsOpFoldResult(image);
  if (access.row >= 0)
    offsets[access.row] = getAsOpFoldResult(row);
  return tensor::ExtractSliceOp::create(
      b, sizes.loc, type, whole, offsets,
      getAsIndexOpFoldResult(b.getContext(), type.getShape()), ones);
}

/// The sum of an attribute such as `ktn.flops` over the calls.
static Attribute sumOf(OpBuilder &b, Chain &chain, llvm::StringRef name) {
  int64_t sum[2] = {0, 0};
  for (Link &link : chain)
    if (auto work = link.call->getAttrOfType<DenseI64ArrayAttr>(name);
        work && work.size() == 2)
      for (unsigned part : {0, 1})
        if (llvm::AddOverflow(sum[part], work[part], sum[part]))
          sum[part] = INT64_MAX;
  return b.getDenseI64ArrayAttr(sum);
}

static llvm::StringRef layerOf(func::CallOp call) {
  auto name = dyn_cast<NameLoc>(call.getLoc());
  return name ? name.getName().strref() : call.getCallee();
}

/// How many bands may be done at the same time, with buffers for each.
int64_t Bander::piecesOf(Chain &chain, const BandPlan &plan) {
  if (!parallel)
    return 1;
  int64_t ofBand = 1, ofImage = 0;
  for (auto [link, part] : llvm::zip_equal(chain, plan.rows))
    if (&link != &chain.back()) {
      ofBand += link.bytesOf(part);
      ofImage += link.bytesOf(link.rows.rows());
    }
  int64_t images = chain.back().type().getDimSize(0);
  if (ShapedType::isDynamic(images))
    return mostPieces;
  uint64_t bands = llvm::SaturatingMultiply<uint64_t>(plan.bands, images);
  uint64_t pieces = llvm::SaturatingMultiply<uint64_t>(ofImage, images) /
                    ofBand / partOfWhole;
  pieces = std::clamp<uint64_t>(llvm::alignDown(pieces, fewestPieces),
                                fewestPieces, mostPieces);
  return int64_t(std::min(pieces, bands));
}

void Bander::rewrite(Chain &chain, const BandPlan &plan) {
  func::CallOp last = chain.back().call;
  OpBuilder b(last);
  Location loc = last.getLoc();
  Sizes sizes{b, loc};
  auto empty = last.getOperands().back().getDefiningOp<tensor::EmptyOp>();
  RankedTensorType whole = chain.back().type();
  int64_t count = plan.rows.back(), rows = whole.getDimSize(1);
  Value images = whole.isDynamicDim(0) ? Value(empty.getDynamicSizes()[0])
                                       : sizes.constant(whole.getDimSize(0));
  Value total = sizes.times(images, plan.bands);
  Value target =
      tensor::EmptyOp::create(b, loc, whole, empty.getDynamicSizes());
  auto loop = scf::ForOp::create(b, loc, sizes.constant(0), total,
                                 sizes.constant(1), target);
  b.setInsertionPointToStart(loop.getBody());

  // The first rows of the band in each link, and in what it reads.
  Value turn = loop.getInductionVar(), image = sizes.constant(0), band = turn;
  if (whole.getDimSize(0) != 1) {
    Value bands = sizes.constant(plan.bands);
    image = b.createOrFold<arith::DivUIOp>(loc, turn, bands);
    band = b.createOrFold<arith::RemUIOp>(loc, turn, bands);
  }
  SmallVector<Value> first(chain.size()), offset(chain.size());
  first.back() = sizes.clamp(sizes.times(band, count), 0, rows - count);
  for (size_t link = chain.size() - 1; link-- > 0;) {
    Link &next = chain[link + 1];
    KernelRows &made = chain[link].rows;
    RowWindow window = next.rows.access(next.input).window;
    Value read = sizes.times(first[link + 1], window.factor);
    // Without a border the window goes along with the rows.
    first[link] = read;
    if (made.low() != 0 || made.high() != 0)
      first[link] = sizes.clamp(sizes.plus(read, -made.low()), 0,
                                made.rows() - plan.rows[link]);
    offset[link + 1] = b.createOrFold<arith::SubIOp>(loc, read, first[link]);
  }

  std::string name;
  Value result;
  for (auto [number, link] : llvm::enumerate(chain)) {
    int64_t part = plan.rows[number];
    func::FuncOp kernel = bandKernel(link.rows, part);
    SmallVector<Value> operands;
    for (unsigned index = 0; index + 1 < link.call.getNumOperands(); ++index) {
      const RowAccess &access = link.rows.access(index);
      RankedTensorType type = link.rows.typeOf(index, part);
      bool isBetween = number != 0 && index == link.input;
      Value row = isBetween ? offset[number]
                            : sizes.times(first[number], access.window.factor);
      operands.push_back(
          slice(sizes, isBetween ? result : link.call.getOperand(index), type,
                access, isBetween ? sizes.constant(0) : image, row));
    }
    operands.push_back(tensor::EmptyOp::create(
        b, loc, kernel.getFunctionType().getResult(0), ValueRange()));
    auto call = func::CallOp::create(b, link.call.getLoc(), kernel, operands);
    call->setAttr("ktn.flops", link.call->getAttr("ktn.flops"));
    call->setAttr("ktn.bytes", link.call->getAttr("ktn.bytes"));
    result = call.getResult(0);
    name += (name.empty() ? "" : "+") + layerOf(link.call).str();
  }
  auto part = cast<RankedTensorType>(result.getType());
  SmallVector<OpFoldResult> offsets(part.getRank(), b.getIndexAttr(0));
  SmallVector<OpFoldResult> ones(part.getRank(), b.getIndexAttr(1));
  offsets[0] = getAsOpFoldResult(image);
  offsets[1] = getAsOpFoldResult(first.back());
  Value joined = tensor::InsertSliceOp::create(
      b, loc, result, loop.getRegionIterArgs()[0], offsets,
      getAsIndexOpFoldResult(b.getContext(), part.getShape()), ones);
  scf::YieldOp::create(b, loc, joined);

  loop->setAttr(bandsAttr,
                b.getDictionaryAttr(
                    {b.getNamedAttr("name", b.getStringAttr(name)),
                     b.getNamedAttr("flops", sumOf(b, chain, "ktn.flops")),
                     b.getNamedAttr("bytes", sumOf(b, chain, "ktn.bytes")),
                     b.getNamedAttr("pieces", b.getI64IntegerAttr(
                                                  piecesOf(chain, plan)))}));
  last.getResult(0).replaceAllUsesWith(loop.getResult(0));
  for (Link &link : llvm::reverse(chain)) {
    replaced.insert(link.rows.kernel());
    link.call->erase();
  }
}

void Bander::run(func::FuncOp function) {
  // Outside of loops, which are sequences; they have small steps.
  SmallVector<func::CallOp> calls(function.front().getOps<func::CallOp>());
  llvm::DenseSet<Operation *> erased;
  for (func::CallOp call : calls) {
    if (erased.contains(call))
      continue;
    std::optional<Chain> chain = chainAround(call);
    std::optional<BandPlan> bands = chain ? plan(*chain) : std::nullopt;
    if (!bands)
      continue;
    for (Link &link : *chain)
      erased.insert(link.call);
    rewrite(*chain, *bands);
  }
}

void Bander::eraseUnused() {
  for (Operation *kernel : replaced)
    if (SymbolTable::symbolKnownUseEmpty(kernel, module))
      symbols.erase(kernel);
}

namespace {
struct BandKernels : impl::BandKernelsBase<BandKernels> {
  using Base::Base;

  void runOnOperation() override {
    Bander bander(getOperation(), parallel);
    for (auto function : llvm::to_vector(getOperation().getOps<func::FuncOp>()))
      if (!function.isExternal() && !function->hasAttr("ktn.kernel"))
        bander.run(function);
    bander.eraseUnused();
  }
};
} // namespace

} // namespace keratin
