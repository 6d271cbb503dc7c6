//===- ArenaLayoutTest.cpp - buffers that share one arena -----------------===//
#include "passes/ArenaLayout.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

using namespace keratin;

namespace {

constexpr int64_t alignment = 64;

/// Whether two requests that live together share a byte at `batch`.
bool collides(llvm::ArrayRef<ArenaRequest> requests, const ArenaLayout &layout,
              int64_t batch) {
  auto at = [&](BatchSize size) { return size.fixed + batch * size.perBatch; };
  for (size_t i = 0; i < requests.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (requests[i].life.overlaps(requests[j].life) &&
          at(layout.offsets[i]) <
              at(layout.offsets[j]) + at(requests[j].bytes) &&
          at(layout.offsets[j]) < at(layout.offsets[i]) + at(requests[i].bytes))
        return true;
  return false;
}

TEST(ArenaLayout, ReusesBytesOfTheDead) {
  ArenaRequest chain[] = {{{0, 100}, {0, 1}},
                          {{0, 100}, {1, 2}},
                          {{0, 100}, {2, 3}},
                          {{0, 100}, {3, 4}}};
  auto layout = layoutArena(chain, alignment);
  ASSERT_TRUE(succeeded(layout));
  EXPECT_EQ(layout->bytes, (BatchSize{0, 256}));
}

TEST(ArenaLayout, KeepsTheLivingApartForEveryBatch) {
  llvm::SmallVector<ArenaRequest> requests;
  for (unsigned i = 0; i < 40; ++i)
    requests.push_back({i % 3 ? BatchSize{0, 7 + (i * 37) % 911}
                              : BatchSize{13 + (i * 53) % 701, 0},
                        {i, i + (i * 7) % 11}});
  auto layout = layoutArena(requests, alignment);
  ASSERT_TRUE(succeeded(layout));
  for (int64_t batch : {1, 2, 3, 64, 1000}) {
    EXPECT_FALSE(collides(requests, *layout, batch)) << "batch " << batch;
    for (auto [request, offset] : llvm::zip(requests, layout->offsets)) {
      EXPECT_EQ((offset.fixed + batch * offset.perBatch) % alignment, 0);
      EXPECT_LE(offset.fixed + batch * offset.perBatch + request.bytes.fixed +
                    batch * request.bytes.perBatch,
                layout->bytes.fixed + batch * layout->bytes.perBatch);
    }
  }
}

TEST(ArenaLayout, SaysWhatNoneCanDoWithout) {
  ArenaRequest requests[] = {
      {{0, 100}, {0, 1}}, {{30, 0}, {1, 3}}, {{0, 200}, {2, 3}}};
  auto layout = layoutArena(requests, alignment);
  ASSERT_TRUE(succeeded(layout));
  EXPECT_EQ(layout->least, (BatchSize{30, 200}));
}

// By size alone they take 1280 bytes.
TEST(ArenaLayout, TriesOtherOrdersWhereRoomIsLeft) {
  ArenaRequest requests[] = {{{448, 0}, {1, 2}},
                             {{512, 0}, {3, 6}},
                             {{256, 0}, {1, 2}},
                             {{512, 0}, {2, 5}}};
  auto layout = layoutArena(requests, alignment);
  ASSERT_TRUE(succeeded(layout));
  EXPECT_FALSE(collides(requests, *layout, 1));
  EXPECT_EQ(layout->least, (BatchSize{1216, 0}));
  EXPECT_EQ(layout->bytes, layout->least);
}

// Neither by size, life nor area, nor with the highest one first.
TEST(ArenaLayout, SearchesAmongOrders) {
  ArenaRequest requests[] = {{{784 * alignment, 0}, {0, 2}},
                             {{392 * alignment, 0}, {1, 4}},
                             {{588 * alignment, 0}, {3, 6}},
                             {{339 * alignment, 0}, {3, 4}},
                             {{alignment, 0}, {0, 9}}};
  auto layout = layoutArena(requests, alignment);
  ASSERT_TRUE(succeeded(layout));
  EXPECT_FALSE(collides(requests, *layout, 1));
  EXPECT_EQ(layout->bytes, layout->least);
}

// The second lies over the end of the first, the third over that of the second.
TEST(ArenaLayout, LaysOneOverAnother) {
  ArenaRequest requests[] = {
      {{1024, 0}, {0, 2}},
      {{512, 0}, {2, 4}, /*over=*/0, /*bytesBehind=*/600},
      {{256, 0}, {4, 6}, /*over=*/1, /*bytesBehind=*/320}};
  auto layout = layoutArena(requests, alignment);
  ASSERT_TRUE(succeeded(layout));
  EXPECT_TRUE(layout->liesOver);
  EXPECT_EQ(layout->offsets[1].fixed, layout->offsets[0].fixed + 640);
  EXPECT_EQ(layout->offsets[2].fixed, layout->offsets[1].fixed + 320);
  EXPECT_EQ(layout->bytes, (BatchSize{1216, 0}));
  EXPECT_EQ(layout->least, (BatchSize{1152, 0}));
}

// Neither of the two shares a byte with a third that lives beside it.
TEST(ArenaLayout, KeepsOthersApartFromBoth) {
  llvm::SmallVector<ArenaRequest> requests;
  for (unsigned i = 0; i < 40; ++i) {
    requests.push_back({{64 + (i * 37) % 911, 0}, {i, i + 1 + (i * 7) % 5}});
    if (i % 4 == 3) {
      unsigned last = requests.back().life.last, of = requests.size() - 1;
      requests.push_back({{64 + (i * 53) % 511, 0},
                          {last, last + 2},
                          of,
                          requests.back().bytes.fixed / 2});
    }
  }
  auto layout = layoutArena(requests, alignment);
  ASSERT_TRUE(succeeded(layout));
  ASSERT_TRUE(layout->liesOver);
  auto begin = [&](size_t i) { return layout->offsets[i].fixed; };
  for (size_t i = 0; i < requests.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (requests[i].life.overlaps(requests[j].life)) {
        bool apart = begin(i) >= begin(j) + requests[j].bytes.fixed ||
                     begin(j) >= begin(i) + requests[i].bytes.fixed;
        EXPECT_TRUE(requests[i].over == j || apart) << i << " and " << j;
        if (requests[i].over == j) {
          EXPECT_GE(begin(i), begin(j) + requests[i].bytesBehind);
        }
      }
  EXPECT_GE(layout->bytes.fixed, layout->least.fixed);
}

// An order that is good for requests beside one another may have no room for
// two of them together.
TEST(ArenaLayout, TakesNoMoreForOneOverAnother) {
  std::minstd_rand random;
  auto below = [&](unsigned count) { return unsigned(random()) % count; };
  unsigned beside = 0;
  for (unsigned turn = 0; turn < 60; ++turn) {
    llvm::SmallVector<ArenaRequest> requests;
    for (unsigned moment = 0; moment < 8; ++moment) {
      unsigned last = moment + 1 + below(3);
      requests.push_back({{64 * (1 + below(9)), 0}, {moment, last}});
      unsigned of = requests.size() - 1;
      if (below(2) == 0)
        requests.push_back({{64 * (1 + below(9)), 0},
                            {last, last + below(4)},
                            of,
                            64 * int64_t(below(4))});
    }
    auto layout = layoutArena(requests, alignment);
    ASSERT_TRUE(succeeded(layout));
    beside += !layout->liesOver;
    for (ArenaRequest &request : requests)
      request.over.reset();
    auto without = layoutArena(requests, alignment);
    ASSERT_TRUE(succeeded(without));
    EXPECT_LE(layout->bytes.fixed, without->bytes.fixed);
  }
  EXPECT_GT(beside, 0u);
  EXPECT_LT(beside, 30u);
}

TEST(ArenaLayout, OfNothingIsEmpty) {
  auto layout = layoutArena({}, alignment);
  ASSERT_TRUE(succeeded(layout));
  EXPECT_EQ(layout->bytes, (BatchSize{0, 0}));
}

TEST(ArenaLayout, RefusesSizesThatOverflow) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_TRUE(failed(layoutArena({{{most, 0}, {0, 1}}}, alignment)));
  ArenaRequest two[] = {{{most - 100, 0}, {0, 1}}, {{most - 100, 0}, {0, 1}}};
  EXPECT_TRUE(failed(layoutArena(two, alignment)));
}

TEST(BatchSize, RefusesWhatIsNotLinear) {
  EXPECT_EQ(multiply({0, 2}, {3, 0}), (BatchSize{0, 6}));
  EXPECT_EQ(multiply({0, 2}, {0, 3}), std::nullopt);
  EXPECT_EQ(multiply({INT64_MAX, 0}, {2, 0}), std::nullopt);
  EXPECT_EQ(add({1, 2}, {3, -2}), (BatchSize{4, 0}));
  EXPECT_EQ(add({INT64_MAX, 0}, {1, 0}), std::nullopt);
}

} // namespace
