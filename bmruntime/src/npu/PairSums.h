// SPDX-License-Identifier: Apache-2.0
//===- PairSums.h - sumPairs, compiled for one vector width -----------------===//
//
// One file per vector width includes this header after DotProducts.h, and defines PAIR_SUMS as the name of the
// function. One CPU instruction multiplies two pairs of 16-bit numbers and adds the products. With 8-bit numbers no sum
// can saturate.
//
//===----------------------------------------------------------------------===//
#ifndef TESSERA_BMRUNTIME_SRC_NPU_PAIRSUMS_H
#define TESSERA_BMRUNTIME_SRC_NPU_PAIRSUMS_H

#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace bmrt::npu {
namespace {

/// A vector of int32 sums or of int16 pairs; addPairs(sum, a, b) adds both products of each pair.
#if defined(__AVX512VNNI__)
using Vector = __m512i;
constexpr uint32_t kAtOnce = 8;
inline Vector repeat(int32_t pair) { return _mm512_set1_epi32(pair); }
inline Vector addPairs(Vector sum, Vector a, Vector b) { return _mm512_dpwssd_epi32(sum, a, b); }
#elif defined(__AVX2__)
using Vector = __m256i;
constexpr uint32_t kAtOnce = 4;
inline Vector repeat(int32_t pair) { return _mm256_set1_epi32(pair); }
inline Vector addPairs(Vector sum, Vector a, Vector b) { return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b)); }
#elif defined(__x86_64__)
using Vector = __m128i;
constexpr uint32_t kAtOnce = 4;
inline Vector repeat(int32_t pair) { return _mm_set1_epi32(pair); }
inline Vector addPairs(Vector sum, Vector a, Vector b) { return _mm_add_epi32(sum, _mm_madd_epi16(a, b)); }
#else
struct Vector {
  int16_t low, high;
};
constexpr uint32_t kAtOnce = 4;
inline Vector repeat(int32_t pair) {
  Vector vector;
  memcpy(&vector, &pair, sizeof pair);
  return vector;
}
inline Vector addPairs(Vector sum, Vector a, Vector b) {
  uint32_t total;
  memcpy(&total, &sum, sizeof total);
  total += uint32_t(int32_t(a.low) * b.low) + uint32_t(int32_t(a.high) * b.high);
  memcpy(&sum, &total, sizeof total);
  return sum;
}
#endif
constexpr uint32_t kLanes = sizeof(Vector) / sizeof(int32_t);

} // namespace

void PAIR_SUMS(const int16_t *weights, const int16_t *panel, uint64_t panelStride, uint64_t depth, int32_t *total,
               uint64_t totalStride) {
  for (uint32_t o = 0; o < kOutputs; o += kAtOnce) {
    for (uint32_t p = 0; p < kTile; p += 2 * kLanes) {
      Vector sums[kAtOnce][2];
      memset(sums, 0, sizeof sums);
      for (uint64_t k = 0; k < depth; ++k) {
        Vector low, high;
        memcpy(&low, panel + (k * panelStride + p) * 2, sizeof low);
        memcpy(&high, panel + (k * panelStride + p + kLanes) * 2, sizeof high);
        for (uint32_t each = 0; each < kAtOnce; ++each) {
          int32_t pair;
          memcpy(&pair, weights + (k * kOutputs + o + each) * 2, sizeof pair);
          sums[each][0] = addPairs(sums[each][0], repeat(pair), low);
          sums[each][1] = addPairs(sums[each][1], repeat(pair), high);
        }
      }
      for (uint32_t each = 0; each < kAtOnce; ++each) {
        memcpy(total + (o + each) * totalStride + p, sums[each], sizeof sums[each]);
      }
    }
  }
}

} // namespace bmrt::npu

#endif // TESSERA_BMRUNTIME_SRC_NPU_PAIRSUMS_H
