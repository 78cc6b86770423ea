// SPDX-License-Identifier: Apache-2.0
//===- DotProducts.h - Vectorised dot products for the matrix unit --------===//
#ifndef TESSERA_BMRUNTIME_SRC_NPU_DOTPRODUCTS_H
#define TESSERA_BMRUNTIME_SRC_NPU_DOTPRODUCTS_H

#include <cstdint>

namespace bmrt::npu {

/// Outputs and positions that sumProducts processes at once.
inline constexpr uint32_t kOutputs = 8, kTile = 32;

/// Computes total[o * totalStride + p] = sum over k < depth of weights[k * kOutputs + o] * panel[k * panelStride + p],
/// for o < kOutputs and p < kTile, adding in the order of k.
void sumProducts(const float *weights, const float *panel, uint64_t panelStride, uint64_t depth, float *total,
                 uint64_t totalStride);
/// Computes the same sums with fused multiply-adds.
void sumFusedProducts(const float *weights, const float *panel, uint64_t panelStride, uint64_t depth, float *total,
                      uint64_t totalStride);
/// Computes the same sums for pairs of integers: each k has two adjacent numbers in weights and in panel. Sums are
/// modulo 2^32, so their order does not matter.
void sumProducts(const int16_t *weights, const int16_t *panel, uint64_t panelStride, uint64_t depth, int32_t *total,
                 uint64_t totalStride);

// The integer version for each vector width; sumProducts chooses one for the CPU.
void sumPairs(const int16_t *weights, const int16_t *panel, uint64_t panelStride, uint64_t depth, int32_t *total,
              uint64_t totalStride);
void sumPairsAvx2(const int16_t *weights, const int16_t *panel, uint64_t panelStride, uint64_t depth, int32_t *total,
                  uint64_t totalStride);
void sumPairsAvx512(const int16_t *weights, const int16_t *panel, uint64_t panelStride, uint64_t depth, int32_t *total,
                    uint64_t totalStride);

/// Computes sums[t] = sum over the taps of weights[tap] * seen[tap][t], in tap order. Reads and writes whole vectors of
/// 32 elements. Integers are int32 modulo 2^32; integers in float must be small enough to be exact.
void sumTaps(float *sums, const float *const *seen, const float *weights, uint32_t taps, uint64_t count);
void sumTaps(int32_t *sums, const int32_t *const *seen, const int32_t *weights, uint32_t taps, uint64_t count);

/// Computes sums[t] = the largest of start and all seen[tap][t]; NaN if one of them is NaN.
void largestTap(float *sums, float start, const float *const *seen, uint32_t taps, uint64_t count);
void largestTap(int32_t *sums, int32_t start, const int32_t *const *seen, uint32_t taps, uint64_t count);

} // namespace bmrt::npu

#endif // TESSERA_BMRUNTIME_SRC_NPU_DOTPRODUCTS_H
