// SPDX-License-Identifier: Apache-2.0
//===- Hash.cpp - Selects the XXH3 variant for this CPU -------------------===//
//
// Debian's libxxhash is built for SSE2 and would be a shared library to ship. The header of xxhash provides the same
// function for any vector width, so this folder compiles it once per width.
//
//===----------------------------------------------------------------------===//
#include "bmodel/hash.h"
#include "bmodel/cpu_features.h"

#define HASH_VARIANT hashBase
#include "HashVariant.h"

namespace bmodel {
uint64_t hashAvx2(const void *data, size_t size, uint64_t seed);
uint64_t hashAvx512(const void *data, size_t size, uint64_t seed);

uint64_t hashBytes(const void *data, size_t size, uint64_t seed) {
#if defined(__x86_64__)
  const uint64_t features = cpuFeatures();
  if (features & BM_CPU_AVX512F) {
    return hashAvx512(data, size, seed);
  }
  if (features & BM_CPU_AVX2) {
    return hashAvx2(data, size, seed);
  }
#endif
  return hashBase(data, size, seed);
}
} // namespace bmodel
