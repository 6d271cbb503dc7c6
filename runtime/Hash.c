//===- Hash.c - the hash of weights --------------------------------------===//
#include "keratin/abi.h"

#include <string.h>

// Four lanes of 8 bytes, so that the multiplications overlap. Models with
// external weights carry the same function (codegen/Artefact.cpp); a test
// compares the two.

static const uint64_t factor =
    0x9E3779B97F4A7C15u; /* 2^64 / golden ratio, odd */

static uint64_t load_little_endian(const unsigned char *bytes) {
  uint64_t word = 0;
  for (int i = 7; i >= 0; --i)
    word = word << 8 | bytes[i];
  return word;
}

static void hash_block(uint64_t lanes[4], const unsigned char *block) {
  for (int i = 0; i < 4; ++i) {
    lanes[i] = (lanes[i] ^ load_little_endian(block + 8 * i)) * factor;
    lanes[i] ^= lanes[i] >> 29;
  }
}

uint64_t ktn_hash(const void *data, uint64_t size) {
  const unsigned char *bytes = (const unsigned char *)data;
  uint64_t lanes[4] = {1, 2, 3, 4};
  uint64_t whole = size / 32 * 32;
  for (uint64_t offset = 0; offset < whole; offset += 32)
    hash_block(lanes, bytes + offset);
  if (size > whole) {
    unsigned char block[32] = {0};
    memcpy(block, bytes + whole, (size_t)(size - whole));
    hash_block(lanes, block);
  }
  uint64_t hash = size;
  for (int i = 0; i < 4; ++i) {
    hash = (hash ^ lanes[i]) * factor;
    hash ^= hash >> 32;
  }
  return hash;
}
