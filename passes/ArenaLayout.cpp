//===- ArenaLayout.cpp - buffers that share one arena ---------------------===//
#include "passes/ArenaLayout.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <random>
#include <tuple>

using namespace llvm;

namespace keratin {

namespace {
struct Block {
  size_t request;
  int64_t size;
  int64_t offset = 0;
};
} // namespace

/// Gives each block, in order, the lowest offset at which no neighbour in time
/// lies, and returns the end of the highest.
static FailureOr<int64_t> place(MutableArrayRef<Block> blocks,
                                ArrayRef<ArenaRequest> requests) {
  int64_t end = 0;
  for (auto [index, block] : llvm::enumerate(blocks)) {
    block.offset = 0;
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

/// The most bytes of blocks that live at the same time.
static int64_t mostAlive(ArrayRef<Block> blocks,
                         ArrayRef<ArenaRequest> requests) {
  int64_t most = 0;
  for (const Block &block : blocks) {
    // More of them begin to live at the start of one of them.
    unsigned moment = requests[block.request].life.first;
    int64_t alive = 0;
    for (const Block &other : blocks)
      if (requests[other.request].life.overlaps({moment, moment}))
        alive += other.size;
    most = std::max(most, alive);
  }
  return most;
}

/// Looks among the orders near that of `blocks` for one that ends lower than
/// `best`, down to `least`: one of those that live beside the highest block
/// moves to the front of it, or further, and what ends no higher is kept.
static int64_t refine(SmallVector<Block> &blocks,
                      ArrayRef<ArenaRequest> requests, int64_t best,
                      int64_t least) {
  // Each takes time with the square of the number of blocks.
  constexpr uint64_t mostAttempts = 512, mostPairs = 20000000;
  uint64_t pairs = uint64_t(blocks.size()) * blocks.size();
  uint64_t attempts = std::min(mostAttempts, mostPairs / (pairs + 1));
  std::minstd_rand random; // the same numbers everywhere
  auto below = [&](size_t count) { return size_t(random()) % count; };
  for (; attempts > 0 && best > least; --attempts) {
    const Block &highest =
        *llvm::max_element(blocks, [](const Block &a, const Block &b) {
          return a.offset + a.size < b.offset + b.size;
        });
    SmallVector<size_t> beside;
    for (auto [index, block] : llvm::enumerate(blocks))
      if (requests[block.request].life.overlaps(requests[highest.request].life))
        beside.push_back(index);
    size_t from = beside[below(beside.size())], to = below(from + 1);
    SmallVector<Block> order = blocks;
    std::rotate(order.begin() + to, order.begin() + from,
                order.begin() + from + 1);
    FailureOr<int64_t> end = place(order, requests);
    if (failed(end) || *end > best)
      continue;
    best = *end;
    blocks = std::move(order);
  }
  return best;
}

/// Places the blocks in the best of a few orders: large ones first leaves least
/// room unused in most models, long lives first in some with many skips, and
/// changes to the best of them where that comes close.
static FailureOr<int64_t> placeBest(SmallVector<Block> &blocks,
                                    ArrayRef<ArenaRequest> requests) {
  auto lifeOf = [&](const Block &block) {
    BufferLife life = requests[block.request].life;
    return life.last - life.first;
  };
  // The largest of `key` first; of equals the larger block, then the earlier.
  auto sortBy = [](SmallVector<Block> &order, auto key) {
    llvm::sort(order, [&](const Block &a, const Block &b) {
      return std::tuple(key(b), b.size, a.request) <
             std::tuple(key(a), a.size, b.request);
    });
  };
  sortBy(blocks, [](const Block &block) { return block.size; });
  FailureOr<int64_t> best = place(blocks, requests);
  if (failed(best))
    return failure();
  int64_t least = mostAlive(blocks, requests);
  if (*best == least)
    return best;
  SmallVector<Block> byLife = blocks, byArea = blocks;
  sortBy(byLife, lifeOf);
  sortBy(byArea, [&](const Block &block) {
    return static_cast<double>(block.size) * (lifeOf(block) + 1);
  });
  for (SmallVector<Block> *order : {&byLife, &byArea}) {
    FailureOr<int64_t> end = place(*order, requests);
    if (failed(end) || *end >= *best)
      continue;
    best = *end;
    blocks = *order;
  }
  return refine(blocks, requests, *best, least);
}

/// What no layout can do without: the sizes alive at the moment when that is
/// most for a batch of 1.
static BatchSize leastBytes(ArrayRef<ArenaRequest> requests) {
  BatchSize least;
  for (const ArenaRequest &request : requests) {
    BatchSize alive;
    for (const ArenaRequest &other : requests)
      if (other.life.overlaps({request.life.first, request.life.first})) {
        alive.fixed += other.bytes.fixed;
        alive.perBatch += other.bytes.perBatch;
      }
    if (alive.fixed + alive.perBatch > least.fixed + least.perBatch)
      least = alive;
  }
  return least;
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
  FailureOr<int64_t> fixedEnd = placeBest(fixed, requests);
  FailureOr<int64_t> scaledEnd = placeBest(scaled, requests);
  if (failed(fixedEnd) || failed(scaledEnd))
    return failure();

  ArenaLayout layout;
  layout.bytes = {*fixedEnd, *scaledEnd};
  // No sum overflows: that of all that live together fits in the layout.
  layout.least = leastBytes(requests);
  layout.offsets.resize(requests.size());
  for (const Block &block : fixed)
    layout.offsets[block.request] = {block.offset, 0};
  for (const Block &block : scaled)
    layout.offsets[block.request] = {*fixedEnd, block.offset};
  return layout;
}

} // namespace keratin
