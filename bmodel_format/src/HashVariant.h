// SPDX-License-Identifier: Apache-2.0
//===- HashVariant.h - XXH3 under the name HASH_VARIANT -------------------===//
//
// Included once by each of Hash.cpp, HashAvx2.cpp, HashAvx512.cpp, which are compiled for different
// vector widths. Only C headers here: an inline C++ function compiled for AVX-512 could be the one
// the linker keeps for everybody.
//
//===----------------------------------------------------------------------===//
#define XXH_INLINE_ALL
#include <stddef.h>
#include <stdint.h>
#include <xxhash.h>

namespace bmodel {
uint64_t HASH_VARIANT(const void *data, size_t size, uint64_t seed);
uint64_t HASH_VARIANT(const void *data, size_t size, uint64_t seed) { return XXH3_64bits_withSeed(data, size, seed); }
} // namespace bmodel
