// SPDX-License-Identifier: Apache-2.0
//===- Products.cpp - Sums of products, as wide as the CPU's vectors --------===//
#include "Products.h"

#include "EveryWidth.h"

#include <algorithm>
#include <cstring>

namespace bmrt::npu {
namespace {

/// |sum| of this many products of two 8-bit numbers, one of them with 255 at most, stays below 2^24.
constexpr uint64_t kExactTerms = 512;

} // namespace

// Two vectors of 16 floats by four outputs: eight sums, as many as hide the latency of an addition.
NPU_EVERY_WIDTH void sumProducts(const float *weights, const float *panel, uint64_t panelStride, uint64_t depth,
                                 float *total, uint64_t totalStride) {
  typedef float Vector __attribute__((vector_size(64)));
  Vector sums[kOutputs][2] = {};
  for (uint64_t k = 0; k < depth; ++k) {
    Vector low, high;
    memcpy(&low, panel + k * panelStride, sizeof low);
    memcpy(&high, panel + k * panelStride + 16, sizeof high);
    for (uint32_t o = 0; o < kOutputs; ++o) {
      sums[o][0] += weights[k * kOutputs + o] * low;
      sums[o][1] += weights[k * kOutputs + o] * high;
    }
  }
  for (uint32_t o = 0; o < kOutputs; ++o) {
    memcpy(total + o * totalStride, sums[o], sizeof sums[o]);
  }
}

void sumProducts(const float *weights, const float *panel, uint64_t panelStride, uint64_t depth, double *total,
                 uint64_t totalStride) {
  float part[kOutputs * kTile];
  for (uint64_t begin = 0; begin == 0 || begin < depth; begin += kExactTerms) {
    sumProducts(weights + begin * kOutputs, panel + begin * panelStride, panelStride,
                std::min(kExactTerms, depth - begin), part, kTile);
    for (uint32_t o = 0; o < kOutputs; ++o) {
      for (uint32_t p = 0; p < kTile; ++p) {
        double &sum = total[o * totalStride + p];
        sum = (begin ? sum : 0) + double(part[o * kTile + p]);
      }
    }
  }
}

NPU_EVERY_WIDTH void sumProducts(const double *weights, const double *panel, uint64_t panelStride, uint64_t depth,
                                 double *total, uint64_t totalStride) {
  typedef double Vector __attribute__((vector_size(64)));
  for (uint32_t half = 0; half < kTile; half += 16) {
    Vector sums[kOutputs][2] = {};
    for (uint64_t k = 0; k < depth; ++k) {
      Vector low, high;
      memcpy(&low, panel + k * panelStride + half, sizeof low);
      memcpy(&high, panel + k * panelStride + half + 8, sizeof high);
      for (uint32_t o = 0; o < kOutputs; ++o) {
        sums[o][0] += weights[k * kOutputs + o] * low;
        sums[o][1] += weights[k * kOutputs + o] * high;
      }
    }
    for (uint32_t o = 0; o < kOutputs; ++o) {
      memcpy(total + o * totalStride + half, sums[o], sizeof sums[o]);
    }
  }
}

} // namespace bmrt::npu
