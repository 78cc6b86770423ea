// SPDX-License-Identifier: Apache-2.0
//===- Matrix.cpp - Commands of the matrix unit -----------------------------===//
//
// Sums of integers are made in floating point where that is exact: products of 8 bits in float, some hundred at a time,
// products with 16 bits in double. It is the fastest exact way that plain C++ has on every machine.
//
//===----------------------------------------------------------------------===//
#include "Execute.h"
#include "Products.h"

#include <algorithm>
#include <limits>

namespace bmrt::npu {
namespace {

using namespace bmodel::npu;

constexpr const char *kNoMemory = "memory has run out";
/// Output positions worked on together, in whole rows.
constexpr uint32_t kBlock = 128;

/// What the largest of nothing is.
float leastOf(Type type) {
  return type == Type::i8    ? -128.0f
         : type == Type::u8  ? 0.0f
         : type == Type::i16 ? -32768.0f
                             : -std::numeric_limits<float>::infinity();
}

/// Where the window of one output position meets x along one axis: index, or -1 where padValue stands.
int32_t sourceOf(const Window &window, int axis, uint32_t output, uint32_t tap, uint32_t size) {
  int64_t place = int64_t(output) * window.step[axis] + int64_t(tap) * window.dilation[axis] - window.padding[axis];
  if (place < 0 || place % window.spread[axis]) {
    return -1;
  }
  place /= window.spread[axis];
  return place < int64_t(size) ? int32_t(place) : -1;
}

/// sourceOf for every tap and output column.
class Columns {
public:
  bool make(const Window &window, uint32_t outputs, uint32_t size) {
    width = outputs;
    if (!places.allocate(uint64_t(window.kernel[1]) * width)) {
      return false;
    }
    for (uint32_t l = 0; l < window.kernel[1]; ++l) {
      for (uint32_t j = 0; j < width; ++j) {
        places[uint64_t(l) * width + j] = sourceOf(window, 1, j, l, size);
      }
    }
    return true;
  }
  const int32_t *of(uint32_t tap) const { return places.data() + uint64_t(tap) * width; }

private:
  core::Array<int32_t> places;
  uint32_t width = 0;
};

/// A convolution, block of rows by block of rows: a panel of what each tap sees of each channel, times all weights.
/// Element: in which the products are made. Sum: in which they are added up.
template <typename Element, typename Sum>
class Convolution {
public:
  Convolution(const conv_command &command, Machine &machine)
      : c(command), x(machine.memories.rows(c.x)), w(machine.memories.rows(c.w)),
        stage(c.output, machine, c.y, c.r, c.p) {}

  const char *run() {
    width = c.shape.dims[3];
    depth = uint64_t(c.window.kernel[0]) * c.window.kernel[1] * c.channels;
    blockRows = std::clamp(kBlock / width, 1u, c.shape.dims[2]);
    stride = (uint64_t(blockRows) * width + kTile - 1) / kTile * kTile;
    if (!allocate()) {
      return kNoMemory;
    }
    loadWeights();
    for (uint32_t n = 0; n < c.shape.dims[0]; ++n) {
      for (uint32_t i = 0; i < c.shape.dims[2]; i += blockRows) {
        uint32_t rows = std::min(blockRows, c.shape.dims[2] - i);
        for (uint32_t each = 0; each < rows; ++each) {
          fillPanel(n, i + each, uint64_t(each) * width);
        }
        multiply(n, i, rows);
      }
    }
    return nullptr;
  }

private:
  bool allocate() {
    uint64_t outputs = (c.shape.dims[1] + kOutputs - 1) / kOutputs * kOutputs;
    return weights.allocate(outputs * depth) && panel.allocate(depth * stride) &&
           columns.make(c.window, width, c.columns) && row.allocate(std::max<uint32_t>(c.columns, c.channels)) &&
           sums.allocate(kOutputs * stride);
  }

  /// weights[o / kOutputs][k][o % kOutputs], k over kernel rows, kernel columns, channels.
  void loadWeights() {
    uint32_t taps = uint32_t(c.window.kernel[0]) * c.window.kernel[1];
    for (uint32_t o = 0; o < c.shape.dims[1]; ++o) {
      for (uint32_t tap = 0; tap < taps; ++tap) {
        w.load(row.data(), 0, o, tap, 0, c.channels);
        Element *to =
            weights.data() + (uint64_t(o / kOutputs) * depth + uint64_t(tap) * c.channels) * kOutputs + o % kOutputs;
        for (uint32_t i = 0; i < c.channels; ++i) {
          to[uint64_t(i) * kOutputs] = Element(row[i]);
        }
      }
    }
  }

  /// What the taps of output row i see, in the panel from column `at` on.
  void fillPanel(uint32_t n, uint32_t i, uint64_t at) {
    for (uint32_t k = 0; k < c.window.kernel[0]; ++k) {
      int32_t from = sourceOf(c.window, 0, i, k, c.rows);
      for (uint32_t channel = 0; channel < c.channels; ++channel) {
        if (from >= 0) {
          x.load(row.data(), n, channel, uint32_t(from), 0, c.columns);
        }
        for (uint32_t l = 0; l < c.window.kernel[1]; ++l) {
          Element *line = panel.data() + ((uint64_t(k) * c.window.kernel[1] + l) * c.channels + channel) * stride + at;
          const int32_t *places = columns.of(l);
          for (uint32_t j = 0; j < width; ++j) {
            line[j] = Element(from < 0 || places[j] < 0 ? float(c.window.padValue) : row[uint32_t(places[j])]);
          }
        }
      }
    }
  }

  void multiply(uint32_t n, uint32_t i, uint32_t rows) {
    for (uint32_t o = 0; o < c.shape.dims[1]; o += kOutputs) {
      const Element *block = weights.data() + uint64_t(o) * depth;
      for (uint64_t at = 0; at < uint64_t(rows) * width; at += kTile) {
        sumProducts(block, panel.data() + at, stride, depth, sums.data() + at, stride);
      }
      for (uint32_t each = o; each < std::min(o + kOutputs, c.shape.dims[1]); ++each) {
        for (uint32_t r = 0; r < rows; ++r) {
          stage.store(sums.data() + (each - o) * stride + uint64_t(r) * width, n, each, i + r, width);
        }
      }
    }
  }

  const conv_command &c;
  Rows x, w;
  OutputStage stage;
  uint32_t width = 0, blockRows = 0;
  uint64_t depth = 0, stride = 0;
  core::Array<Element> weights, panel;
  core::Array<Sum> sums;
  core::Array<float> row;
  Columns columns;
};

/// A window over each channel by itself. Sum: in which it is added up, double of integers.
template <typename Sum>
class Sliding {
public:
  template <typename Command>
  Sliding(const Command &command, const Machine &machine, OutputStage stage)
      : shape(command.shape), window(command.window), rows(command.rows), width(command.columns),
        x(machine.memories.rows(command.x)), stage(stage) {}

  /// begin(c) comes before each channel; combine(sum, value, whether it is inside, tap) gives the new sum.
  template <typename Begin, typename Combine>
  const char *run(Sum start, Begin begin, Combine combine) {
    if (!columns.make(window, shape.dims[3], width) || !row.allocate(width) || !sums.allocate(shape.dims[3])) {
      return kNoMemory;
    }
    for (uint32_t n = 0; n < shape.dims[0]; ++n) {
      for (uint32_t c = 0; c < shape.dims[1]; ++c) {
        begin(c);
        for (uint32_t i = 0; i < shape.dims[2]; ++i) {
          std::fill(sums.begin(), sums.end(), start);
          for (uint32_t k = 0; k < window.kernel[0]; ++k) {
            addRow(n, c, i, k, combine);
          }
          stage.store(sums.data(), n, c, i, shape.dims[3]);
        }
      }
    }
    return nullptr;
  }

private:
  template <typename Combine>
  void addRow(uint32_t n, uint32_t c, uint32_t i, uint32_t k, Combine combine) {
    int32_t from = sourceOf(window, 0, i, k, rows);
    if (from >= 0) {
      x.load(row.data(), n, c, uint32_t(from), 0, width);
    }
    for (uint32_t l = 0; l < window.kernel[1]; ++l) {
      const int32_t *places = columns.of(l);
      for (uint32_t j = 0; j < shape.dims[3]; ++j) {
        bool inside = from >= 0 && places[j] >= 0;
        sums[j] = combine(sums[j], Sum(inside ? row[uint32_t(places[j])] : float(window.padValue)), inside,
                          k * window.kernel[1] + l);
      }
    }
  }

  const Shape &shape;
  const Window &window;
  uint32_t rows, width;
  Rows x;
  OutputStage stage;
  Columns columns;
  core::Array<float> row;
  core::Array<Sum> sums;
};

template <typename Sum>
const char *depthwise(const depthwise_command &command, Machine &machine) {
  Rows w = machine.memories.rows(command.w);
  float weights[256]; // as many as the command may have
  const Window &window = command.window;
  auto begin = [&](uint32_t c) {
    for (uint32_t k = 0; k < window.kernel[0]; ++k) {
      w.load(weights + k * window.kernel[1], 0, c, k, 0, window.kernel[1]);
    }
  };
  auto combine = [&](Sum sum, Sum value, bool, uint32_t tap) { return sum + value * Sum(weights[tap]); };
  return Sliding<Sum>(command, machine, {command.output, machine, command.y, command.r, command.p})
      .run(0, begin, combine);
}

template <typename Sum>
const char *pool(const pool_command &command, Machine &machine) {
  Sliding<Sum> sliding(command, machine, {command.output, machine, command.y, Tensor(), Tensor()});
  auto nothing = [](uint32_t) {};
  if (command.largest) {
    auto larger = [](Sum sum, Sum value, bool inside, uint32_t) { return inside && !(sum > value) ? value : sum; };
    return sliding.run(Sum(leastOf(command.x.type)), nothing, larger);
  }
  return sliding.run(0, nothing, [](Sum sum, Sum value, bool, uint32_t) { return sum + value; });
}

} // namespace

const char *execute(const conv_command &command, Machine &machine) {
  if (isFloat(command.x.type)) {
    return Convolution<float, float>(command, machine).run();
  }
  bool wide = sizeOf(command.x.type) > 1;
  return wide ? Convolution<double, double>(command, machine).run()
              : Convolution<float, double>(command, machine).run();
}

const char *execute(const depthwise_command &command, Machine &machine) {
  return isFloat(command.x.type) ? depthwise<float>(command, machine) : depthwise<double>(command, machine);
}

const char *execute(const pool_command &command, Machine &machine) {
  return isFloat(command.x.type) ? pool<float>(command, machine) : pool<double>(command, machine);
}

} // namespace bmrt::npu
