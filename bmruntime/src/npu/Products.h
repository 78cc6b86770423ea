// SPDX-License-Identifier: Apache-2.0
//===- Products.h - Sums of products for the matrix unit --------------------===//
#ifndef BMRT_NPU_PRODUCTS_H
#define BMRT_NPU_PRODUCTS_H

#include <cstdint>

namespace bmrt::npu {

/// Outputs and positions that addProducts works on at once.
inline constexpr uint32_t kOutputs = 4, kTile = 32;

/// total[o * totalStride + p] = sum over k below depth of weights[k * kOutputs + o] * panel[k * panelStride + p], for o
/// below kOutputs and p below kTile. Float sums of integers of 8 bits are exact: they go to double before they could be
/// rounded.
void sumProducts(const float *weights, const float *panel, uint64_t panelStride, uint64_t depth, double *total,
                 uint64_t totalStride);
/// The same in double, for integers of 16 bits.
void sumProducts(const double *weights, const double *panel, uint64_t panelStride, uint64_t depth, double *total,
                 uint64_t totalStride);
/// The same in float, added up in the order of k, for floats.
void sumProducts(const float *weights, const float *panel, uint64_t panelStride, uint64_t depth, float *total,
                 uint64_t totalStride);

} // namespace bmrt::npu

#endif // BMRT_NPU_PRODUCTS_H
