//===- WeightPackingSteps.cpp - Packs K steps of several weights ----------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/Transforms/WeightPacking.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cstring>
#include <vector>

namespace tessera::x86 {

static int64_t stepsOf(int64_t elements, int64_t perStep) { return llvm::divideCeil(elements, perStep); }

namespace {
/// Writes the panels of one group, after setting all weights to zero.
class GroupWriter {
public:
  GroupWriter(const Panels &panels, char *packed)
      : panels(panels), steps(panels.steps()), stepBytes(stepBits(panels.step) / 8), packed(packed) {
    std::memset(packed, 0, bytes());
  }
  int64_t bytes() const { return panels.bytes() / panels.groups; }

  /// Selects the column that set() writes.
  void startColumn(int64_t column) {
    int64_t block = column / kBlock, first = block / panels.panelBlocks * panels.panelBlocks;
    inBlock = column % kBlock;
    ofStep = std::min(panels.panelBlocks, panels.blocks() - first) * kBlock * stepBytes;
    begin = (first * steps + block - first) * kBlock * stepBytes;
  }

  /// Stores |weight|, an 8-bit weight or the bits of a bf16, as element |lane| of K step |step|.
  template <typename T>
  void set(int64_t step, int64_t lane, T weight) {
    char *at = packed + begin + step * ofStep;
    if (panels.step == PackedStep::i8x4) {
      at[inBlock * 4 + lane] = static_cast<char>(weight);
      return;
    }
    bool words = stepElements(panels.step) == 2;
    int64_t pair = words ? inBlock * 2 + lane : lane % 2 * kBlock * 2 + inBlock * 2 + lane / 2;
    auto wide = static_cast<int16_t>(weight);
    std::memcpy(at + pair * 2, &wide, sizeof(wide));
  }

private:
  const Panels &panels;
  int64_t steps, stepBytes; ///< K steps, and bytes of one column in a K step
  char *packed;
  int64_t inBlock = 0, begin = 0, ofStep = 0; ///< column in its block; offset of the column's block; bytes per K step
};
} // namespace

template <typename T>
void packConvSteps(const Panels &panels, const ConvWeightDims &d, PackedOrder order, const T *weights, char *packed) {
  int64_t taps = d.kh * d.kw, perStep = stepElements(panels.step), stepsOfTap = panels.steps() / taps;
  for (int64_t group = 0; group < d.groups; ++group) {
    GroupWriter writer(panels, packed);
    for (int64_t column = 0; column < panels.columns; ++column) {
      writer.startColumn(column);
      const T *filter = weights + (group * panels.columns + column) * d.groupC * taps;
      for (int64_t channel = 0; channel < d.groupC; ++channel) {
        int64_t block = channel / kBlock, lane = channel % kBlock;
        int64_t perTap = stepsOf(std::min(kBlock, d.groupC - block * kBlock), perStep);
        int64_t before = block * taps * (kBlock / perStep);
        for (int64_t tap = 0; tap < taps; ++tap) {
          T weight = filter[channel * taps + tap];
          int64_t row = channel * d.kh + tap / d.kw, x = tap % d.kw;
          if (order == PackedOrder::blocks) {
            writer.set(before + tap * perTap + lane / perStep, lane % perStep, weight);
          } else if (hasChannelsLast(order)) {
            writer.set(tap * stepsOfTap + channel / perStep, channel % perStep, weight);
          } else if (order == PackedOrder::apart) {
            writer.set(row * d.kw + x, 0, weight);
          } else {
            writer.set(row * stepsOf(d.kw, perStep) + x / perStep, x % perStep, weight);
          }
        }
      }
    }
    packed += writer.bytes();
  }
}

void packDepthwise8(const ConvWeightDims &d, PackedStep step, const int8_t *weights, char *packed) {
  std::vector<float> values(d.oc * d.kh * d.kw);
  for (auto [value, weight] : llvm::zip_equal(values, llvm::ArrayRef(weights, values.size()))) {
    value = step == PackedStep::i16x2 ? llvm::bit_cast<float>(uint32_t(uint16_t(int16_t(weight)))) : weight;
  }
  packDepthwise(d, values.data(), reinterpret_cast<float *>(packed));
}

void packWindows(const ConvWeightDims &d, int64_t strideW, const int8_t *weights, char *packed) {
  constexpr int64_t kStep = 4; // columns of a window
  int64_t taps = d.kh * d.kw;
  DepthwiseWindows shape = depthwiseWindows(d.kw, strideW);
  int64_t perBlock = windowBytesOfBlock(d.kh, d.kw, strideW), perRow = perBlock / d.kh;
  std::memset(packed, 0, llvm::divideCeil(d.oc, kBlock) * perBlock);
  for (int64_t channel = 0; channel < d.oc; ++channel) {
    for (int64_t tap = 0; tap < taps; ++tap) {
      char *row = packed + channel / kBlock * perBlock + tap / d.kw * perRow + channel % kBlock * kStep;
      for (int64_t phase = 0; phase < (shape.count[1] ? 2 : 1); ++phase) {
        int64_t column = tap % d.kw + phase, window = (phase ? shape.count[0] : 0) + column / kStep;
        row[window * kBlock * kStep + column % kStep] = static_cast<char>(weights[channel * taps + tap]);
      }
    }
  }
}

template <typename T>
void packMatMulSteps(const Panels &panels, int64_t k, bool transposed, const T *weights, char *packed) {
  int64_t perStep = stepElements(panels.step), n = panels.columns;
  GroupWriter writer(panels, packed);
  for (int64_t column = 0; column < n; ++column) {
    writer.startColumn(column);
    for (int64_t i = 0; i < k; ++i) {
      writer.set(i / perStep, i % perStep, transposed ? weights[column * k + i] : weights[i * n + column]);
    }
  }
}

template void packConvSteps(const Panels &, const ConvWeightDims &, PackedOrder, const int8_t *, char *);
template void packConvSteps(const Panels &, const ConvWeightDims &, PackedOrder, const uint16_t *, char *);
template void packMatMulSteps(const Panels &, int64_t, bool, const int8_t *, char *);
template void packMatMulSteps(const Panels &, int64_t, bool, const uint16_t *, char *);

} // namespace tessera::x86
