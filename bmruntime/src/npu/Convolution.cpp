// SPDX-License-Identifier: Apache-2.0
//===- Convolution.cpp - The matrix unit's sums over channels and taps ------===//
//
// Processes one block of output positions at a time: builds a panel of the input values that each tap reads from each
// channel, and multiplies it by all weights. Integers are int16 in pairs of channels with int32 sums; floats are f32.
//
//===----------------------------------------------------------------------===//
#include "DotProducts.h"
#include "Execute.h"
#include "Lines.h"

#include <algorithm>
#include <type_traits>

namespace bmrt::npu {
namespace {

using namespace bmodel::npu;

/// Approximate size of the panel, which should stay in the L2 cache.
constexpr uint64_t kPanelBytes = 512 << 10;

template <typename Element>
class Convolution {
public:
  Convolution(const conv_command &command, Machine &machine, Parameters parameters)
      : c(command), x(machine.memories.rows(c.x)), w(machine.memories.rows(c.w)), scratch(machine.scratch),
        stage(c.output, machine, c.shape, c.y, c.r, c.p, parameters) {
    height = c.shape.dims[2], width = c.shape.dims[3], columns = c.columns;
    if (seesAllOnce()) {
      width *= height, columns = width, height = 1;
    }
    taps = uint32_t(c.window.kernel[0]) * c.window.kernel[1];
    groups = (c.channels + kDeep - 1) / kDeep;
    depth = uint64_t(taps) * groups;
  }

  const char *run() {
    uint64_t positions = uint64_t(height) * width;
    uint64_t most = std::max<uint64_t>(kPanelBytes / (depth * kDeep * sizeof(Element)) / kTile, 2) * kTile;
    stride = std::min(most, (positions + kTile - 1) / kTile * kTile);
    if (!allocate()) {
      return kNoMemory;
    }
    loadWeights();
    for (uint32_t n = 0; n < c.shape.dims[0]; ++n) {
      for (uint64_t at = 0; at < positions; at += stride) {
        uint32_t count = uint32_t(std::min(stride, positions - at));
        fillPanel(n, at, count);
        multiply(n, at, count);
      }
    }
    return nullptr;
  }

private:
  /// Number of channels interleaved in panel and weights.
  static constexpr uint32_t kDeep = std::is_same_v<Element, int16_t> ? 2 : 1;
  using Sum = std::conditional_t<kDeep == 2, int32_t, float>;

  /// Returns true if the only tap reads every element of x once, in memory order. Rows can then be merged.
  bool seesAllOnce() const {
    const Window &window = c.window;
    for (int axis = 0; axis < 2; ++axis) {
      if (window.kernel[axis] != 1 || window.step[axis] != 1 || window.padding[axis] || window.spread[axis] != 1) {
        return false;
      }
    }
    return height <= c.rows && width == columns && c.x.strides[2] == int64_t(width) * c.x.strides[3];
  }

  bool allocate() {
    uint64_t blocks = (c.shape.dims[1] + kOutputs - 1) / kOutputs;
    weights = scratch.take<Element>(0, blocks * depth * kOutputs * kDeep);
    panel = scratch.take<Element>(1, depth * stride * kDeep);
    sums = scratch.take<Sum>(2, kOutputs * stride);
    line = scratch.take<Element>(3, 2 * std::max<uint64_t>(stride, c.channels));
    return weights && panel && sums && line;
  }

  /// Arranges weights as weights[o / kOutputs][k][o % kOutputs][channel % kDeep], where k counts taps and channels /
  /// kDeep.
  void loadWeights() {
    std::fill(weights, weights + (c.shape.dims[1] + kOutputs - 1) / kOutputs * depth * kOutputs * kDeep, Element());
    for (uint32_t o = 0; o < c.shape.dims[1]; ++o) {
      for (uint32_t tap = 0; tap < taps; ++tap) {
        see(line, w.line(0, o, tap, c.channels), {}, c.channels, Element());
        uint64_t first = uint64_t(o / kOutputs) * depth + uint64_t(tap) * groups;
        for (uint32_t i = 0; i < c.channels; ++i) {
          weights[((first + i / kDeep) * kOutputs + o % kOutputs) * kDeep + i % kDeep] = line[i];
        }
      }
    }
  }

  /// Fills the panel with the values that the taps read for `count` positions from `at` on.
  void fillPanel(uint32_t n, uint64_t at, uint32_t count) {
    for (uint32_t done = 0, part; done < count; done += part) {
      uint32_t i = uint32_t((at + done) / width), j = uint32_t((at + done) % width);
      part = std::min(count - done, width - j);
      for (uint32_t tap = 0; tap < taps; ++tap) {
        int32_t from = sourceOf(c.window, 0, i, tap / c.window.kernel[1], c.rows);
        Places places{int64_t(j) * c.window.step[1] + int64_t(tap % c.window.kernel[1]) * c.window.dilation[1] -
                          c.window.padding[1],
                      c.window.step[1], c.window.spread[1]};
        for (uint32_t group = 0; group < groups; ++group) {
          fillLine(panel + ((uint64_t(tap) * groups + group) * stride + done) * kDeep, n, group * kDeep, from, places,
                   part);
        }
      }
    }
  }

  void fillLine(Element *to, uint32_t n, uint32_t channel, int32_t from, const Places &places, uint32_t count) {
    auto seen = [&](Element *out, uint32_t each) {
      see(out, from < 0 ? Line() : x.line(n, each, uint32_t(from), columns), places, count, Element(c.window.padValue));
    };
    if constexpr (kDeep == 1) {
      seen(to, channel);
    } else {
      seen(line, channel);
      if (channel + 1 < c.channels) {
        seen(line + stride, channel + 1);
      } else {
        std::fill(line + stride, line + stride + count, Element());
      }
      interleave(to, line, line + stride, count);
    }
  }

  void multiply(uint32_t n, uint64_t at, uint32_t count) {
    for (uint32_t o = 0; o < c.shape.dims[1]; o += kOutputs) {
      const Element *block = weights + uint64_t(o) * depth * kDeep;
      for (uint32_t tile = 0; tile < count; tile += kTile) {
        auto sum = [&](auto *of) { of(block, panel + uint64_t(tile) * kDeep, stride, depth, sums + tile, stride); };
        if constexpr (kDeep == 1) {
          c.output.flags &Output::fused ? sum(&sumFusedProducts)
                                        : sum(static_cast<decltype(&sumFusedProducts)>(&sumProducts));
        } else {
          sum(static_cast<decltype(&sumPairs)>(&sumProducts));
        }
      }
      for (uint32_t each = o; each < std::min(o + kOutputs, c.shape.dims[1]); ++each) {
        stage.store(sums + (each - o) * stride, n, each, at, count);
      }
    }
  }

  const conv_command &c;
  Rows x, w;
  Scratch &scratch;
  OutputStage stage;
  uint32_t height, width, columns, taps, groups;
  uint64_t depth, stride = 0;
  Element *weights = nullptr, *panel = nullptr, *line = nullptr;
  Sum *sums = nullptr;
};

const char *convolve(const conv_command &command, Machine &machine, Parameters parameters) {
  return isFloat(command.x.type) ? Convolution<float>(command, machine, parameters).run()
                                 : Convolution<int16_t>(command, machine, parameters).run();
}

} // namespace

const char *execute(const conv_command &command, Machine &machine) {
  return convolve(command, machine, Parameters::ofChannels);
}

/// Runs a matmul as convolutions: rows of a take the role of weights, columns of b the role of positions.
const char *execute(const matmul_command &command, Machine &machine) {
  conv_command c;
  c.y = command.y, c.x = command.b, c.w = command.a, c.r = command.r, c.p = command.p;
  c.shape = command.shape, c.shape.dims[0] = 1, c.channels = command.channels;
  c.rows = 1, c.columns = uint16_t(command.shape.dims[3]), c.output = command.output;
  for (uint32_t n = 0; n < command.shape.dims[0]; ++n) {
    auto move = [&](Tensor &to, const Tensor &from) {
      to.offset = from.offset + uint64_t(int64_t(n) * from.strides[0]);
    };
    move(c.y, command.y), move(c.w, command.a), move(c.x, command.b), move(c.r, command.r);
    if (const char *fault = convolve(c, machine, Parameters::ofColumns)) {
      return fault;
    }
  }
  return nullptr;
}

} // namespace bmrt::npu
