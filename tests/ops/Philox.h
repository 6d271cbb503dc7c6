//===- Philox.h - the random numbers of ktn.random, plainly -----*- C++ -*-===//
#ifndef KERATIN_TESTS_OPS_PHILOX_H
#define KERATIN_TESTS_OPS_PHILOX_H

#include <array>
#include <cstdint>
#include <vector>

namespace keratin::optest {

/// Philox 4x32-10 of a counter under a key.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter,
                               std::array<uint32_t, 2> key);

/// The `count` words that call number `call` of a state with the key gives.
std::vector<uint32_t> randomWords(uint64_t key, uint64_t call, int64_t count);

/// The same as numbers in [0, 1): multiples of 2^-24, of one word each.
std::vector<double> randomFloats(uint64_t key, uint64_t call, int64_t count);

/// Multiples of 2^-53, of two words each.
std::vector<double> randomDoubles(uint64_t key, uint64_t call, int64_t count);

} // namespace keratin::optest

#endif // KERATIN_TESTS_OPS_PHILOX_H
