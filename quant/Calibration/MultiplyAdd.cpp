// SPDX-License-Identifier: Apache-2.0
//===- MultiplyAdd.cpp - The inner loop of moments and rounding -----------===//
#include "quant/Calibration/MultiplyAdd.h"

#include <cstring>

namespace tessera::quant {
namespace {

/// Sixteen floats. They compile to one AVX-512 register, two of AVX2 or four of SSE.
using Vector = float __attribute__((vector_size(64)));
constexpr int64_t kLanes = sizeof(Vector) / sizeof(float), kVectors = kPanel / kLanes, kRows = 4;

template <int64_t Rows>
[[gnu::always_inline]] inline void tile(const float *a, int64_t strideA, const float *b, int64_t strideB, int64_t depth,
                                        float sign, float *c, int64_t strideC) {
  Vector sums[Rows][kVectors] = {};
  for (int64_t p = 0; p < depth; ++p) {
    Vector right[kVectors];
    std::memcpy(right, b + p * strideB, sizeof(right));
    for (int64_t i = 0; i < Rows; ++i) {
      for (int64_t v = 0; v < kVectors; ++v) {
        sums[i][v] += a[p * strideA + i] * right[v];
      }
    }
  }
  for (int64_t i = 0; i < Rows; ++i) {
    Vector old[kVectors];
    std::memcpy(old, c + i * strideC, sizeof(old));
    for (int64_t v = 0; v < kVectors; ++v) {
      old[v] += sign * sums[i][v];
    }
    std::memcpy(c + i * strideC, old, sizeof(old));
  }
}

} // namespace

__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"))) void
multiplyAdd(const float *a, int64_t strideA, const float *b, int64_t strideB, int64_t depth, float sign, float *c,
            int64_t strideC, int64_t rows, int64_t columns) {
  for (int64_t j = 0; j < columns; j += kPanel) {
    int64_t i = 0;
    for (; i + kRows <= rows; i += kRows) {
      tile<kRows>(a + i, strideA, b + j, strideB, depth, sign, c + i * strideC + j, strideC);
    }
    for (; i < rows; ++i) {
      tile<1>(a + i, strideA, b + j, strideB, depth, sign, c + i * strideC + j, strideC);
    }
  }
}

} // namespace tessera::quant
