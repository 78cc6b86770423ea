//===- WeightPacking.h - Weights in the order kernels read them -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Pure functions on buffers. A panel is 16 * panelBlocks output channels (columns); the last one is as narrow as the
// blocks left. Channels and columns that do not exist are zero.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_X86_TRANSFORMS_WEIGHTPACKING_H
#define TESSERA_CODEGEN_X86_TRANSFORMS_WEIGHTPACKING_H

#include "llvm/ADT/ArrayRef.h"
#include <cstdint>
#include <vector>

namespace tessera::x86 {

/// Dims of logical convolution weights [OC, C / groups, KH, KW].
struct ConvWeightDims {
  int64_t oc, groupC, kh, kw, groups;
};

/// Elements of the packed form.
int64_t packedConvElements(const ConvWeightDims &dims);
int64_t packedWinogradElements(const ConvWeightDims &dims, int64_t outputTile);
int64_t packedDepthwiseElements(const ConvWeightDims &dims);
int64_t packedMatMulElements(int64_t k, int64_t n);

// T is float, or uint16_t for the bits of f16 and bf16; int8_t for depthwise weights with scales in the epilogue.

/// [group][panel][K][16 panelBlocks]; K runs over (block of 16 channels, kernel row, kernel column, channel) when
/// |blockedInput|, else over (channel, kernel row, kernel column).
template <typename T>
void packConv(const ConvWeightDims &dims, int64_t panelBlocks, bool blockedInput, const T *weights, T *packed);

/// F(m x m, 3 x 3) with m = |outputTile|, 2 or 4: [point][panel][C][16 panelBlocks], transformed in double.
void packWinograd(const ConvWeightDims &dims, int64_t panelBlocks, int64_t outputTile, const float *weights,
                  float *packed);

/// [C / 16][KH * KW][16].
template <typename T>
void packDepthwise(const ConvWeightDims &dims, const T *weights, T *packed);

/// [N / 16 panelBlocks][K][16 panelBlocks] of a [K, N] matrix ([N, K] when |transposed|).
template <typename T>
void packMatMul(int64_t k, int64_t n, bool transposed, int64_t panelBlocks, const T *weights, T *packed);

//--- integer weights of a product of floats ---

/// |count| runs of |size| K steps each, without a gap.
struct StepRun {
  int64_t count, size;
};

/// How i8 weights that f32 multiplies lie: [group][panel], each [K][16 panelBlocks] integers and behind them scales
/// [scaleRows][16 panelBlocks] f32. Of 4 bits, two K steps share a byte - the first one its low half - but a run begins
/// a new one. |runsPerScale| runs share a row of scales. Without rows the scales are elsewhere.
struct IntegerPanels {
  int64_t columns, panelBlocks, bits, groups;
  std::vector<StepRun> runs;
  int64_t scaleRows = 0, runsPerScale = 0;

  int64_t weightBytesOfBlock() const; ///< per 16 columns
  int64_t bytesOfBlock() const { return weightBytesOfBlock() + scaleRows * 16 * 4; }
  int64_t bytes() const;
};

/// |group|: entries of K (input channels of a conv) per row of scales, a multiple of 16; 0: no rows.
IntegerPanels integerPanelsOfMatMul(int64_t k, int64_t n, int64_t panelBlocks, int64_t bits, int64_t group);
IntegerPanels integerPanelsOfConv(const ConvWeightDims &dims, int64_t panelBlocks, bool blockedInput, bool dilatedRows,
                                  int64_t bits, int64_t group);

/// |scales|: [rows][columns], unread without rows.
void packIntegerMatMul(const IntegerPanels &panels, int64_t k, bool transposed, const int8_t *weights,
                       const float *scales, char *packed);
void packIntegerConv(const IntegerPanels &panels, const ConvWeightDims &dims, bool blockedInput, const int8_t *weights,
                     const float *scales, char *packed);

//--- 8-bit weights ---
// A K step of the register tile takes 32 bits of A, so K is cut into steps of four 8-bit elements or two 16-bit ones;
// elements that do not exist have zero weights. Per step and block of 16 columns lie, by the form:

enum class PackedForm {
  Quads, ///< i8 [column][k0, k1, k2, k3], for dot products of four bytes (VNNI). Signed A is multiplied as A + 128:
         ///< its packed op has a bias lowered by 128 * sum(w).
  Pairs, ///< i16 [k0, k2][column], then [k1, k3][column], as [2][column][2]: for sums of two 16-bit products
  Words, ///< i16 [column][k0, k1]: the same with A of i16
};

/// Elements of A in one K step.
inline int64_t stepElements(PackedForm form) { return form == PackedForm::Words ? 2 : 4; }

/// Bytes of one packed weight; as a tensor the packed weights are i8, as many as they have bytes.
inline int64_t packedBytes(PackedForm form) { return form == PackedForm::Quads ? 1 : 2; }

/// K steps of a convolution: over (block of 16 channels, kernel row, kernel column, four channels) when |blockedInput|,
/// else over (channel, kernel row, four kernel columns), or with |dilatedRows| one kernel column a step. Two instead of
/// four in PackedForm::Words.
int64_t packedConvSteps8(const ConvWeightDims &dims, PackedForm form, bool blockedInput, bool dilatedRows);
int64_t packedConvBytes8(const ConvWeightDims &dims, PackedForm form, bool blockedInput, bool dilatedRows);
int64_t packedMatMulBytes8(int64_t k, int64_t n, PackedForm form);

/// [group][panel][step][panelBlocks] of the above.
void packConv8(const ConvWeightDims &dims, int64_t panelBlocks, bool blockedInput, bool dilatedRows, PackedForm form,
               const int8_t *weights, char *packed);
void packMatMul8(int64_t k, int64_t n, bool transposed, int64_t panelBlocks, PackedForm form, const int8_t *weights,
                 char *packed);

/// Where the weights of a kernel row lie when every window of four columns starts at an even one: an output that starts
/// at an even (odd) column sums count[0] (count[1]) windows at distances of four. count[1] is 0 where no output starts
/// at an odd one.
struct DepthwiseWindows {
  int64_t count[2];
};
DepthwiseWindows depthwiseWindows(int64_t kw, int64_t strideW);
/// Bytes of the weights of 16 channels: [KH][windows of even outputs, then of odd ones][16][4] i8.
int64_t packedDepthwiseBytesOfBlock(int64_t kh, int64_t kw, int64_t strideW);

/// Whether the packed form of depthwise weights is windows; else it is packDepthwise()'s, the values as f32 or, in
/// PackedForm::Words, as i16 whose other half of 32 bits is zero.
bool depthwiseInWindows(PackedForm form, int64_t strideW, int64_t dilationW);
int64_t packedDepthwiseBytes8(const ConvWeightDims &dims, int64_t strideW, bool windows);
void packDepthwise8(const ConvWeightDims &dims, int64_t strideW, PackedForm form, bool windows, const int8_t *weights,
                    char *packed);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_TRANSFORMS_WEIGHTPACKING_H
