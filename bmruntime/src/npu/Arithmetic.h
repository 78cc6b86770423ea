// SPDX-License-Identifier: Apache-2.0
//===- Arithmetic.h - Vectorised element-wise functions ---------------------===//
#ifndef TESSERA_BMRUNTIME_SRC_NPU_ARITHMETIC_H
#define TESSERA_BMRUNTIME_SRC_NPU_ARITHMETIC_H

#include "bmodel/npu/isa.h"
#include "bmodel/npu/program.h"

namespace bmrt::npu {

/// Number of elements per call; arrays must have room for this many elements, whatever `count` is.
inline constexpr uint32_t kChunk = 256;

/// Computes y[i] = op(a[i], b[i], c[i]); y may alias an operand.
void apply(const bmodel::npu::Instruction &instruction, float *y, const float *a, const float *b, const float *c,
           uint32_t count);

/// Computes sums[i] = factor * row[i] + sums[i], rounded once; `sums` and `row` must not overlap.
void addScaledRow(float *sums, const float *row, float factor, uint32_t count);

/// Applies the activation function of the output stage: v[i] = function(v[i]).
void apply(bmodel::npu::Function function, float alpha, float *v, uint32_t count);

/// Computes v[i] = float(sums[i] + bias), where the sum is modulo 2^32.
void toFloats(float *v, const int32_t *sums, int32_t bias, uint32_t count);

/// Steps of the output stage: v = v * factor; v = v + (r - zero) * scale; v = clamp(v); v = rne(v / divisor) +
/// zeroPoint.
void scale(float *v, float factor, uint32_t count);
void addScaled(float *v, const float *r, float zero, float scale, uint32_t count);
void clamp(float *v, float lower, float upper, uint32_t count);
void quantise(float *v, float divisor, float zeroPoint, uint32_t count);

} // namespace bmrt::npu

#endif // TESSERA_BMRUNTIME_SRC_NPU_ARITHMETIC_H
