//===- Philox.cpp - the random numbers of ktn.random, plainly -------------===//
#include "Philox.h"

#include <cmath>

namespace keratin::optest {

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter,
                               std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    uint64_t a = uint64_t(0xD2511F53) * counter[0];
    uint64_t b = uint64_t(0xCD9E8D57) * counter[2];
    counter = {uint32_t(b >> 32) ^ counter[1] ^ key[0], uint32_t(b),
               uint32_t(a >> 32) ^ counter[3] ^ key[1], uint32_t(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

/// `perBlock` elements of a block each; element `i` of `count` is number i / m
/// of block i mod m.
template <typename T, typename Pick>
static std::vector<T> draw(uint64_t key, uint64_t call, int64_t count,
                           int64_t perBlock, Pick pick) {
  int64_t blocks = (count + perBlock - 1) / perBlock;
  std::vector<T> result;
  for (int64_t i = 0; i < count; ++i) {
    uint64_t block = i % blocks;
    result.push_back(pick(philox({uint32_t(block), uint32_t(block >> 32),
                                  uint32_t(call), uint32_t(call >> 32)},
                                 {uint32_t(key), uint32_t(key >> 32)}),
                          i / blocks));
  }
  return result;
}

std::vector<uint32_t> randomWords(uint64_t key, uint64_t call, int64_t count) {
  return draw<uint32_t>(key, call, count, 4,
                        [](const auto &words, int64_t i) { return words[i]; });
}

std::vector<double> randomFloats(uint64_t key, uint64_t call, int64_t count) {
  return draw<double>(key, call, count, 4, [](const auto &words, int64_t i) {
    return std::ldexp(static_cast<double>(words[i] >> 8), -24);
  });
}

std::vector<double> randomDoubles(uint64_t key, uint64_t call, int64_t count) {
  return draw<double>(key, call, count, 2, [](const auto &words, int64_t i) {
    uint64_t bits = uint64_t(words[2 * i + 1]) << 32 | words[2 * i];
    return std::ldexp(static_cast<double>(bits >> 11), -53);
  });
}

} // namespace keratin::optest
