//===- ArenaLayout.cpp - buffers that share one arena ---------------------===//
#include "passes/ArenaLayout.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <climits>
#include <random>
#include <tuple>

using namespace llvm;

namespace keratin {

namespace {
/// What lies in one block, `at` bytes behind its beginning.
struct Part {
  size_t request;
  int64_t at;
  int64_t size;
};

/// Requests that have their places relative to one another; most are one.
struct Block {
  SmallVector<Part, 1> parts;
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
    // Between which offsets the block cannot begin, for one of its parts and a
    // neighbour of that; neither of both.
    SmallVector<std::pair<int64_t, int64_t>> taken;
    for (const Block &placed : blocks.take_front(index))
      for (const Part &theirs : placed.parts)
        for (const Part &own : block.parts)
          if (requests[theirs.request].life.overlaps(
                  requests[own.request].life)) {
            int64_t begin = placed.offset + theirs.at - own.at;
            taken.emplace_back(begin - own.size, begin + theirs.size);
          }
    llvm::sort(taken);
    for (auto [before, behind] : taken) {
      if (block.offset <= before)
        break;
      block.offset = std::max(block.offset, behind);
    }
    int64_t top;
    if (AddOverflow(block.offset, block.size, top))
      return failure();
    end = std::max(end, top);
  }
  return end;
}

/// The bytes of `block` that are in use at `moment`.
static int64_t aliveAt(const Block &block, unsigned moment,
                       ArrayRef<ArenaRequest> requests) {
  // Each part begins behind the one that it lies over.
  int64_t bytes = 0, end = 0;
  for (const Part &part : block.parts)
    if (requests[part.request].life.overlaps({moment, moment})) {
      int64_t begin = std::max(part.at, end);
      bytes += std::max<int64_t>(part.at + part.size - begin, 0);
      end = std::max(end, part.at + part.size);
    }
  return bytes;
}

/// The most bytes of blocks that live at the same time.
static int64_t mostAlive(ArrayRef<Block> blocks,
                         ArrayRef<ArenaRequest> requests) {
  int64_t most = 0;
  for (const Block &block : blocks)
    for (const Part &part : block.parts) {
      // More of them begin to live at the start of one of them.
      unsigned moment = requests[part.request].life.first;
      int64_t alive = 0;
      for (const Block &other : blocks)
        alive += aliveAt(other, moment, requests);
      most = std::max(most, alive);
    }
  return most;
}

/// Whether a part of one block lives beside a part of the other.
static bool liveTogether(const Block &one, const Block &other,
                         ArrayRef<ArenaRequest> requests) {
  return llvm::any_of(one.parts, [&](const Part &own) {
    return llvm::any_of(other.parts, [&](const Part &theirs) {
      return requests[own.request].life.overlaps(requests[theirs.request].life);
    });
  });
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
      if (liveTogether(block, highest, requests))
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
    unsigned first = UINT_MAX, last = 0;
    for (const Part &part : block.parts) {
      first = std::min(first, requests[part.request].life.first);
      last = std::max(last, requests[part.request].life.last);
    }
    return last - first;
  };
  // The largest of `key` first; of equals the larger block, then the earlier.
  auto sortBy = [](SmallVector<Block> &order, auto key) {
    llvm::sort(order, [&](const Block &a, const Block &b) {
      return std::tuple(key(b), b.size, a.parts[0].request) <
             std::tuple(key(a), a.size, b.parts[0].request);
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
/// most for a batch of 1. Blocks have no unused bytes between requests, but for
/// those to the next multiple of the alignment.
static BatchSize leastBytes(ArrayRef<Block> blocks,
                            ArrayRef<ArenaRequest> requests) {
  BatchSize least;
  for (const ArenaRequest &request : requests) {
    BatchSize alive;
    for (const Block &block : blocks) {
      if (block.parts.size() > 1) {
        alive.fixed += aliveAt(block, request.life.first, requests);
        continue;
      }
      const ArenaRequest &other = requests[block.parts[0].request];
      if (!other.life.overlaps({request.life.first, request.life.first}))
        continue;
      alive.fixed += other.bytes.fixed;
      alive.perBatch += other.bytes.perBatch;
    }
    if (alive.fixed + alive.perBatch > least.fixed + least.perBatch)
      least = alive;
  }
  return least;
}

/// The layout in which requests lie over others, or in which none does.
static FailureOr<ArenaLayout> layOut(ArrayRef<ArenaRequest> requests,
                                     int64_t alignment, bool over) {
  SmallVector<Block> fixed, scaled;
  llvm::DenseMap<size_t, std::pair<size_t, int64_t>> places; // of the fixed
  ArenaLayout layout;
  for (auto [index, request] : llvm::enumerate(requests)) {
    std::optional<BatchSize> size = alignTo(request.bytes, alignment);
    if (!size)
      return failure();
    auto base = over && request.over && size->isStatic()
                    ? places.find(*request.over)
                    : places.end();
    if (base != places.end()) {
      auto [number, at] = base->second;
      Block &block = fixed[number];
      at += llvm::alignTo(request.bytesBehind, alignment);
      block.parts.push_back({index, at, size->fixed});
      int64_t end;
      if (AddOverflow(at, size->fixed, end))
        return failure();
      block.size = std::max(block.size, end);
      places[index] = {number, at};
      layout.liesOver = true;
    } else if (size->isStatic()) {
      places[index] = {fixed.size(), 0};
      fixed.push_back({{Part{index, 0, size->fixed}}, size->fixed});
    } else {
      // fixed + n * perBatch <= n * (fixed + perBatch) for a batch of 1 or
      // more.
      int64_t bytes = size->fixed + size->perBatch;
      scaled.push_back({{Part{index, 0, bytes}}, bytes});
    }
  }
  FailureOr<int64_t> fixedEnd = placeBest(fixed, requests);
  FailureOr<int64_t> scaledEnd = placeBest(scaled, requests);
  if (failed(fixedEnd) || failed(scaledEnd))
    return failure();

  layout.bytes = {*fixedEnd, *scaledEnd};
  layout.offsets.resize(requests.size());
  for (const Block &block : fixed)
    for (const Part &part : block.parts)
      layout.offsets[part.request] = {block.offset + part.at, 0};
  for (const Block &block : scaled)
    layout.offsets[block.parts[0].request] = {*fixedEnd, block.offset};
  // No sum overflows: that of all that live together fits in the layout.
  fixed.append(scaled);
  layout.least = leastBytes(fixed, requests);
  return layout;
}

FailureOr<ArenaLayout> layoutArena(ArrayRef<ArenaRequest> requests,
                                   int64_t alignment) {
  FailureOr<ArenaLayout> beside = layOut(requests, alignment, /*over=*/false);
  if (failed(beside) ||
      llvm::none_of(requests, [](const ArenaRequest &request) {
        return request.over.has_value();
      }))
    return beside;
  FailureOr<ArenaLayout> over = layOut(requests, alignment, /*over=*/true);
  if (failed(over) || over->bytes.fixed > beside->bytes.fixed)
    return beside;
  return over;
}

} // namespace keratin
