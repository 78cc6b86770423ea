//===- WeightPackingInteger.cpp - Packs integer weights of float inputs ---===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/Transforms/WeightPacking.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cstring>

namespace tessera::x86 {

namespace {
/// Writes the panels of one group of channels.
class Writer {
public:
  /// Writes the weights of |columns| columns in one K step to `row`.
  using Row = llvm::function_ref<void(int64_t step, int64_t firstColumn, int64_t columns, int8_t *row)>;

  Writer(const Panels &panels, char *packed) : panels(panels), packed(packed) {}

  /// Writes the panels row by row, in memory order, because writing columns would touch every cache line of a panel
  /// once per column. Does not write padding. |scales|(row) returns the scales of all columns.
  void write(Row weights, llvm::function_ref<const float *(int64_t)> scales) {
    const int64_t blocks = panels.blocks();
    for (int64_t block = 0; block < blocks; block += panels.panelBlocks) {
      const int64_t first = block * kBlock, width = std::min(panels.panelBlocks, blocks - block) * kBlock;
      const int64_t columns = std::min(width, panels.columns - first);
      char *to = packed + block * panels.bytesOfBlock();
      writeSteps(weights, first, columns, width, reinterpret_cast<int8_t *>(to));
      to += panels.weightBytesOfBlock() / kBlock * width;
      for (int64_t r = 0; r < panels.scaleRows; ++r) {
        std::memcpy(to + r * width * sizeof(float), scales(r) + first, columns * sizeof(float));
      }
    }
  }

private:
  void writeSteps(Row weights, int64_t first, int64_t columns, int64_t width, int8_t *to) {
    const bool shares = panels.step == PackedStep::i4;
    std::vector<int8_t> high(columns);
    int64_t step = 0;
    for (const StepRun &run : panels.runs) {
      for (int64_t i = 0; i < run.count; ++i) {
        for (int64_t k = 0; k < run.size; to += width) {
          weights(step++, first, columns, to), ++k;
          if (shares) {
            const bool hasHigh = k < run.size;
            if (hasHigh) {
              weights(step++, first, columns, high.data()), ++k;
            }
            joinNibbles(columns, hasHigh ? high.data() : nullptr, to);
          }
        }
      }
    }
  }

  /// Combines the low 4 bits of `row` with those of |high|, which become the high 4 bits.
  static void joinNibbles(int64_t columns, const int8_t *high, int8_t *row) {
    for (int64_t c = 0; c < columns; ++c) {
      row[c] = static_cast<int8_t>((row[c] & 15) | (high ? high[c] << 4 : 0));
    }
  }

  const Panels &panels;
  char *packed;
};
} // namespace

void packIntegerMatMul(const Panels &panels, int64_t k, bool transposed, const int8_t *weights, const float *scales,
                       char *packed) {
  const int64_t n = panels.columns;
  std::memset(packed, 0, panels.bytes());
  Writer(panels, packed)
      .write(
          [=](int64_t step, int64_t first, int64_t columns, int8_t *row) {
            if (!transposed) {
              std::memcpy(row, weights + step * n + first, columns);
            }
            for (int64_t c = 0; transposed && c < columns; ++c) {
              row[c] = weights[(first + c) * k + step];
            }
          },
          [=](int64_t r) { return scales + r * n; });
}

void packIntegerConv(const Panels &panels, const ConvWeightDims &d, bool blockedInput, const int8_t *weights,
                     const float *scales, char *packed) {
  int64_t taps = d.kh * d.kw, filter = d.groupC * taps;
  std::vector<int64_t> order; // K step -> element of the filter
  for (int64_t block = 0; block < d.groupC && blockedInput; block += kBlock) {
    for (int64_t tap = 0; tap < taps; ++tap) {
      for (int64_t lane = 0, lanes = std::min(kBlock, d.groupC - block); lane < lanes; ++lane) {
        order.push_back((block + lane) * taps + tap);
      }
    }
  }
  std::memset(packed, 0, panels.bytes());
  for (int64_t group = 0; group < d.groups; ++group) {
    const int64_t channel = group * panels.columns;
    Writer(panels, packed + group * (panels.bytes() / d.groups))
        .write(
            [&](int64_t step, int64_t first, int64_t columns, int8_t *row) {
              const int8_t *from = weights + (channel + first) * filter + (blockedInput ? order[step] : step);
              for (int64_t c = 0; c < columns; ++c) {
                row[c] = from[c * filter];
              }
            },
            [&](int64_t r) { return scales + r * d.oc + channel; });
  }
}

} // namespace tessera::x86
