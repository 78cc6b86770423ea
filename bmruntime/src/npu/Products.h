// SPDX-License-Identifier: Apache-2.0
//===- Products.h - Sums of products for the matrix unit --------------------===//
#ifndef BMRT_NPU_PRODUCTS_H
#define BMRT_NPU_PRODUCTS_H

#include <cstdint>

namespace bmrt::npu {

/// Outputs and positions that sumProducts works on at once.
inline constexpr uint32_t kOutputs = 8, kTile = 32;

/// total[o * totalStride + p] = sum over k below depth of weights[k * kOutputs + o] * panel[k * panelStride + p], for o
/// below kOutputs and p below kTile, added up in the order of k.
void sumProducts(const float *weights, const float *panel, uint64_t panelStride, uint64_t depth, float *total,
                 uint64_t totalStride);
/// The same, each product added unrounded.
void sumFusedProducts(const float *weights, const float *panel, uint64_t panelStride, uint64_t depth, float *total,
                      uint64_t totalStride);
/// The same of pairs of integers: each k has two numbers, one behind the other, in weights and panel. Sums are taken
/// modulo 2^32, so their order does not matter.
void sumProducts(const int16_t *weights, const int16_t *panel, uint64_t panelStride, uint64_t depth, int32_t *total,
                 uint64_t totalStride);

// Those of integers for each width of vectors; sumProducts chooses by the CPU.
void sumPairs(const int16_t *weights, const int16_t *panel, uint64_t panelStride, uint64_t depth, int32_t *total,
              uint64_t totalStride);
void sumPairsAvx2(const int16_t *weights, const int16_t *panel, uint64_t panelStride, uint64_t depth, int32_t *total,
                  uint64_t totalStride);
void sumPairsAvx512(const int16_t *weights, const int16_t *panel, uint64_t panelStride, uint64_t depth, int32_t *total,
                    uint64_t totalStride);

/// sums[t] = sum over the taps of weights[tap] * seen[tap][t], in their order; whole vectors of 32 are read and
/// written. Integers in int32 modulo 2^32; in float they must be small enough to be exact.
void sumTaps(float *sums, const float *const *seen, const float *weights, uint32_t taps, uint64_t count);
void sumTaps(int32_t *sums, const int32_t *const *seen, const int32_t *weights, uint32_t taps, uint64_t count);

/// sums[t] = the largest of start and seen[tap][t]; NaN where one of these is.
void largestTap(float *sums, float start, const float *const *seen, uint32_t taps, uint64_t count);
void largestTap(int32_t *sums, int32_t start, const int32_t *const *seen, uint32_t taps, uint64_t count);

} // namespace bmrt::npu

#endif // BMRT_NPU_PRODUCTS_H
