//===- WeightPackingInteger_test.cpp - Tests the packing of integer weights --===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/Transforms/WeightPacking.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <random>

using namespace tessera::x86;

namespace {

/// Reads panels by the definition of their layout (codegen/X86/IR/PackedWeights.h).
class Reader {
public:
  Reader(const Panels &panels, const std::vector<char> &packed) : panels(panels), packed(packed) {}

  int weight(int64_t group, int64_t step, int64_t column) const {
    int64_t row = step, half = 0;
    if (panels.step == PackedStep::i4) {
      row = 0;
      for (const StepRun &run : panels.runs) {
        const int64_t here = std::min(step, run.count * run.size), within = here % run.size;
        row += here / run.size * ((run.size + 1) / 2) + within / 2;
        half = within % 2;
        if ((step -= here) == 0 && here < run.count * run.size) {
          break;
        }
      }
    }
    const char byte = packed[panel(group, column) + row * width(column) + lane(column)];
    return panels.step == PackedStep::i8 ? byte : (half ? byte >> 4 : static_cast<signed char>(byte << 4) >> 4);
  }

  float scale(int64_t group, int64_t row, int64_t column) const {
    const int64_t weights = panels.weightBytesOfBlock() / kBlock * width(column);
    float value;
    std::memcpy(&value, &packed[panel(group, column) + weights + (row * width(column) + lane(column)) * sizeof(float)],
                sizeof(float));
    return value;
  }

private:
  int64_t firstBlock(int64_t column) const { return column / kBlock / panels.panelBlocks * panels.panelBlocks; }
  int64_t width(int64_t column) const {
    return std::min(panels.panelBlocks, panels.blocks() - firstBlock(column)) * kBlock;
  }
  int64_t lane(int64_t column) const { return column - firstBlock(column) * kBlock; }
  int64_t panel(int64_t group, int64_t column) const {
    return group * panels.bytes() / panels.groups + firstBlock(column) * panels.bytesOfBlock();
  }

  const Panels &panels;
  const std::vector<char> &packed;
};

std::vector<int8_t> randomWeights(std::mt19937 &random, int64_t count, PackedStep step) {
  const int half = step == PackedStep::i4 ? 8 : 128;
  std::vector<int8_t> weights(count);
  std::generate(weights.begin(), weights.end(), [&] { return int8_t(int(random() % (2 * half)) - half); });
  return weights;
}

std::vector<float> randomScales(std::mt19937 &random, int64_t count) {
  std::vector<float> scales(count);
  std::generate(scales.begin(), scales.end(), [&] { return float(random() % 1000); });
  return scales;
}

Panels panelsOf(std::mt19937 &random, int64_t groups, int64_t columns, llvm::SmallVector<StepRun, 2> runs) {
  Panels panels;
  panels.step = random() % 2 ? PackedStep::i4 : PackedStep::i8;
  panels.columns = columns, panels.groups = groups, panels.runs = std::move(runs);
  panels.panelBlocks = 1 + random() % 4, panels.scaleRows = random() % 4;
  return panels;
}

TEST(WeightPackingInteger, MatrixProducts) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    const int64_t size = 1 + random() % 9, n = 1 + random() % 150;
    llvm::SmallVector<StepRun, 2> runs{{int64_t(1 + random() % 4), size}, {1, int64_t(1 + random() % size)}};
    const Panels panels = panelsOf(random, 1, n, runs);
    const int64_t k = runs[0].count * size + runs[1].size;
    const std::vector<int8_t> weights = randomWeights(random, k * n, panels.step);
    const std::vector<float> scales = randomScales(random, panels.scaleRows * n);
    for (bool transposed : {false, true}) {
      std::vector<char> packed(panels.bytes(), 1);
      packIntegerMatMul(panels, k, transposed, weights.data(), scales.data(), packed.data());
      const Reader reader(panels, packed);
      for (int64_t column = 0; column < (n + kBlock - 1) / kBlock * kBlock; ++column) {
        for (int64_t step = 0; step < k; ++step) {
          const int64_t at = transposed ? column * k + step : step * n + column;
          ASSERT_EQ(reader.weight(0, step, column), column < n ? weights[at] : 0) << "round " << round;
        }
        for (int64_t row = 0; row < panels.scaleRows; ++row) {
          ASSERT_EQ(reader.scale(0, row, column), column < n ? scales[row * n + column] : 0) << "round " << round;
        }
      }
    }
  }
}

TEST(WeightPackingInteger, Convolutions) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    const ConvWeightDims d{0, int64_t(1 + random() % 40), int64_t(1 + random() % 3), int64_t(1 + random() % 3),
                           int64_t(1 + random() % 3)};
    const int64_t n = 1 + random() % 70, taps = d.kh * d.kw;
    const bool blocked = random() % 2;
    const ConvWeightDims dims{d.groups * n, d.groupC, d.kh, d.kw, d.groups};
    const Panels panels = panelsOf(random, d.groups, n, {{1, d.groupC * taps}});
    const std::vector<int8_t> weights = randomWeights(random, dims.oc * d.groupC * taps, panels.step);
    const std::vector<float> scales = randomScales(random, panels.scaleRows * dims.oc);
    std::vector<char> packed(panels.bytes(), 1);
    packIntegerConv(panels, dims, blocked, weights.data(), scales.data(), packed.data());
    const Reader reader(panels, packed);
    for (int64_t channel = 0; channel < dims.oc; ++channel) {
      for (int64_t c = 0, block = 0; c < d.groupC; ++c, block = c / kBlock * kBlock) {
        for (int64_t tap = 0; tap < taps; ++tap) { // blocks of channels with all their taps, or channel by channel
          const int64_t lanes = std::min(kBlock, d.groupC - block);
          const int64_t step = blocked ? block * taps + tap * lanes + c - block : c * taps + tap;
          ASSERT_EQ(reader.weight(channel / n, step, channel % n), weights[(channel * d.groupC + c) * taps + tap])
              << "round " << round;
        }
      }
      for (int64_t row = 0; row < panels.scaleRows; ++row) {
        ASSERT_EQ(reader.scale(channel / n, row, channel % n), scales[row * dims.oc + channel]) << "round " << round;
      }
    }
  }
}

} // namespace
