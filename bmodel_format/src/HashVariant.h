// SPDX-License-Identifier: Apache-2.0
//===- HashVariant.h - XXH3 under the name HASH_VARIANT -------------------===//
//
// Hash.cpp, HashAvx2.cpp and HashAvx512.cpp each include this file once and are compiled for different vector widths.
// Include only C headers here: the linker may keep the AVX-512 version of an inline C++ function for the whole program.
//
//===----------------------------------------------------------------------===//
#ifndef TESSERA_BMODEL_FORMAT_SRC_HASHVARIANT_H
#define TESSERA_BMODEL_FORMAT_SRC_HASHVARIANT_H

#define XXH_INLINE_ALL
#include <stddef.h>
#include <stdint.h>
#include <xxhash.h>

namespace bmodel {
uint64_t HASH_VARIANT(const void *data, size_t size, uint64_t seed);
uint64_t HASH_VARIANT(const void *data, size_t size, uint64_t seed) { return XXH3_64bits_withSeed(data, size, seed); }
} // namespace bmodel

#endif // TESSERA_BMODEL_FORMAT_SRC_HASHVARIANT_H
