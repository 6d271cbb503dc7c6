//===- ArenaLayout.cpp - buffers that share one arena ---------------------===//
#include "passes/ArenaLayout.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace llvm;

namespace keratin {

namespace {
struct Block {
  size_t request;
  int64_t size;
  int64_t offset = 0;
};
} // namespace

/// Gives each block the lowest offset at which no neighbour in time lies, and
/// returns the end of the highest.
static FailureOr<int64_t> place(MutableArrayRef<Block> blocks,
                                ArrayRef<ArenaRequest> requests) {
  llvm::stable_sort(
      blocks, [](const Block &a, const Block &b) { return a.size > b.size; });
  int64_t end = 0;
  for (auto [index, block] : llvm::enumerate(blocks)) {
    SmallVector<const Block *> neighbours;
    for (const Block &placed : blocks.take_front(index))
      if (requests[placed.request].life.overlaps(requests[block.request].life))
        neighbours.push_back(&placed);
    llvm::sort(neighbours, [](const Block *a, const Block *b) {
      return a->offset < b->offset;
    });
    for (const Block *neighbour : neighbours) {
      if (block.offset + block.size <= neighbour->offset)
        break;
      block.offset =
          std::max(block.offset, neighbour->offset + neighbour->size);
    }
    int64_t top;
    if (AddOverflow(block.offset, block.size, top))
      return failure();
    end = std::max(end, top);
  }
  return end;
}

FailureOr<ArenaLayout> layoutArena(ArrayRef<ArenaRequest> requests,
                                   int64_t alignment) {
  SmallVector<Block> fixed, scaled;
  for (auto [index, request] : llvm::enumerate(requests)) {
    std::optional<BatchSize> size = alignTo(request.bytes, alignment);
    if (!size)
      return failure();
    // fixed + n * perBatch <= n * (fixed + perBatch) for a batch of 1 or more.
    if (size->isStatic())
      fixed.push_back({index, size->fixed});
    else
      scaled.push_back({index, size->fixed + size->perBatch});
  }
  FailureOr<int64_t> fixedEnd = place(fixed, requests);
  FailureOr<int64_t> scaledEnd = place(scaled, requests);
  if (failed(fixedEnd) || failed(scaledEnd))
    return failure();

  ArenaLayout layout;
  layout.bytes = {*fixedEnd, *scaledEnd};
  layout.offsets.resize(requests.size());
  for (const Block &block : fixed)
    layout.offsets[block.request] = {block.offset, 0};
  for (const Block &block : scaled)
    layout.offsets[block.request] = {*fixedEnd, block.offset};
  return layout;
}

} // namespace keratin
