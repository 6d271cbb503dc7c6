//===- KernelGroups.cpp - which ops are computed together -----------------===//
#include "passes/KernelGroups.h"

#include "passes/Attention.h"
#include "passes/FoldPads.h"
#include "passes/KernelLimits.h"
#include "passes/OpKinds.h"
#include "passes/PlaceParts.h"
#include "passes/SplitGates.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace keratin {

//===----------------------------------------------------------------------===//
// What an op is
//===----------------------------------------------------------------------===//

/// Fills that only start accumulators belong to the ops that accumulate.
static bool onlyStartsAccumulators(linalg::FillOp fill) {
  return llvm::all_of(fill->getUses(), [](OpOperand &use) {
    auto generic = dyn_cast<linalg::GenericOp>(use.getOwner());
    return generic && generic.isDpsInit(&use);
  });
}

bool isKernelOp(Operation *op) {
  if (auto fill = dyn_cast<linalg::FillOp>(op))
    return !onlyStartsAccumulators(fill);
  return isa<linalg::GenericOp, tensor::PadOp, tensor::ConcatOp>(op);
}

/// Whether what `op` joins can be written in its places by the kernels that
/// make it, which is done outside of loops (passes/PlaceParts).
static bool writesPieces(Operation *op) {
  return isa<tensor::ConcatOp>(op) && isa<func::FuncOp>(op->getParentOp()) &&
         llvm::all_of(op->getOperandTypes(), [](Type piece) {
           return canBeSlice(cast<RankedTensorType>(piece));
         });
}

//===----------------------------------------------------------------------===//
// Grouping
//===----------------------------------------------------------------------===//

namespace {
class Grouper {
public:
  Grouper(Block &block) : block(block) {
    for (auto [index, op] : llvm::enumerate(block))
      position[&op] = index;
  }

  using Members = llvm::SmallSetVector<Operation *, 8>;

  SmallVector<KernelGroup> run(bool fuse);

private:
  bool isFree(Operation *op) const {
    return op->getBlock() == &block && isKernelOp(op) && !grouped.contains(op);
  }
  void finish(const Members &members, llvm::StringRef kind);

  bool followsInRegisters(linalg::GenericOp consumer, Value value,
                          const Members &members) const;
  bool joinsWider(linalg::GenericOp consumer, Value value) const;
  Operation *nextInRegisters(const Members &members) const;
  Operation *transposeOf(const Members &members) const;
  Operation *movesTiles(const Members &members) const;
  void growEpilogue(Members &members);
  void formAttention(ArrayRef<Operation *> ops);
  bool hasRoomFor(Operation *op, const Members &members) const;
  bool join(Operation *op, Members &members) const;
  bool growTogether(Members &members) const;
  void growBeside(Members &members) const;
  void keepGatesInside(Members &members) const;
  void growPad(Members &members);
  bool isReadAround(tensor::PadOp pad) const;
  void growWindow(Members &members);
  void growRows(Members &members);
  void absorbProducers(Members &members);
  bool dependsOn(Operation *op, const Members &members) const;
  bool readsAtOwnPosition(linalg::GenericOp consumer, Value value) const;

  Block &block;
  llvm::DenseMap<Operation *, unsigned> position;
  llvm::DenseSet<Operation *> grouped;
  SmallVector<KernelGroup> groups;
  llvm::DenseMap<Operation *, unsigned> groupOf;
};

/// Operands of `op` and what its regions capture.
void forEachInput(Operation *op, llvm::function_ref<void(Value)> visit) {
  for (Value operand : op->getOperands())
    visit(operand);
  for (Region &region : op->getRegions())
    visitUsedValuesDefinedAbove(region,
                                [&](OpOperand *use) { visit(use->get()); });
}

/// Whether `op` needs `members` through an op that is not one of them. Then it
/// cannot be computed together with them.
bool Grouper::dependsOn(Operation *op, const Members &members) const {
  unsigned first = ~0u;
  for (Operation *member : members)
    first = std::min(first, position.lookup(member));
  llvm::DenseSet<Operation *> seen;
  SmallVector<Operation *> worklist;
  // An op before all members can be of a group that goes on after them.
  auto canDepend = [&](Operation *op) {
    auto group = groupOf.find(op);
    Operation *last =
        group == groupOf.end() ? op : groups[group->second].ops.back();
    return position.lookup(last) > first;
  };
  auto push = [&](Operation *user) {
    forEachInput(user, [&](Value input) {
      Operation *def = input.getDefiningOp();
      def = def ? block.findAncestorOpInBlock(*def) : nullptr;
      if (def && canDepend(def) && !members.contains(def) &&
          seen.insert(def).second)
        worklist.push_back(def);
    });
  };
  push(op);
  while (!worklist.empty()) {
    Operation *def = worklist.pop_back_val();
    bool direct = false;
    forEachInput(def, [&](Value input) {
      if (Operation *source = input.getDefiningOp())
        direct |= members.contains(source);
    });
    if (direct)
      return true;
    // An op of another group is computed with all of that group.
    if (auto group = groupOf.find(def); group != groupOf.end())
      for (Operation *other : groups[group->second].ops)
        if (seen.insert(other).second)
          worklist.push_back(other);
    push(def);
  }
  return false;
}

/// Whether a kernel of `members` and `op` stays within the limits.
bool Grouper::hasRoomFor(Operation *op, const Members &members) const {
  size_t ops = countScalarOps(op);
  llvm::SmallDenseSet<Value> inputs;
  auto addInputs = [&](Operation *reader) {
    for (Value operand : reader->getOperands())
      if (Operation *def = operand.getDefiningOp();
          !def || !members.contains(def))
        inputs.insert(operand);
  };
  addInputs(op);
  for (Operation *member : members) {
    ops += countScalarOps(member);
    addInputs(member);
  }
  return ops <= mostScalarOps && inputs.size() <= mostInputs;
}

/// Whether each use of `value` by `consumer` is as an input, at the position of
/// the element that is computed.
bool Grouper::readsAtOwnPosition(linalg::GenericOp consumer,
                                 Value value) const {
  bool captured = false;
  visitUsedValuesDefinedAbove(consumer.getRegion(), [&](OpOperand *use) {
    captured |= use->get() == value;
  });
  if (captured)
    return false;
  return llvm::all_of(consumer->getOpOperands(), [&](OpOperand &use) {
    return use.get() != value ||
           (consumer.isDpsInput(&use) &&
            consumer.getMatchingIndexingMap(&use).isIdentity());
  });
}

/// Whether `consumer` follows from `value`, the last of `members`, while that
/// is in registers: it is read at the position that is computed, or all of its
/// gates are.
bool Grouper::followsInRegisters(linalg::GenericOp consumer, Value value,
                                 const Members &members) const {
  auto onlyGates = [&](Value v) {
    return llvm::all_of(v.getUsers(), [&](Operation *user) {
      auto reader = dyn_cast<linalg::GenericOp>(user);
      return reader && readsGates(reader, v);
    });
  };
  if (!readsAtOwnPosition(consumer, value) &&
      !(readsGates(consumer, value) && onlyGates(value) &&
        isProduct(cast<linalg::GenericOp>(members.front()))))
    return false;
  // Values of earlier members are no longer in registers at this point unless
  // they too are read at the same position.
  return llvm::all_of(members, [&](Operation *member) {
    return llvm::all_of(member->getResults(), [&](Value v) {
      return !llvm::is_contained(consumer->getOperands(), v) || v == value ||
             (readsGates(consumer, v) && onlyGates(v)) ||
             (isElementwise(member) && readsAtOwnPosition(consumer, v));
    });
  });
}

/// Whether `consumer` is better off with the kernel of another root, which
/// comes later and whose value is wider than `value`: the narrow one is what
/// goes through memory.
bool Grouper::joinsWider(linalg::GenericOp consumer, Value value) const {
  auto bits = [](Value tensor) {
    return getElementTypeOrSelf(tensor).getIntOrFloatBitWidth();
  };
  return llvm::any_of(consumer.getDpsInputs(), [&](Value other) {
    if (bits(other) <= bits(value))
      return false;
    auto root = other.getDefiningOp<linalg::GenericOp>();
    return root && isFree(root) && !isElementwise(root) &&
           position.lookup(root) > position.lookup(value.getDefiningOp()) &&
           other.hasOneUse() && readsAtOwnPosition(consumer, other);
  });
}

/// The first op that follows from the last one while that is in registers.
Operation *Grouper::nextInRegisters(const Members &members) const {
  Operation *last = members.back();
  if (last->getNumResults() != 1)
    return nullptr;
  Value value = last->getResult(0);
  Operation *next = nullptr;
  for (Operation *user : value.getUsers()) {
    if (!isFree(user) || !isElementwise(user) || dependsOn(user, members))
      continue;
    auto consumer = cast<linalg::GenericOp>(user);
    if (readsElsewhere(consumer) || consumer->getNumResults() != 1 ||
        !followsInRegisters(consumer, value, members) ||
        joinsWider(consumer, value))
      continue;
    if (!next || position.lookup(user) < position.lookup(next))
      next = user;
  }
  return next && hasRoomFor(next, members) ? next : nullptr;
}

void Grouper::growEpilogue(Members &members) {
  while (members.back()->getNumResults() == 1) {
    if (Operation *next = nextInRegisters(members))
      members.insert(next);
    else if (Operation *next = movesTiles(members))
      members.insert(next);
    else if (!growTogether(members))
      break;
  }
  keepGatesInside(members);
  growPad(members);
}

/// Whether `op`, one of `members`, reads gates of `value`, which is computed by
/// another.
static bool readsGatesInside(linalg::GenericOp op, Value value,
                             const Grouper::Members &members) {
  Operation *def = value.getDefiningOp();
  return def && members.contains(def) && readsGates(op, value);
}

/// A tile of gates writes the sums of its product, and what has no gates. Where
/// something else reads another value with gates, as of halves of activated
/// channels that go different ways, what reads gates is of other kernels, and
/// so is what was added since.
void Grouper::keepGatesInside(Members &members) const {
  auto escapes = [&](Value value) {
    return value.getDefiningOp() != members.front() &&
           llvm::any_of(value.getUsers(), [&](Operation *user) {
             return !members.contains(user);
           });
  };
  for (size_t number = 0; number < members.size(); ++number) {
    auto op = dyn_cast<linalg::GenericOp>(members[number]);
    if (!op || llvm::none_of(op.getDpsInputs(), [&](Value value) {
          return readsGatesInside(op, value, members) && escapes(value);
        }))
      continue;
    while (members.size() > number)
      members.pop_back();
    number = 0; // what was dropped may have been all that read another one
  }
}

/// Adds `op` to `members`, and before it the ops that lead from them to it.
/// Fails where one of these is not elementwise or reads a value of the group
/// elsewhere than at its own position; `members` may have grown by then.
bool Grouper::join(Operation *op, Members &members) const {
  if (!isFree(op) || !isElementwise(op) || op->getNumResults() != 1)
    return false;
  auto consumer = cast<linalg::GenericOp>(op);
  if (readsElsewhere(consumer) || !hasRoomFor(op, members))
    return false;
  for (Value operand : consumer->getOperands()) {
    Operation *def = operand.getDefiningOp();
    if (!def || members.contains(def) || !isKernelOp(def))
      continue;
    bool follows = llvm::any_of(def->getOperands(), [&](Value input) {
      return input.getDefiningOp() && members.contains(input.getDefiningOp());
    });
    if ((follows || dependsOn(def, members)) && !join(def, members))
      return false;
  }
  bool inPlace = llvm::all_of(members, [&](Operation *member) {
    return llvm::all_of(member->getResults(), [&](Value v) {
      return readsAtOwnPosition(consumer, v);
    });
  });
  if (inPlace)
    members.insert(op);
  return inPlace;
}

/// Grows `members` by a reader of its last value that needs others of its
/// readers, and by those: a step of an optimizer makes several values of a
/// gradient, and the new weights of all of them.
bool Grouper::growTogether(Members &members) const {
  SmallVector<Operation *> readers(members.back()->getUsers());
  llvm::sort(readers, [&](Operation *a, Operation *b) {
    return position.lookup(a) < position.lookup(b);
  });
  for (Operation *reader : readers) {
    auto consumer = dyn_cast<linalg::GenericOp>(reader);
    if (!consumer || joinsWider(consumer, members.back()->getResult(0)))
      continue;
    Members grown = members;
    if (join(reader, grown) && llvm::none_of(grown, [&](Operation *op) {
          return dependsOn(op, grown);
        })) {
      members = std::move(grown);
      return true;
    }
  }
  return false;
}

/// Takes into a group of elementwise ops such producers that others read, too,
/// and that read what the group reads: that comes from memory once, as a
/// gradient does of which an optimizer makes two averages, and what they make
/// is not read again.
void Grouper::growBeside(Members &members) const {
  auto isReadInside = [&](Value value) {
    return isa<RankedTensorType>(value.getType()) &&
           llvm::any_of(members, [&](Operation *member) {
             auto reader = cast<linalg::GenericOp>(member);
             return llvm::is_contained(reader.getDpsInputs(), value) &&
                    readsAtOwnPosition(reader, value);
           });
  };
  for (size_t number = 0; number < members.size(); ++number) {
    auto consumer = cast<linalg::GenericOp>(members[number]);
    for (Value operand : consumer.getDpsInputs()) {
      auto producer = operand.getDefiningOp<linalg::GenericOp>();
      if (!producer || members.contains(producer) || !isFree(producer) ||
          !isElementwise(producer) || producer->getNumResults() != 1 ||
          readsElsewhere(producer) || !readsAtOwnPosition(consumer, operand) ||
          !hasRoomFor(producer, members) ||
          llvm::none_of(producer.getDpsInputs(), [&](Value input) {
            return isReadInside(input) && readsAtOwnPosition(producer, input);
          }))
        continue;
      Members grown = members;
      grown.insert(producer);
      if (llvm::none_of(grown,
                        [&](Operation *op) { return dependsOn(op, grown); }))
        members = std::move(grown);
    }
  }
}

/// Takes in the pad of the last value when only that reads it: the value is
/// then computed in its place inside of the border.
void Grouper::growPad(Members &members) {
  Operation *last = members.back();
  // A tile of gates ends with what it computes.
  auto isOfGates = [&](Operation *member) {
    auto op = dyn_cast<linalg::GenericOp>(member);
    return op && llvm::any_of(op.getDpsInputs(), [&](Value value) {
             return readsGatesInside(op, value, members);
           });
  };
  if (last->getNumResults() != 1 || !last->hasOneUse() ||
      llvm::any_of(members, isOfGates))
    return;
  auto pad = dyn_cast<tensor::PadOp>(*last->user_begin());
  if (pad && isFree(pad) && pad.getConstantPaddingValue() &&
      !isReadAround(pad) && !dependsOn(pad, members) &&
      llvm::none_of(pad.getStaticLow(), ShapedType::isDynamic) &&
      llvm::none_of(pad.getStaticHigh(), ShapedType::isDynamic))
    members.insert(pad);
}

/// Whether `pad` is computed with the depthwise convolution that reads it,
/// whose tiles read around the border: the border of a small image, which may
/// be more bytes than the image, is not written, and nothing is multiplied with
/// it. Larger images are made by bands (BandKernels), which have a border.
bool Grouper::isReadAround(tensor::PadOp pad) const {
  constexpr uint64_t mostBytes = 1 << 20;
  if (!pad->hasOneUse() || !pad.getConstantPaddingValue() ||
      bytesOfPadded(pad) > mostBytes)
    return false;
  OpOperand &use = *pad->use_begin();
  return isFree(use.getOwner()) && kindOf(use.getOwner()) == "depthwise" &&
         readsAroundBorder(use, pad);
}

void Grouper::growWindow(Members &members) {
  for (Value operand : members.front()->getOperands())
    if (auto pad = operand.getDefiningOp<tensor::PadOp>();
        pad && isFree(pad) && isReadAround(pad))
      members.insert(pad);
}

/// Grows the group of a row reduction by ops over the same rows: elementwise
/// ones and reductions that follow from its values, and elementwise producers
/// that only it needs.
void Grouper::growRows(Members &members) {
  auto seed = cast<linalg::GenericOp>(members.front());
  unsigned rows = seed.getNumParallelLoops(), loops = seed.getNumLoops();
  RowShape shape(seed.getStaticLoopRanges(), rows);
  if (shape.bytes() > maxRowBytes)
    return;
  // A row of one element and the values of a row are not to be told apart.
  if (llvm::all_of(shape.row(), [](int64_t extent) { return extent == 1; }))
    return;
  auto fits = [&](Operation *op) {
    auto generic = dyn_cast<linalg::GenericOp>(op);
    return generic && isFree(op) && shape.fits(generic, [&](Operation *def) {
      return members.contains(def);
    });
  };

  bool changed = true;
  while (changed) {
    changed = false;
    SmallVector<Operation *> candidates;
    for (Operation *member : members) {
      for (Operation *user : member->getUsers())
        candidates.push_back(user);
    }
    llvm::sort(candidates, [&](Operation *a, Operation *b) {
      return position.lookup(a) < position.lookup(b);
    });
    for (Operation *user : candidates)
      if (!members.contains(user) && user->getBlock() == &block && fits(user) &&
          hasRoomFor(user, members) && !dependsOn(user, members)) {
        members.insert(user);
        changed = true;
      }
    for (Operation *member : SmallVector<Operation *>(members.getArrayRef()))
      for (Value operand : member->getOperands()) {
        Operation *def = operand.getDefiningOp();
        if (!def || members.contains(def) || !isFree(def) ||
            !isElementwise(def) || !fits(def) || !hasRoomFor(def, members) ||
            !llvm::all_of(def->getUsers(), [&](Operation *user) {
              return members.contains(user);
            }))
          continue;
        auto producer = cast<linalg::GenericOp>(def);
        auto inRow = [&](Operation *user) {
          auto consumer = cast<linalg::GenericOp>(user);
          return producer.getNumLoops() != loops ||
                 (consumer.getNumLoops() == loops &&
                  readsAtOwnPosition(consumer, def->getResult(0)));
        };
        if (producer.getNumLoops() == loops &&
            llvm::all_of(def->getUsers(), inRow)) {
          members.insert(def);
          changed = true;
        }
      }
  }
}

/// Takes in elementwise producers that only the group's root reads, each
/// element once.
void Grouper::absorbProducers(Members &members) {
  SmallVector<Operation *> worklist = {members.front()};
  while (!worklist.empty()) {
    Operation *consumer = worklist.pop_back_val();
    for (OpOperand &use : consumer->getOpOperands()) {
      Operation *def = use.get().getDefiningOp();
      if (!def || members.contains(def) || !isFree(def) ||
          !isElementwise(def) || def->getNumResults() != 1 ||
          !def->hasOneUse() || !hasRoomFor(def, members) ||
          (readsElsewhere(cast<linalg::GenericOp>(def)) &&
           !isa<tensor::ConcatOp>(consumer)))
        continue;
      if (auto generic = dyn_cast<linalg::GenericOp>(consumer))
        if (!generic.isDpsInput(&use) ||
            !generic.getMatchingIndexingMap(&use).isPermutation())
          continue;
      members.insert(def);
      worklist.push_back(def);
    }
  }
}

/// The op that writes the last of `members`, which nothing else reads, with its
/// axes in another order.
Operation *Grouper::transposeOf(const Members &members) const {
  Value value = members.back()->getResult(0);
  if (!value.hasOneUse())
    return nullptr;
  OpOperand &use = *value.use_begin();
  auto consumer = dyn_cast<linalg::GenericOp>(use.getOwner());
  bool transposes = consumer && isFree(consumer) && isElementwise(consumer) &&
                    consumer->getNumResults() == 1 &&
                    consumer.isDpsInput(&use) &&
                    consumer.getMatchingIndexingMap(&use).isPermutation() &&
                    !readsElsewhere(consumer) && !dependsOn(consumer, members);
  return transposes ? consumer.getOperation() : nullptr;
}

/// The op that writes what a product ends with, with the axes in front of the
/// last in another order: the vectors of a tile have other places.
Operation *Grouper::movesTiles(const Members &members) const {
  auto product = dyn_cast<linalg::GenericOp>(members.front());
  if (!product || !isProduct(product) ||
      !llvm::all_of(product.getIndexingMapsArray(),
                    [](AffineMap map) { return map.isProjectedPermutation(); }))
    return nullptr;
  Operation *transpose = transposeOf(members);
  if (!transpose)
    return nullptr;
  OpOperand &use = *members.back()->getResult(0).use_begin();
  AffineMap map =
      cast<linalg::GenericOp>(transpose).getMatchingIndexingMap(&use);
  unsigned last = map.getNumDims() - 1;
  bool moves = map.getNumResults() > 0 && !map.isIdentity() &&
               map.getDimPosition(last) == last;
  return moves ? transpose : nullptr;
}

/// Products whose rows of scores are weights of values are computed by rows
/// before the products are kernels of their own.
void Grouper::formAttention(ArrayRef<Operation *> ops) {
  for (Operation *op : ops) {
    auto values = dyn_cast<linalg::GenericOp>(op);
    if (!values)
      continue;
    SmallVector<Operation *> found =
        findAttention(values, [&](Operation *op) { return isFree(op); });
    if (found.empty())
      continue;
    Members members(found.begin(), found.end());
    while (true) {
      Operation *next = nextInRegisters(members);
      if (!next)
        next = transposeOf(members);
      if (!next)
        break;
      members.insert(next);
    }
    finish(members, "attention");
  }
}

void Grouper::finish(const Members &members, llvm::StringRef kind) {
  KernelGroup group{{members.begin(), members.end()}, kind};
  llvm::sort(group.ops, [&](Operation *a, Operation *b) {
    return position.lookup(a) < position.lookup(b);
  });
  grouped.insert(members.begin(), members.end());
  for (Operation *op : group.ops)
    groupOf[op] = groups.size();
  groups.push_back(std::move(group));
}

SmallVector<KernelGroup> Grouper::run(bool fuse) {
  SmallVector<Operation *> ops;
  for (Operation &op : block)
    if (isKernelOp(&op))
      ops.push_back(&op);

  if (fuse)
    formAttention(ops);

  // Products first: what follows them is free while the tile is in registers.
  // Rows next, then what reads each element once, then the rest.
  auto each = [&](llvm::function_ref<bool(Operation *)> isRoot,
                  llvm::function_ref<llvm::StringRef(Members &)> grow) {
    for (Operation *op : ops) {
      if (grouped.contains(op) || !isRoot(op))
        continue;
      Members members;
      members.insert(op);
      llvm::StringRef kind = kindOf(op);
      if (fuse)
        kind = grow(members);
      finish(members, kind);
    }
  };
  each(
      [](Operation *op) {
        llvm::StringRef kind = kindOf(op);
        return kind == "matmul" || kind == "conv" || kind == "depthwise" ||
               kind == "pool";
      },
      [&](Members &members) {
        growEpilogue(members);
        growWindow(members);
        return kindOf(members.front());
      });
  each(isRowReduction, [&](Members &members) -> llvm::StringRef {
    growRows(members);
    if (members.size() > 1)
      return "rows";
    absorbProducers(members);
    return "reduce";
  });
  each([](Operation *op) { return !isElementwise(op); },
       [&](Members &members) {
         if (kindOf(members.front()) == "reduce")
           growEpilogue(members);
         if (!writesPieces(members.front()))
           absorbProducers(members);
         return kindOf(members.front());
       });
  each([](Operation *) { return true; },
       [&](Members &members) {
         growEpilogue(members);
         if (llvm::all_of(members, isElementwise))
           growBeside(members);
         return kindOf(members.front());
       });
  return std::move(groups);
}
} // namespace

SmallVector<KernelGroup> formKernelGroups(Block &block, bool fuse) {
  return Grouper(block).run(fuse);
}

} // namespace keratin
