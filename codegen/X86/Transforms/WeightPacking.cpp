//===- WeightPacking.cpp - Packs weights in the order kernels read them ---===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/Transforms/WeightPacking.h"

#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <array>
#include <cassert>

namespace tessera::x86 {

static int64_t blocksOf(int64_t channels) { return llvm::divideCeil(channels, kBlock); }

/// Calls |body|(panel, first column, existing columns, padded columns) for each panel of |columns| columns.
template <typename Body>
static void forPanels(int64_t columns, int64_t panelBlocks, Body body) {
  int64_t width = panelBlocks * kBlock, padded = blocksOf(columns) * kBlock;
  for (int64_t first = 0, panel = 0; first < columns; first += width, ++panel) {
    body(panel, first, std::min(width, columns - first), std::min(width, padded - first));
  }
}

template <typename T>
void packConv(const ConvWeightDims &d, int64_t panelBlocks, bool blockedInput, const T *weights, T *packed) {
  int64_t taps = d.kh * d.kw, steps = d.groupC * taps, groupOc = d.oc / d.groups;
  for (int64_t group = 0; group < d.groups; ++group) {
    const T *groupWeights = weights + group * groupOc * steps;
    T *groupPacked = packed + group * blocksOf(groupOc) * kBlock * steps;
    forPanels(groupOc, panelBlocks, [&](int64_t, int64_t first, int64_t real, int64_t width) {
      T *panel = groupPacked + first * steps;
      std::fill_n(panel, steps * width, T(0));
      // Reads are sequential in a filter; the writes of neighbouring filters go to the same cache lines of the panel.
      for (int64_t column = 0; column < real; ++column) {
        const T *filter = groupWeights + (first + column) * steps;
        T *to = panel + column;
        if (!blockedInput) {
          for (int64_t step = 0; step < steps; ++step) {
            to[step * width] = filter[step];
          }
          continue;
        }
        for (int64_t block = 0; block < d.groupC; block += kBlock) {
          int64_t lanes = std::min(kBlock, d.groupC - block);
          for (int64_t lane = 0; lane < lanes; ++lane) {
            for (int64_t tap = 0; tap < taps; ++tap) {
              to[(block * taps + tap * lanes + lane) * width] = filter[(block + lane) * taps + tap];
            }
          }
        }
      }
    });
  }
}

namespace {
/// The matrix G of F(m, 3): m + 2 rows of 3.
using FilterTransform = std::array<std::array<double, 3>, 6>;
constexpr FilterTransform kFilterTransform4 = {{{1.0 / 4, 0, 0},
                                                {-1.0 / 6, -1.0 / 6, -1.0 / 6},
                                                {-1.0 / 6, 1.0 / 6, -1.0 / 6},
                                                {1.0 / 24, 1.0 / 12, 1.0 / 6},
                                                {1.0 / 24, -1.0 / 12, 1.0 / 6},
                                                {0, 0, 1}}};
constexpr FilterTransform kFilterTransform2 = {{{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}}};
} // namespace

void packWinograd(const ConvWeightDims &d, int64_t panelBlocks, int64_t outputTile, const float *weights,
                  float *packed) {
  assert(d.kh == 3 && d.kw == 3 && d.groups == 1 && "Winograd is for plain 3 x 3 kernels");
  const FilterTransform &g = outputTile == 4 ? kFilterTransform4 : kFilterTransform2;
  int64_t window = outputTile + 2, pointElements = d.groupC * blocksOf(d.oc) * kBlock;
  forPanels(d.oc, panelBlocks, [&](int64_t, int64_t first, int64_t real, int64_t width) {
    for (int64_t point = 0; point < window * window; ++point) {
      std::fill_n(packed + point * pointElements + first * d.groupC, d.groupC * width, 0.0f);
    }
    for (int64_t column = 0; column < real; ++column) {
      for (int64_t channel = 0; channel < d.groupC; ++channel) {
        const float *filter = weights + ((first + column) * d.groupC + channel) * 9;
        float *to = packed + first * d.groupC + channel * width + column;
        double half[6][3];
        for (int64_t y = 0; y < window; ++y) {
          for (int64_t x = 0; x < 3; ++x) {
            half[y][x] = g[y][0] * filter[x] + g[y][1] * filter[3 + x] + g[y][2] * filter[6 + x];
          }
        }
        for (int64_t y = 0; y < window; ++y) {
          for (int64_t x = 0; x < window; ++x) {
            to[(y * window + x) * pointElements] =
                static_cast<float>(half[y][0] * g[x][0] + half[y][1] * g[x][1] + half[y][2] * g[x][2]);
          }
        }
      }
    }
  });
}

template <typename T>
void packDepthwise(const ConvWeightDims &d, const T *weights, T *packed) {
  int64_t taps = d.kh * d.kw;
  std::fill_n(packed, blocksOf(d.oc) * kBlock * taps, T(0));
  for (int64_t channel = 0; channel < d.oc; ++channel) {
    for (int64_t tap = 0; tap < taps; ++tap) {
      packed[(channel / kBlock * taps + tap) * kBlock + channel % kBlock] = weights[channel * taps + tap];
    }
  }
}

template <typename T>
void packMatMul(int64_t k, int64_t n, bool transposed, int64_t panelBlocks, const T *weights, T *packed) {
  forPanels(n, panelBlocks, [&](int64_t, int64_t first, int64_t real, int64_t width) {
    T *panel = packed + first * k;
    if (!transposed) {
      for (int64_t step = 0; step < k; ++step) {
        std::fill(std::copy_n(weights + step * n + first, real, panel + step * width), panel + (step + 1) * width,
                  T(0));
      }
      return;
    }
    std::fill_n(panel, k * width, T(0));
    for (int64_t column = 0; column < real; ++column) {
      for (int64_t step = 0; step < k; ++step) {
        panel[step * width + column] = weights[(first + column) * k + step];
      }
    }
  });
}

template void packConv(const ConvWeightDims &, int64_t, bool, const float *, float *);
template void packConv(const ConvWeightDims &, int64_t, bool, const uint16_t *, uint16_t *);
template void packDepthwise(const ConvWeightDims &, const float *, float *);
template void packDepthwise(const ConvWeightDims &, const uint16_t *, uint16_t *);
template void packDepthwise(const ConvWeightDims &, const int8_t *, int8_t *);
template void packMatMul(int64_t, int64_t, bool, int64_t, const float *, float *);
template void packMatMul(int64_t, int64_t, bool, int64_t, const uint16_t *, uint16_t *);

} // namespace tessera::x86
