//===- WeightPackingInteger.cpp - Integer weights that floats multiply ----===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/Transforms/WeightPacking.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cstring>

namespace tessera::x86 {

namespace {
/// The panels of one group of channels.
class Writer {
public:
  Writer(const Panels &panels, char *packed) : panels(panels), packed(packed) {}

  /// |weight|(step) and |scale|(row) of |column|.
  void writeColumn(int64_t column, llvm::function_ref<int8_t(int64_t)> weight,
                   llvm::function_ref<float(int64_t)> scale) {
    int64_t blocks = panels.blocks(), block = column / kBlock;
    int64_t first = block / panels.panelBlocks * panels.panelBlocks;
    int64_t width = std::min(panels.panelBlocks, blocks - first) * kBlock, lane = column - first * kBlock;
    char *to = packed + first * panels.bytesOfBlock();
    int64_t row = 0, step = 0;
    for (const StepRun &run : panels.runs) {
      for (int64_t i = 0; i < run.count; ++i) {
        for (int64_t k = 0; k < run.size; ++k, ++step) {
          char &byte = to[row * width + lane];
          if (panels.step == PackedStep::i8) {
            byte = static_cast<char>(weight(step)), ++row;
          } else {
            int nibble = weight(step) & 15;
            byte = static_cast<char>(k % 2 ? byte | nibble << 4 : nibble);
            row += k % 2 || k + 1 == run.size;
          }
        }
      }
    }
    to += panels.weightBytesOfBlock() / kBlock * width;
    for (int64_t r = 0; r < panels.scaleRows; ++r) {
      float value = scale(r);
      std::memcpy(to + (r * width + lane) * sizeof(float), &value, sizeof(float));
    }
  }

private:
  const Panels &panels;
  char *packed;
};
} // namespace

void packIntegerMatMul(const Panels &panels, int64_t k, bool transposed, const int8_t *weights, const float *scales,
                       char *packed) {
  int64_t n = panels.columns;
  std::memset(packed, 0, panels.bytes());
  Writer writer(panels, packed);
  for (int64_t column = 0; column < n; ++column) {
    writer.writeColumn(
        column, [&](int64_t step) { return transposed ? weights[column * k + step] : weights[step * n + column]; },
        [&](int64_t row) { return scales[row * n + column]; });
  }
}

void packIntegerConv(const Panels &panels, const ConvWeightDims &d, bool blockedInput, const int8_t *weights,
                     const float *scales, char *packed) {
  int64_t taps = d.kh * d.kw, filter = d.groupC * taps;
  std::vector<int64_t> order; // of the elements of a filter
  for (int64_t block = 0; block < d.groupC && blockedInput; block += kBlock) {
    for (int64_t tap = 0; tap < taps; ++tap) {
      for (int64_t lane = 0, lanes = std::min(kBlock, d.groupC - block); lane < lanes; ++lane) {
        order.push_back((block + lane) * taps + tap);
      }
    }
  }
  std::memset(packed, 0, panels.bytes());
  for (int64_t group = 0; group < d.groups; ++group) {
    Writer writer(panels, packed + group * (panels.bytes() / d.groups));
    for (int64_t column = 0; column < panels.columns; ++column) {
      int64_t channel = group * panels.columns + column;
      const int8_t *from = weights + channel * filter;
      writer.writeColumn(
          column, [&](int64_t step) { return from[blockedInput ? order[step] : step]; },
          [&](int64_t row) { return scales[row * d.oc + channel]; });
    }
  }
}

} // namespace tessera::x86
