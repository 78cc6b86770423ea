//===- WeightPacking.h - Weights in the order kernels read them -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Pure functions on f32 buffers. A panel is 16 * panelBlocks output channels (columns); the last one is as narrow as the
// blocks left. Channels and columns that do not exist are zero.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_DEVICE_DIALECT_TRANSFORMS_WEIGHTPACKING_H
#define TESSERA_DEVICE_DIALECT_TRANSFORMS_WEIGHTPACKING_H

#include "llvm/ADT/ArrayRef.h"
#include <cstdint>

namespace tessera::device {

/// Dims of logical convolution weights [OC, C / groups, KH, KW].
struct ConvWeightDims {
  int64_t oc, groupC, kh, kw, groups;
};

/// Elements of the packed form.
int64_t packedConvElements(const ConvWeightDims &dims);
int64_t packedWinogradElements(const ConvWeightDims &dims, int64_t outputTile);
int64_t packedDepthwiseElements(const ConvWeightDims &dims);
int64_t packedMatMulElements(int64_t k, int64_t n);

/// [group][panel][K][16 panelBlocks]; K runs over (block of 16 channels, kernel row, kernel column, channel) when
/// |blockedInput|, else over (channel, kernel row, kernel column).
void packConv(const ConvWeightDims &dims, int64_t panelBlocks, bool blockedInput, const float *weights, float *packed);

/// F(m x m, 3 x 3) with m = |outputTile|, 2 or 4: [point][panel][C][16 panelBlocks], transformed in double.
void packWinograd(const ConvWeightDims &dims, int64_t panelBlocks, int64_t outputTile, const float *weights,
                  float *packed);

/// [C / 16][KH * KW][16].
void packDepthwise(const ConvWeightDims &dims, const float *weights, float *packed);

/// [N / 16 panelBlocks][K][16 panelBlocks] of a [K, N] matrix ([N, K] when |transposed|).
void packMatMul(int64_t k, int64_t n, bool transposed, int64_t panelBlocks, const float *weights, float *packed);

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_TRANSFORMS_WEIGHTPACKING_H
