//===- Lifetime.cpp - what nobody needs leaves the graph ------------------===//
//
// An op is needed by the handles of its results, by the ops that use them, and
// by handles of values in its regions. Handles die in any thread, which must
// not wait for one that compiles, or traces a loop and needs the dying thread
// (in Python, its interpreter lock): so a dying handle only leaves a note, and
// whoever has the graph next reads the notes.
//
//===----------------------------------------------------------------------===//
#include "Graph.h"

#include "ir/Ktn.h"

#include "mlir/IR/BuiltinDialect.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace keratin::backend {

//===----------------------------------------------------------------------===//
// Handles and locks
//===----------------------------------------------------------------------===//

ValueHandle::ValueHandle(std::shared_ptr<Graph> owner, Value value)
    : graph(std::move(owner)), value(value) {
  ++graph->handleCounts[value];
}

ValueHandle::~ValueHandle() { graph->release(value); }

void Graph::release(Value value) {
  {
    std::lock_guard<std::mutex> lock(releasedMutex);
    released.push_back(value);
  }
  if (!mutex.try_lock())
    return;
  // Not from inside of an erasure, which may free arrays whose owners hold
  // tensors.
  if (lockDepth == 0) {
    ++lockDepth;
    eraseUseless();
    --lockDepth;
  }
  mutex.unlock();
}

Graph::Lock::Lock(const std::shared_ptr<Graph> &graph) : graph(graph) {
  graph->mutex.lock();
  ++graph->lockDepth;
}

Graph::Lock::~Lock() {
  if (graph->lockDepth == 1)
    graph->eraseUseless();
  --graph->lockDepth;
  graph->mutex.unlock();
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// The op of the module's block that `value` is computed by or inside of; null
/// in a body that became no loop.
static Operation *topOf(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    op = cast<BlockArgument>(value).getOwner()->getParentOp();
  while (op && op->getParentOp() && !isa<ModuleOp>(op->getParentOp()))
    op = op->getParentOp();
  return op && op->getParentOp() ? op : nullptr;
}

/// What an op reads, in its regions too.
static SetVector<Value> inputsOf(Operation *op) {
  SetVector<Value> inputs;
  inputs.insert(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), inputs);
  return inputs;
}

bool Graph::hasHandles(Region &region) const {
  auto isHeld = [&](Value value) { return handleCounts.contains(value); };
  for (Block &block : region) {
    if (llvm::any_of(block.getArguments(), isHeld))
      return true;
    for (Operation &op : block)
      if (llvm::any_of(op.getResults(), isHeld) ||
          llvm::any_of(op.getRegions(),
                       [&](Region &inner) { return hasHandles(inner); }))
        return true;
  }
  return false;
}

bool Graph::isNeeded(Operation *op) const {
  return !op->use_empty() || llvm::any_of(op->getResults(), [&](Value value) {
    return handleCounts.contains(value);
  }) || llvm::any_of(op->getRegions(), [&](Region &region) {
    return hasHandles(region);
  });
}

void Graph::forget(Operation *op) {
  op->walk([&](Operation *inner) {
    for (Region &region : inner->getRegions())
      for (Block &block : region)
        for (Value argument : block.getArguments())
          traits.erase(argument);
    for (Value result : inner->getResults()) {
      traits.erase(result);
      if (auto found = variables.find(result); found != variables.end()) {
        dropBlob(std::exchange(found->second->attribute, {}));
        variables.erase(found);
      }
      if (result == phaseValue)
        phaseValue = {};
    }
    assigned.erase(inner);
    if (auto host = dyn_cast<ktn::HostOp>(inner))
      hostTasks.erase(host.getTask());
    if (auto constant = dyn_cast<ktn::ConstantOp>(inner))
      dropBlob(constant.getValue());
  });
}

std::vector<Value> Graph::takeReleased() {
  std::lock_guard<std::mutex> lock(releasedMutex);
  return std::exchange(released, {});
}

void Graph::eraseUseless() {
  for (std::vector<Value> notes = takeReleased(); !notes.empty();
       notes = takeReleased())
    eraseUseless(notes);
}

void Graph::eraseUseless(llvm::ArrayRef<Value> notes) {
  SetVector<Operation *> candidates;
  bool inBodies = false;
  for (Value value : notes) {
    auto count = handleCounts.find(value);
    if (--count->second > 0)
      continue;
    handleCounts.erase(count);
    if (Operation *op = topOf(value))
      candidates.insert(op);
    else
      inBodies = true;
  }
  auto noteInputs = [&](Operation *op) {
    for (Value input : inputsOf(op))
      if (Operation *source = topOf(input))
        candidates.insert(source);
  };
  if (inBodies)
    llvm::erase_if(abandoned, [&](std::unique_ptr<Region> &body) {
      if (hasHandles(*body))
        return false;
      for (Operation &op : body->front()) {
        noteInputs(&op);
        forget(&op);
      }
      return true;
    });
  while (!candidates.empty()) {
    Operation *op = candidates.pop_back_val();
    if (isNeeded(op))
      continue;
    noteInputs(op);
    forget(op);
    op->erase();
  }
}

//===----------------------------------------------------------------------===//
// Elements of constants
//===----------------------------------------------------------------------===//

static DialectResourceBlobManager &blobManagerOf(MLIRContext &context) {
  return DenseResourceElementsHandle::getManagerInterface(&context)
      .getBlobManager();
}

void Graph::dropBlob(Attribute attribute) {
  auto resource = dyn_cast_if_present<DenseResourceElementsAttr>(attribute);
  if (!resource)
    return;
  llvm::StringRef key = resource.getRawHandle().getKey();
  // Without one only this graph could tell that it is in use.
  if (blobs.erase(key))
    blobManagerOf(*context).update(key, AsmResourceBlob());
}

void Graph::dropCompiledBlobs() {
  DialectResourceBlobManager &manager = blobManagerOf(*context);
  std::vector<std::string> useless;
  manager.getBlobMap(
      [&](const llvm::StringMap<DialectResourceBlobManager::BlobEntry> &map) {
        for (const auto &entry : map)
          if (!blobs.contains(entry.getKey()) && entry.second.getBlob() &&
              !entry.second.getBlob()->getData().empty())
            useless.push_back(entry.getKey().str());
      });
  for (const std::string &key : useless)
    manager.update(key, AsmResourceBlob());
}

} // namespace keratin::backend
