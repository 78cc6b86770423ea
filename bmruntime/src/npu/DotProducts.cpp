// SPDX-License-Identifier: Apache-2.0
//===- DotProducts.cpp - Vectorised dot products for the matrix unit ------===//
#define PAIR_SUMS sumPairs
#include "DotProducts.h"
#include "PairSums.h"

#include "EveryWidth.h"
#include "bmodel/cpu_features.h"

#include <cmath>

namespace bmrt::npu {
namespace {

using PairSums = decltype(&sumPairs);

PairSums choosePairSums() {
#if defined(__x86_64__)
  using namespace bmodel;
  constexpr uint64_t kVnni = BM_CPU_AVX512F | BM_CPU_AVX512BW | BM_CPU_AVX512VNNI;
  uint64_t features = cpuFeatures();
  return (features & kVnni) == kVnni ? sumPairsAvx512 : features & BM_CPU_AVX2 ? sumPairsAvx2 : sumPairs;
#else
  return sumPairs;
#endif
}

/// 16 elements; one iteration of the loops over taps processes two of them.
template <typename Element>
struct Wide {
  typedef Element Type __attribute__((vector_size(64)));
};

template <typename Element, typename Start, typename Combine>
[[gnu::always_inline]] inline void eachTap(Element *sums, const Element *const *seen, uint32_t taps, uint64_t count,
                                           Start start, Combine combine) {
  using Vector = typename Wide<Element>::Type;
  for (uint64_t t = 0; t < count; t += 32) {
    Vector total[2] = {start + Vector{}, start + Vector{}};
    for (uint32_t tap = 0; tap < taps; ++tap) {
      Vector values[2];
      memcpy(values, seen[tap] + t, sizeof values);
      combine(total[0], values[0], tap);
      combine(total[1], values[1], tap);
    }
    memcpy(sums + t, total, sizeof total);
  }
}

} // namespace

void sumProducts(const int16_t *weights, const int16_t *panel, uint64_t panelStride, uint64_t depth, int32_t *total,
                 uint64_t totalStride) {
  static const PairSums chosen = choosePairSums();
  chosen(weights, panel, panelStride, depth, total, totalStride);
}

// Two vectors of 16 floats by four outputs: eight independent sums hide the latency of an addition.
NPU_EVERY_WIDTH void sumProducts(const float *weights, const float *panel, uint64_t panelStride, uint64_t depth,
                                 float *total, uint64_t totalStride) {
  using Vector = Wide<float>::Type;
  constexpr uint32_t kAtOnce = 4;
  for (uint32_t first = 0; first < kOutputs; first += kAtOnce) {
    Vector sums[kAtOnce][2] = {};
    for (uint64_t k = 0; k < depth; ++k) {
      Vector low, high;
      memcpy(&low, panel + k * panelStride, sizeof low);
      memcpy(&high, panel + k * panelStride + 16, sizeof high);
      for (uint32_t o = 0; o < kAtOnce; ++o) {
        sums[o][0] += weights[k * kOutputs + first + o] * low;
        sums[o][1] += weights[k * kOutputs + first + o] * high;
      }
    }
    for (uint32_t o = 0; o < kAtOnce; ++o) {
      memcpy(total + (first + o) * totalStride, sums[o], sizeof sums[o]);
    }
  }
}

NPU_EVERY_WIDTH void sumFusedProducts(const float *weights, const float *panel, uint64_t panelStride, uint64_t depth,
                                      float *total, uint64_t totalStride) {
  constexpr uint32_t kAtOnce = 4;
  for (uint32_t first = 0; first < kOutputs; first += kAtOnce) {
    float sums[kAtOnce][kTile] = {};
    for (uint64_t k = 0; k < depth; ++k) {
      for (uint32_t o = 0; o < kAtOnce; ++o) {
        for (uint32_t p = 0; p < kTile; ++p) {
          sums[o][p] = std::fma(weights[k * kOutputs + first + o], panel[k * panelStride + p], sums[o][p]);
        }
      }
    }
    for (uint32_t o = 0; o < kAtOnce; ++o) {
      memcpy(total + (first + o) * totalStride, sums[o], sizeof sums[o]);
    }
  }
}

NPU_EVERY_WIDTH void sumTaps(float *sums, const float *const *seen, const float *weights, uint32_t taps,
                             uint64_t count) {
  eachTap(sums, seen, taps, count, 0.0f,
          [&](auto &total, const auto &values, uint32_t tap)
              __attribute__((always_inline)) { total += values * weights[tap]; });
}

NPU_EVERY_WIDTH void sumTaps(int32_t *sums, const int32_t *const *seen, const int32_t *weights, uint32_t taps,
                             uint64_t count) {
  // Use unsigned integers, which wrap around on overflow.
  eachTap(reinterpret_cast<uint32_t *>(sums), reinterpret_cast<const uint32_t *const *>(seen), taps, count, 0u,
          [&](auto &total, const auto &values, uint32_t tap)
              __attribute__((always_inline)) { total += values * uint32_t(weights[tap]); });
}

NPU_EVERY_WIDTH void largestTap(float *sums, float start, const float *const *seen, uint32_t taps, uint64_t count) {
  using Bits = Wide<int32_t>::Type;
  using Floats = Wide<float>::Type;
  eachTap(sums, seen, taps, count, start, [](auto &total, const auto &values, uint32_t) __attribute__((always_inline)) {
    auto larger = ((total > values) | (total != total)) ? total : values;
    // For two zeros, choose +0 unless both are -0.
    auto equal = Floats(Bits(total) & Bits(values));
    total = total == values ? equal : larger;
  });
}

NPU_EVERY_WIDTH void largestTap(int32_t *sums, int32_t start, const int32_t *const *seen, uint32_t taps,
                                uint64_t count) {
  eachTap(sums, seen, taps, count, start, [](auto &total, const auto &values, uint32_t) __attribute__((always_inline)) {
    total = total > values ? total : values;
  });
}

} // namespace bmrt::npu
