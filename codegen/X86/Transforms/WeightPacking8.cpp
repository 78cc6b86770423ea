//===- WeightPacking8.cpp - 8-bit weights in the order kernels read them --===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/Transforms/WeightPacking.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cstring>
#include <vector>

namespace tessera::x86 {

static constexpr int64_t kBlock = 16;
static constexpr int64_t kStep = 4; ///< of 8-bit elements

static int64_t blocksOf(int64_t channels) { return llvm::divideCeil(channels, kBlock); }
static int64_t stepsOf(int64_t elements, int64_t perStep = kStep) { return llvm::divideCeil(elements, perStep); }

int64_t packedConvSteps8(const ConvWeightDims &d, PackedForm form, bool blockedInput, bool dilatedRows) {
  int64_t perStep = stepElements(form);
  if (blockedInput) {
    return (d.groupC / kBlock * (kBlock / perStep) + stepsOf(d.groupC % kBlock, perStep)) * d.kh * d.kw;
  }
  return d.groupC * d.kh * (dilatedRows ? d.kw : stepsOf(d.kw, perStep));
}
int64_t packedConvBytes8(const ConvWeightDims &d, PackedForm form, bool blockedInput, bool dilatedRows) {
  int64_t steps = packedConvSteps8(d, form, blockedInput, dilatedRows);
  return d.groups * blocksOf(d.oc / d.groups) * kBlock * steps * stepElements(form) * packedBytes(form);
}
int64_t packedMatMulBytes8(int64_t k, int64_t n, PackedForm form) {
  return blocksOf(n) * kBlock * stepsOf(k, stepElements(form)) * stepElements(form) * packedBytes(form);
}

namespace {
/// The panels of one product of |steps| K steps, all weights zero at first.
class Panels {
public:
  Panels(int64_t columns, int64_t panelBlocks, int64_t steps, PackedForm form, char *packed)
      : blocks(blocksOf(columns)), panelBlocks(panelBlocks), steps(steps), form(form), perStep(stepElements(form)),
        packed(packed) {
    std::memset(packed, 0, bytes());
  }
  int64_t bytes() const { return packedBytes(form) * blocks * kBlock * steps * perStep; }

  /// The column that set() writes.
  void startColumn(int64_t column) {
    int64_t block = column / kBlock, first = block / panelBlocks * panelBlocks;
    inBlock = column % kBlock;
    ofStep = std::min(panelBlocks, blocks - first) * kBlock * perStep;
    begin = (first * steps + block - first) * kBlock * perStep;
  }

  void set(int64_t step, int64_t lane, int8_t weight) {
    int64_t at = begin + step * ofStep;
    if (form == PackedForm::Quads) {
      packed[at + inBlock * kStep + lane] = static_cast<char>(weight);
      return;
    }
    bool words = form == PackedForm::Words;
    int64_t pair = words ? inBlock * 2 + lane : lane % 2 * kBlock * 2 + inBlock * 2 + lane / 2;
    int16_t wide = weight;
    std::memcpy(packed + (at + pair) * 2, &wide, sizeof(wide));
  }

private:
  int64_t blocks, panelBlocks, steps;
  PackedForm form;
  int64_t perStep; ///< elements of A
  char *packed;
  int64_t inBlock = 0, begin = 0, ofStep = 0; ///< elements, of the column
};
} // namespace

void packConv8(const ConvWeightDims &d, int64_t panelBlocks, bool blockedInput, bool dilatedRows, PackedForm form,
               const int8_t *weights, char *packed) {
  int64_t taps = d.kh * d.kw, groupOc = d.oc / d.groups, perStep = stepElements(form);
  int64_t steps = packedConvSteps8(d, form, blockedInput, dilatedRows);
  for (int64_t group = 0; group < d.groups; ++group) {
    Panels panels(groupOc, panelBlocks, steps, form, packed);
    for (int64_t column = 0; column < groupOc; ++column) {
      panels.startColumn(column);
      const int8_t *filter = weights + (group * groupOc + column) * d.groupC * taps;
      for (int64_t channel = 0; channel < d.groupC; ++channel) {
        int64_t block = channel / kBlock, lane = channel % kBlock;
        int64_t perTap = stepsOf(std::min(kBlock, d.groupC - block * kBlock), perStep);
        int64_t before = block * taps * (kBlock / perStep);
        for (int64_t tap = 0; tap < taps; ++tap) {
          int8_t weight = filter[channel * taps + tap];
          int64_t row = channel * d.kh + tap / d.kw, x = tap % d.kw;
          if (blockedInput) {
            panels.set(before + tap * perTap + lane / perStep, lane % perStep, weight);
          } else if (dilatedRows) {
            panels.set(row * d.kw + x, 0, weight);
          } else {
            panels.set(row * stepsOf(d.kw, perStep) + x / perStep, x % perStep, weight);
          }
        }
      }
    }
    packed += panels.bytes();
  }
}

DepthwiseWindows depthwiseWindows(int64_t kw, int64_t strideW) {
  return {{stepsOf(kw), strideW % 2 ? stepsOf(kw + 1) : 0}};
}

int64_t packedDepthwiseBytesOfBlock(int64_t kh, int64_t kw, int64_t strideW) {
  DepthwiseWindows windows = depthwiseWindows(kw, strideW);
  return kh * (windows.count[0] + windows.count[1]) * kBlock * kStep;
}

bool depthwiseInWindows(PackedForm form, int64_t strideW, int64_t dilationW) {
  // Tiles of 16 outputs begin at an even place of every residue.
  bool fits = dilationW == 1 || (strideW == 1 && (dilationW == 2 || dilationW == 4 || dilationW == 8));
  return form == PackedForm::Quads && fits;
}

int64_t packedDepthwiseBytes8(const ConvWeightDims &d, int64_t strideW, bool windows) {
  return windows ? blocksOf(d.oc) * packedDepthwiseBytesOfBlock(d.kh, d.kw, strideW) : packedDepthwiseElements(d) * 4;
}

void packDepthwise8(const ConvWeightDims &d, int64_t strideW, PackedForm form, bool windows, const int8_t *weights,
                    char *packed) {
  int64_t taps = d.kh * d.kw;
  if (!windows) {
    std::vector<float> values(d.oc * taps);
    for (int64_t i = 0; i < d.oc * taps; ++i) {
      values[i] =
          form == PackedForm::Words ? llvm::bit_cast<float>(uint32_t(uint16_t(int16_t(weights[i])))) : weights[i];
    }
    return packDepthwise(d, values.data(), reinterpret_cast<float *>(packed));
  }
  DepthwiseWindows shape = depthwiseWindows(d.kw, strideW);
  int64_t perBlock = packedDepthwiseBytesOfBlock(d.kh, d.kw, strideW), perRow = perBlock / d.kh;
  std::memset(packed, 0, blocksOf(d.oc) * perBlock);
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

void packMatMul8(int64_t k, int64_t n, bool transposed, int64_t panelBlocks, PackedForm form, const int8_t *weights,
                 char *packed) {
  int64_t perStep = stepElements(form);
  Panels panels(n, panelBlocks, stepsOf(k, perStep), form, packed);
  for (int64_t column = 0; column < n; ++column) {
    panels.startColumn(column);
    for (int64_t i = 0; i < k; ++i) {
      panels.set(i / perStep, i % perStep, transposed ? weights[column * k + i] : weights[i * n + column]);
    }
  }
}

} // namespace tessera::x86
