// SPDX-License-Identifier: Apache-2.0
//===- MultiplyAdd.h - The inner loop of moments and rounding ---*- C++ -*-===//
#ifndef TESSERA_QUANT_CALIBRATION_MULTIPLYADD_H
#define TESSERA_QUANT_CALIBRATION_MULTIPLYADD_H

#include <cstdint>

namespace tessera::quant {

/// Number of columns of B and C that multiplyAdd computes at a time. The rows of B and C are padded to a multiple of
/// it.
inline constexpr int64_t kPanel = 32;

/// Returns |columns| rounded up to a multiple of kPanel.
inline constexpr int64_t padded(int64_t columns) { return (columns + kPanel - 1) / kPanel * kPanel; }

/// Computes C[i][j] += sign * sum over p of A[p][i] * B[p][j], for i < |rows| and j < padded(|columns|). Strides are in
/// floats. The order of the sums does not depend on the caller: the same operands give the same bits on the same
/// machine.
void multiplyAdd(const float *a, int64_t strideA, const float *b, int64_t strideB, int64_t depth, float sign, float *c,
                 int64_t strideC, int64_t rows, int64_t columns);

} // namespace tessera::quant

#endif // TESSERA_QUANT_CALIBRATION_MULTIPLYADD_H
