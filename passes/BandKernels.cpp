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
#include "passes/BandPlan.h"
#include "passes/Bands.h"
#include "passes/FoldPads.h"
#include "passes/OpKinds.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace keratin {
#define GEN_PASS_DEF_BANDKERNELS
#include "passes/Passes.h.inc"

namespace {

/// The number of the first buffer of parts that is made here: those of
/// PlaceParts count from 0.
constexpr int64_t firstBuffer = int64_t(1) << 32;

struct BandRows;

/// Where a link finds what it reads for a band: the image, and its first row
/// there; what the link in front has computed, and how many rows of that come
/// before those that it reads.
struct BandPlace {
  Value image, first;
  Value between, skipped;
};

class Bander {
public:
  Bander(ModuleOp module, bool parallel, int64_t bandBytes)
      : module(module), symbols(module), parallel(parallel),
        bandBytes(bandBytes) {}

  void run(func::FuncOp function);
  /// Kernels that only whole images were computed with.
  void eraseUnused();

private:
  std::optional<Link> linkOf(func::CallOp call);
  std::optional<Link> linkBefore(Link &link);
  std::optional<Link> linkBehind(Link &link);
  void addBorderInFront(Chain &chain);
  std::optional<Chain> chainAround(func::CallOp call);
  void rewrite(Chain &chain, const BandPlan &plan);
  func::FuncOp bandKernel(KernelRows &rows, int64_t count, bool onlyBeside);
  func::CallOp callFor(OpBuilder &b, Link &link, const BandPlace &place,
                       Value offset, int64_t count, bool onlyBeside);
  Value emitKept(OpBuilder &b, Chain &chain, const BandPlan &plan,
                 size_t number, const BandPlace &place);
  Value emitBand(OpBuilder &b, Chain &chain, const BandPlan &plan,
                 const BandRows &rows, Value image);
  func::CallOp fillRows(OpBuilder &b, Link &link, Value &whole, int64_t first,
                        int64_t count);
  Value withBorder(OpBuilder &b, Link &last, Value whole);

  /// What is made of a kernel for so many rows: the same with all of the
  /// border, or without rows of it, or those rows alone.
  enum Variant : unsigned { Whole, OnlyBeside, Fill };

  ModuleOp module;
  SymbolTable symbols;
  bool parallel;
  int64_t bandBytes;
  llvm::DenseMap<std::tuple<Operation *, int64_t, unsigned>, func::FuncOp>
      known;
  llvm::SetVector<Operation *> replaced;
  int64_t buffers = 0; ///< that have borders
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
  Link link{call, std::move(*rows)};
  if (kernel->getAttrOfType<StringAttr>("ktn.kernel") == "conv")
    for (unsigned number = 0; number + 1 < call.getNumOperands(); ++number) {
      RowWindow window = link.rows.access(number).window;
      auto type = cast<RankedTensorType>(call.getOperand(number).getType());
      link.inTiles |= window.extent > 1 && window.factor == 1 &&
                      type.getShape().back() >= fewestChannelsOfTiles;
    }
  return link;
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

/// Whether the rows of all bands of `link` are what is wanted of it: what is
/// behind the chain reads the border, too, which is written around one image.
static bool canBeLast(Link &link) {
  return !link.rows.hasBorder() ||
         (link.type().getDimSize(0) == 1 &&
          link.rows.borderValue().getDefiningOp<arith::ConstantOp>());
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
  if (!behind || !canBeLast(*behind))
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
  pad->canGo = first.canGo;
  chain.insert(chain.begin(), std::move(*pad));
}

/// Whether `link` is a convolution whose window goes along the rows.
static bool isWindow(Link &link) {
  for (unsigned number = 0; number + 1 < link.call.getNumOperands(); ++number)
    if (!link.rows.access(number).window.isSame())
      return true;
  return false;
}

/// Whether `border` is nothing but that, which `window` does without.
static bool isLeftOut(Link &border, Link &window) {
  func::FuncOp kernel = border.rows.kernel();
  if (kernel->getAttrOfType<StringAttr>("ktn.kernel") != "pad" ||
      !kernel.getOps<linalg::GenericOp>().empty())
    return false;
  auto pads = kernel.getOps<tensor::PadOp>();
  return !pads.empty() &&
         readsAroundBorder(window.rows.kernel(), window.input, *pads.begin());
}

/// The chain with the window `call` in its middle, or what reduces rows.
std::optional<Chain> Bander::chainAround(func::CallOp call) {
  auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
  auto kind =
      kernel ? kernel->getAttrOfType<StringAttr>("ktn.kernel") : StringAttr();
  constexpr llvm::StringLiteral middles[] = {"depthwise", "pool", "reduce"};
  if (!kind || !llvm::is_contained(middles, kind.getValue()))
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
  if (!behind && !canBeLast(*window))
    return std::nullopt;
  if (!behind && !chain.empty() && isLeftOut(chain.front(), *window))
    return std::nullopt;
  chain.push_back(std::move(*window));
  if (behind)
    chain.push_back(std::move(*behind));
  if (chain.size() < 2)
    return std::nullopt;
  // One convolution behind another, of which the first is little work.
  if (std::optional<Link> first =
          chain.front().inTiles ? linkBefore(chain.front()) : std::nullopt;
      first && !first->inTiles && isWindow(*first)) {
    for (OpOperand &use : first->call->getUses())
      chain.front().input = use.getOperandNumber();
    first->canGo = true;
    chain.insert(chain.begin(), std::move(*first));
  }
  addBorderInFront(chain);
  return chain;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// The kernel for a band; `onlyBeside` where it writes to a buffer that has its
/// border once: the last of a chain to the whole image, others to rows that are
/// kept.
func::FuncOp Bander::bandKernel(KernelRows &rows, int64_t count,
                                bool onlyBeside) {
  onlyBeside &= rows.hasBorder();
  func::FuncOp &kernel =
      known[{rows.kernel(), count, onlyBeside ? OnlyBeside : Whole}];
  if (!kernel) {
    kernel = rows.clone(count, onlyBeside);
    kernel.setName((kernel.getName() + ".rows" + llvm::Twine(count)).str());
    symbols.insert(kernel);
  }
  return kernel;
}

/// A kernel that writes `value`, a constant, to all of a tensor of `type`.
static func::FuncOp makeFillKernel(Location loc, RankedTensorType type,
                                   Operation *value) {
  OpBuilder b(type.getContext());
  auto kernel = func::FuncOp::create(
      loc, "kernel", b.getFunctionType(TypeRange{type}, TypeRange{type}));
  kernel.setPrivate();
  kernel->setAttr("ktn.kernel", b.getStringAttr("fill"));
  b.setInsertionPointToStart(kernel.addEntryBlock());
  auto fill = linalg::FillOp::create(b, loc, b.clone(*value)->getResult(0),
                                     kernel.getArgument(0));
  func::ReturnOp::create(b, loc, fill.getResult(0));
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
  Value plus(Value value, int64_t more) { return plus(value, constant(more)); }
  Value plus(Value value, Value more) {
    return b.createOrFold<arith::AddIOp>(loc, value, more);
  }
  Value minus(Value value, Value less) {
    return b.createOrFold<arith::SubIOp>(loc, value, less);
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

/// `whole` with the rows that `call` computes, from row `first` on.
static Value insertRows(OpBuilder &b, func::CallOp call, Value whole,
                        OpFoldResult first) {
  Value part = call.getResult(0);
  auto type = cast<RankedTensorType>(part.getType());
  SmallVector<OpFoldResult> offsets(type.getRank(), b.getIndexAttr(0));
  SmallVector<OpFoldResult> ones(type.getRank(), b.getIndexAttr(1));
  offsets[1] = first;
  return tensor::InsertSliceOp::create(
      b, call.getLoc(), part, whole, offsets,
      getAsIndexOpFoldResult(b.getContext(), type.getShape()), ones);
}

/// Writes the border to `count` rows of `whole`, which `link` writes to, from
/// `first` on; nothing where there are none.
func::CallOp Bander::fillRows(OpBuilder &b, Link &link, Value &whole,
                              int64_t first, int64_t count) {
  if (count == 0)
    return {};
  Location loc = link.call.getLoc();
  auto type = cast<RankedTensorType>(whole.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[1] = count;
  type = type.clone(shape);
  func::FuncOp &kernel = known[{link.rows.kernel(), count, Fill}];
  if (!kernel) {
    kernel = makeFillKernel(loc, type, link.rows.borderValue().getDefiningOp());
    kernel.setName((link.call.getCallee() + ".fill").str());
    symbols.insert(kernel);
  }
  Value part = tensor::EmptyOp::create(b, loc, type, ValueRange());
  auto call = func::CallOp::create(b, loc, kernel, part);
  call->setAttr("ktn.flops", b.getDenseI64ArrayAttr({0, 0}));
  call->setAttr("ktn.bytes", b.getDenseI64ArrayAttr({bytesOf(type), 0}));
  whole = insertRows(b, call, whole, b.getIndexAttr(first));
  return call;
}

/// `whole`, the rows of `last` with what is beside them, and what the border
/// has in front of them and behind.
Value Bander::withBorder(OpBuilder &b, Link &last, Value whole) {
  fillRows(b, last, whole, 0, last.rows.low());
  fillRows(b, last, whole, last.rows.low() + last.rows.rows(),
           last.rows.high());
  return whole;
}

namespace {
/// The rows that a turn of the loop computes.
struct BandRows {
  SmallVector<Value> first; ///< of each link, in its image
  /// How many that the link in front computes come before those that a link
  /// reads: the last band begins early enough to be whole.
  SmallVector<Value> skipped;
};
} // namespace

/// How the number of a band leads to its first row of link `number`, by way of
/// the links behind.
static SmallVector<FirstRow> stepsTo(Chain &chain, const BandPlan &plan,
                                     size_t number) {
  int64_t count = plan.rows.back();
  SmallVector<FirstRow> steps = {{count, 0, chain.back().rows.rows() - count}};
  for (size_t link = chain.size() - 1; link-- > number;) {
    KernelRows &made = chain[link].rows;
    Link &next = chain[link + 1];
    steps.push_back(
        {next.rows.access(next.input).window.factor, made.low(), std::nullopt});
    // Without a border the window goes along with the rows.
    if (made.low() != 0 || made.high() != 0)
      steps.back().most = made.rows() - plan.rows[link];
  }
  return steps;
}

/// The rows of the band number `band` of an image.
static BandRows rowsOf(Sizes sizes, Chain &chain, const BandPlan &plan,
                       Value band) {
  BandRows result{SmallVector<Value>(chain.size()),
                  SmallVector<Value>(chain.size())};
  Value first = band;
  size_t link = chain.size();
  for (const FirstRow &step : stepsTo(chain, plan, 0)) {
    Value read = step.read(sizes.b, sizes.loc, first);
    first = step.made(sizes.b, sizes.loc, read);
    if (link < chain.size())
      result.skipped[link] = sizes.minus(read, first);
    result.first[--link] = first;
  }
  return result;
}

/// Calls a kernel of `link` for `count` of the rows of a band, from `offset`
/// on; `between` are the rows of the link in front.
func::CallOp Bander::callFor(OpBuilder &b, Link &link, const BandPlace &place,
                             Value offset, int64_t count, bool onlyBeside) {
  Sizes sizes{b, link.call.getLoc()};
  func::FuncOp kernel = bandKernel(link.rows, count, onlyBeside);
  SmallVector<Value> operands;
  for (unsigned index = 0; index + 1 < link.call.getNumOperands(); ++index) {
    const RowAccess &access = link.rows.access(index);
    RankedTensorType type = link.rows.typeOf(index, count);
    bool isBetween = place.between && index == link.input;
    Value row = isBetween ? place.skipped
                          : sizes.times(place.first, access.window.factor);
    row = sizes.plus(row, sizes.times(offset, access.window.factor));
    operands.push_back(
        slice(sizes, isBetween ? place.between : link.call.getOperand(index),
              type, access, isBetween ? sizes.constant(0) : place.image, row));
  }
  operands.push_back(tensor::EmptyOp::create(
      b, sizes.loc, kernel.getFunctionType().getResult(0), ValueRange()));
  auto call = func::CallOp::create(b, sizes.loc, kernel, operands);
  call->setAttr("ktn.flops", link.call->getAttr("ktn.flops"));
  call->setAttr("ktn.bytes", link.call->getAttr("ktn.bytes"));
  return call;
}

/// The rows of link `number` for a band, in a buffer in which those that the
/// band before has computed go to the beginning, and the others behind them.
Value Bander::emitKept(OpBuilder &b, Chain &chain, const BandPlan &plan,
                       size_t number, const BandPlace &place) {
  Link &link = chain[number];
  Location loc = link.call.getLoc();
  Sizes sizes{b, loc};
  int64_t low = link.rows.low(), count = plan.rows[number],
          kept = plan.kept[number];
  auto type = link.rows.typeOf(link.call.getNumOperands() - 1, count);
  auto empty = tensor::EmptyOp::create(b, loc, type, ValueRange());
  empty->setAttr("ktn.buffer", b.getI64IntegerAttr(firstBuffer + buffers++));
  Value whole = empty;
  auto compute = [&](Value offset, Value &buffer) {
    Value row = sizes.plus(offset, low); // known before the row is
    func::CallOp call = callFor(b, link, place, offset, 1, /*onlyBeside=*/true);
    buffer = insertRows(b, call, buffer, row);
    return call;
  };

  BandStart start;
  start.bands = chain.back().type().getDimSize(0) == 1 ? 0 : plan.bands;
  DictionaryAttr border = start.toAttr(b);
  start.apart = kept;
  start.steps = stepsTo(chain, plan, number);
  for (int64_t row = 0; row < kept; ++row) {
    func::CallOp call = compute(sizes.constant(row), whole);
    start.moved = row == 0 ? kept : 0; // all of them at once
    call->setAttr(startAttr, start.toAttr(b));
    for (llvm::StringRef work : {"ktn.flops", "ktn.bytes"})
      call->setAttr(work, b.getDenseI64ArrayAttr({0, 0}));
  }
  for (func::CallOp call :
       {fillRows(b, link, whole, 0, low),
        fillRows(b, link, whole, low + count, link.rows.high())})
    if (call)
      call->setAttr(startAttr, border);
  auto others =
      scf::ForOp::create(b, loc, sizes.constant(kept), sizes.constant(count),
                         sizes.constant(1), whole);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(others.getBody());
  Value filled = others.getRegionIterArgs()[0];
  compute(others.getInductionVar(), filled);
  scf::YieldOp::create(b, loc, filled);
  return others.getResult(0);
}

/// Calls the kernels of the chain for a band of `image`; the rows of the last.
Value Bander::emitBand(OpBuilder &b, Chain &chain, const BandPlan &plan,
                       const BandRows &rows, Value image) {
  Value result, none = Sizes{b, chain.back().call.getLoc()}.constant(0);
  for (auto [number, link] : llvm::enumerate(chain)) {
    BandPlace place{image, rows.first[number], result, rows.skipped[number]};
    bool isLast = &link == &chain.back();
    result = plan.kept[number] != 0
                 ? emitKept(b, chain, plan, number, place)
                 : callFor(b, link, place, none, plan.rows[number], isLast)
                       .getResult(0);
  }
  return result;
}

/// What `ktn.bands` says of the loop.
static DictionaryAttr describe(OpBuilder &b, Chain &chain, int64_t pieces) {
  std::string name;
  for (Link &link : chain)
    name += (name.empty() ? "" : "+") + layerOf(link.call).str();
  return b.getDictionaryAttr(
      {b.getNamedAttr("name", b.getStringAttr(name)),
       b.getNamedAttr("flops", sumOf(b, chain, "ktn.flops")),
       b.getNamedAttr("bytes", sumOf(b, chain, "ktn.bytes")),
       b.getNamedAttr("pieces", b.getI64IntegerAttr(pieces))});
}

void Bander::rewrite(Chain &chain, const BandPlan &plan) {
  func::CallOp last = chain.back().call;
  OpBuilder b(last);
  Location loc = last.getLoc();
  Sizes sizes{b, loc};
  auto empty = last.getOperands().back().getDefiningOp<tensor::EmptyOp>();
  RankedTensorType whole = chain.back().type();
  Value images = whole.isDynamicDim(0) ? Value(empty.getDynamicSizes()[0])
                                       : sizes.constant(whole.getDimSize(0));
  Value total = sizes.times(images, plan.bands);
  Value target =
      tensor::EmptyOp::create(b, loc, whole, empty.getDynamicSizes());
  if (chain.back().rows.hasBorder()) // it is made in parts
    target.getDefiningOp()->setAttr(
        "ktn.buffer", b.getI64IntegerAttr(firstBuffer + buffers++));
  auto loop = scf::ForOp::create(b, loc, sizes.constant(0), total,
                                 sizes.constant(1), target);
  b.setInsertionPointToStart(loop.getBody());

  Value turn = loop.getInductionVar(), image = sizes.constant(0), band = turn;
  if (whole.getDimSize(0) != 1) {
    Value bands = sizes.constant(plan.bands);
    image = b.createOrFold<arith::DivUIOp>(loc, turn, bands);
    band = b.createOrFold<arith::RemUIOp>(loc, turn, bands);
  }
  BandRows rows = rowsOf(sizes, chain, plan, band);
  // Known before the rows are computed, which are made in their place.
  Value place = sizes.plus(rows.first.back(), chain.back().rows.low());
  Value made = emitBand(b, chain, plan, rows, image);
  auto part = cast<RankedTensorType>(made.getType());
  SmallVector<OpFoldResult> offsets(part.getRank(), b.getIndexAttr(0));
  SmallVector<OpFoldResult> ones(part.getRank(), b.getIndexAttr(1));
  offsets[0] = getAsOpFoldResult(image);
  offsets[1] = getAsOpFoldResult(place);
  Value joined = tensor::InsertSliceOp::create(
      b, loc, made, loop.getRegionIterArgs()[0], offsets,
      getAsIndexOpFoldResult(b.getContext(), part.getShape()), ones);
  scf::YieldOp::create(b, loc, joined);

  loop->setAttr(bandsAttr,
                describe(b, chain, parallel ? piecesOf(chain, plan) : 1));
  b.setInsertionPointAfter(loop);
  last.getResult(0).replaceAllUsesWith(
      withBorder(b, chain.back(), loop.getResult(0)));
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
    std::optional<BandPlan> bands =
        chain ? planBands(*chain, bandBytes) : std::nullopt;
    if (!bands && chain && chain->front().canGo) {
      llvm::erase_if(*chain, [](const Link &link) { return link.canGo; });
      addBorderInFront(*chain);
      bands = planBands(*chain, bandBytes);
    }
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
    Bander bander(getOperation(), parallel, int64_t(bandKiB) << 10);
    for (auto function : llvm::to_vector(getOperation().getOps<func::FuncOp>()))
      if (!function.isExternal() && !function->hasAttr("ktn.kernel"))
        bander.run(function);
    bander.eraseUnused();
  }
};
} // namespace

} // namespace keratin
