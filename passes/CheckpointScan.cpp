//===- CheckpointScan.cpp - loops that keep few states --------------------===//
#include "passes/Passes.h"

#include "ir/Ktn.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace keratin {
#define GEN_PASS_DEF_CHECKPOINTSCAN
#include "passes/Passes.h.inc"

namespace {

/// A loop of T steps as a loop over T / k chunks of k steps, and one over the
/// steps that are left. Chunks go in the order in which the steps went.
class Split {
public:
  Split(ktn::ScanOp scan, int64_t chunk)
      : scan(scan), b(scan), chunk(chunk), steps(scan.getStepCount()) {}

  LogicalResult run() {
    int64_t rest = steps % chunk;
    // The first steps are in front, or behind when they go backwards.
    int64_t begin = scan.getReverse() ? rest : 0;
    FailureOr<ktn::ScanOp> chunks = makeChunks(begin);
    if (failed(chunks))
      return failure();
    SmallVector<Value> states(chunks->getFinalStates());
    SmallVector<Value> outputs;
    for (Value stack : chunks->getStackedOutputs())
      outputs.push_back(reshapeSteps(stack, {steps - rest}, /*dropped=*/2));
    if (rest > 0 && failed(appendRest(rest, states, outputs)))
      return failure();
    llvm::append_range(states, outputs);
    scan->replaceAllUsesWith(states);
    scan->erase();
    return success();
  }

private:
  Location loc() { return scan.getLoc(); }
  static RankedTensorType typeOf(Value value) {
    return cast<RankedTensorType>(value.getType());
  }

  /// `x` with the first `dropped` axes replaced by ones of extents `leading`.
  Value reshapeSteps(Value x, ArrayRef<int64_t> leading, int64_t dropped) {
    SmallVector<int64_t> target(leading);
    llvm::append_range(target, typeOf(x).getShape().drop_front(dropped));
    if (llvm::count_if(target, ShapedType::isDynamic) < 2)
      return ktn::ReshapeOp::create(b, loc(), x, target);
    // Several unknown extents need to be told.
    auto known = RankedTensorType::get({static_cast<int64_t>(leading.size())},
                                       b.getI64Type());
    Value front = ktn::ConstantOp::create(
        b, loc(), DenseElementsAttr::get(known, leading));
    int64_t rank = typeOf(x).getRank();
    Value shape = ktn::ShapeOp::create(b, loc(), x);
    Value back = ktn::SliceOp::create(b, loc(), shape, {dropped}, {rank}, {1});
    Value all = ktn::ConcatOp::create(b, loc(), ValueRange{front, back}, 0);
    return ktn::ReshapeOp::create(b, loc(), x, all, target);
  }

  /// Steps `begin` to `end` of x.
  Value cut(Value x, int64_t begin, int64_t end) {
    SmallVector<int64_t> starts(typeOf(x).getRank(), 0),
        strides(starts.size(), 1);
    SmallVector<int64_t> ends(typeOf(x).getShape());
    starts[0] = begin;
    ends[0] = end;
    return ktn::SliceOp::create(b, loc(), x, starts, ends, strides);
  }

  /// The same steps on other operands.
  FailureOr<ktn::ScanOp> makeLoop(OpBuilder &builder, ValueRange xs,
                                  ValueRange init, int64_t length) {
    auto body = std::make_unique<Region>();
    IRMapping mapping;
    scan.getBody().cloneInto(body.get(), mapping);
    return ktn::ScanOp::createChecked(builder, loc(), xs, init,
                                      xs.empty() ? std::optional(length)
                                                 : std::nullopt,
                                      scan.getReverse(), std::move(body));
  }

  FailureOr<ktn::ScanOp> makeChunks(int64_t begin) {
    int64_t count = steps / chunk;
    SmallVector<Value> xs;
    for (Value x : scan.getXs())
      xs.push_back(reshapeSteps(cut(x, begin, begin + count * chunk),
                                {count, chunk}, /*dropped=*/1));
    auto body = std::make_unique<Region>();
    Block &block = body->emplaceBlock();
    OpBuilder inside(b.getContext());
    inside.setInsertionPointToEnd(&block);
    SmallVector<Value> slices, states;
    for (Value x : xs)
      slices.push_back(block.addArgument(
          typeOf(x).clone(typeOf(x).getShape().drop_front()), loc()));
    for (Value start : scan.getInit())
      states.push_back(block.addArgument(start.getType(), loc()));
    FailureOr<ktn::ScanOp> inner = makeLoop(inside, slices, states, chunk);
    if (failed(inner))
      return failure();
    ktn::YieldOp::create(inside, loc(), inner->getResults());
    return ktn::ScanOp::createChecked(b, loc(), xs, scan.getInit(),
                                      xs.empty() ? std::optional(count)
                                                 : std::nullopt,
                                      scan.getReverse(), std::move(body));
  }

  LogicalResult appendRest(int64_t rest, SmallVectorImpl<Value> &states,
                           SmallVectorImpl<Value> &outputs) {
    bool reverse = scan.getReverse();
    SmallVector<Value> xs;
    for (Value x : scan.getXs())
      xs.push_back(reverse ? cut(x, 0, rest) : cut(x, steps - rest, steps));
    FailureOr<ktn::ScanOp> last = makeLoop(b, xs, states, rest);
    if (failed(last))
      return failure();
    states.assign(last->getFinalStates().begin(), last->getFinalStates().end());
    for (auto [output, stack] :
         llvm::zip_equal(outputs, last->getStackedOutputs())) {
      SmallVector<Value> parts{output, stack};
      if (reverse)
        std::swap(parts[0], parts[1]);
      output = ktn::ConcatOp::create(b, loc(), parts, 0);
    }
    return success();
  }

  ktn::ScanOp scan;
  OpBuilder b;
  int64_t chunk, steps;
};

struct CheckpointScan : impl::CheckpointScanBase<CheckpointScan> {
  using Base::Base;

  void runOnOperation() override {
    bool hasGradients = false;
    SmallVector<ktn::ScanOp> scans;
    getOperation().walk([&](Operation *op) {
      hasGradients |= isa<ktn::GradientsOp>(op);
      if (auto scan = dyn_cast<ktn::ScanOp>(op))
        scans.push_back(scan);
    });
    if (!hasGradients)
      return;
    for (ktn::ScanOp scan : scans) {
      int64_t chunk = scan.getCheckpointEvery().value_or(checkpointEvery);
      int64_t steps = scan.getStepCount();
      if (chunk > 1 && !ShapedType::isDynamic(steps) && chunk < steps &&
          failed(Split(scan, chunk).run()))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace keratin
