//===- WeightPacking.h - Packs weights in the order kernels read them ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Pure functions on buffers, one for each order and kind of K step that #x86.packing documents. A panel is 16 *
// panelBlocks output channels (columns); the last panel has only the remaining blocks. Channels and columns that do not
// exist are zero.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_X86_TRANSFORMS_WEIGHTPACKING_H
#define TESSERA_CODEGEN_X86_TRANSFORMS_WEIGHTPACKING_H

#include "codegen/X86/IR/PackedWeights.h"

#include <vector>

namespace tessera::x86 {

//--- floats ---
// T is float, or uint16_t for the bits of f16 and bf16; int8_t for depthwise weights with scales in the epilogue.

/// Packs in PackedOrder::blocks if |blockedInput|, otherwise in PackedOrder::taps. PackedOrder::apart has the same
/// layout as taps for float weights, whose K steps hold single elements.
template <typename T>
void packConv(const ConvWeightDims &dims, int64_t panelBlocks, bool blockedInput, const T *weights, T *packed);

/// Transforms for F(m x m, 3 x 3) with m = |outputTile|, 2 or 4, in double, and packs [point][panel][C][16
/// panelBlocks].
void packWinograd(const ConvWeightDims &dims, int64_t panelBlocks, int64_t outputTile, const float *weights,
                  float *packed);

/// Packs [C / 16][KH * KW][16].
template <typename T>
void packDepthwise(const ConvWeightDims &dims, const T *weights, T *packed);

/// Packs [N / 16 panelBlocks][K][16 panelBlocks] of a [K, N] matrix ([N, K] if |transposed|).
template <typename T>
void packMatMul(int64_t k, int64_t n, bool transposed, int64_t panelBlocks, const T *weights, T *packed);

//--- integers that floats multiply: PackedStep::i8 and i4 ---

/// Pack integers and |scales| [rows][columns], which may be null if the panels have no rows of scales.
void packIntegerMatMul(const Panels &panels, int64_t k, bool transposed, const int8_t *weights, const float *scales,
                       char *packed);
void packIntegerConv(const Panels &panels, const ConvWeightDims &dims, bool blockedInput, const int8_t *weights,
                     const float *scales, char *packed);

//--- steps of several elements: PackedStep::i8x4, i16x4, i16x2 and bf16x2 ---
// A K step of the register tile takes 32 bits of A, so K is split into steps of four 8-bit elements or two 16-bit ones;
// missing elements have zero weights. The weights of one step and block of 16 columns are
//   i8x4:   i8 [column][k0, k1, k2, k3], for dot products of four bytes
//   i16x4:  i16 [2][column][2], i.e. [column][k0, k2] then [column][k1, k3], for sums of two 16-bit products
//   i16x2:  i16 [column][k0, k1], for the same sums with i16 A
//   bf16x2: bf16 [column][k0, k1]
// T is int8_t, or uint16_t for the bits of bf16.

template <typename T>
void packConvSteps(const Panels &panels, const ConvWeightDims &dims, PackedOrder order, const T *weights, char *packed);
template <typename T>
void packMatMulSteps(const Panels &panels, int64_t k, bool transposed, const T *weights, char *packed);

/// Packs PackedOrder::windows.
void packWindows(const ConvWeightDims &dims, int64_t strideW, const int8_t *weights, char *packed);

/// Packs PackedOrder::depthwise for integer inputs: weights as f32, or as i16x2 of which one is zero.
void packDepthwise8(const ConvWeightDims &dims, PackedStep step, const int8_t *weights, char *packed);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_TRANSFORMS_WEIGHTPACKING_H
