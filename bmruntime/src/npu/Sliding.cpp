// SPDX-License-Identifier: Apache-2.0
//===- Sliding.cpp - The matrix unit's windows over single channels ---------===//
//
// Lays out each channel once as planes, one plane for each phase of the steps, with padding included. Every tap then
// reads all output positions as one run of consecutive elements, including a few unused ones between the rows.
//
//===----------------------------------------------------------------------===//
#include "DotProducts.h"
#include "Execute.h"
#include "Lines.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace bmrt::npu {
namespace {

using namespace bmodel::npu;

/// Number of extra elements after each buffer: loops over positions read and write whole vectors.
constexpr uint64_t kSlack = 32;
/// Limit of the elements of all planes; no useful window needs as many.
constexpr uint64_t kMostElements = 64 << 20;

/// Element is float for 8-bit integers and for floats: 256 products and 65025 addends are exact in it. For other types
/// it is int32.
template <typename Element>
class Sliding {
public:
  template <typename Command>
  Sliding(const Command &command, Machine &machine, OutputStage stage)
      : shape(command.shape), window(command.window), rows(command.rows), columns(command.columns),
        isInteger(!isFloat(command.x.type)), x(machine.memories.rows(command.x)), scratch(machine.scratch),
        stage(stage) {
    for (int axis = 0; axis < 2; ++axis) {
      uint32_t reach = (window.kernel[axis] - 1u) * window.dilation[axis];
      size[axis] = shape.dims[2 + axis] + reach / window.step[axis];
      phases[axis] = std::min<uint32_t>(window.step[axis], reach + 1);
    }
  }

  /// Calls sum(c, sums, seen, taps, count), which computes the sums of channel c. `outside` is the padding value.
  template <typename Sum>
  const char *run(Element outside, Sum sum) {
    uint32_t taps = uint32_t(window.kernel[0]) * window.kernel[1];
    uint64_t plane = uint64_t(size[0]) * size[1], count = (shape.dims[2] - 1) * uint64_t(size[1]) + shape.dims[3];
    if (plane * phases[0] * phases[1] > kMostElements) {
      return "the window reaches further than the simulator supports";
    }
    planes = scratch.take<Element>(0, plane * phases[0] * phases[1] + kSlack);
    auto *sums = scratch.take<Element>(1, count + kSlack);
    auto **seen = scratch.take<const Element *>(2, taps);
    if (!planes || !sums || !seen) {
      return kNoMemory;
    }
    for (uint32_t tap = 0; tap < taps; ++tap) {
      seen[tap] = firstOf(tap, plane);
    }
    for (uint32_t n = 0; n < shape.dims[0]; ++n) {
      for (uint32_t c = 0; c < shape.dims[1]; ++c) {
        fillPlanes(n, c, outside);
        sum(c, sums, seen, taps, count);
        store(sums, n, c);
      }
    }
    return nullptr;
  }

private:
  /// Returns the first element that a tap reads.
  const Element *firstOf(uint32_t tap, uint64_t plane) const {
    uint32_t at[2] = {tap / window.kernel[1] * window.dilation[0], tap % window.kernel[1] * window.dilation[1]};
    uint32_t phase = at[0] % window.step[0] * phases[1] + at[1] % window.step[1];
    return planes + phase * plane + uint64_t(at[0] / window.step[0]) * size[1] + at[1] / window.step[1];
  }

  void fillPlanes(uint32_t n, uint32_t c, Element outside) {
    Element *to = planes;
    for (uint32_t down = 0; down < phases[0]; ++down) {
      for (uint32_t across = 0; across < phases[1]; ++across) {
        Places places{int64_t(across) - window.padding[1], window.step[1], window.spread[1]};
        for (uint32_t i = 0; i < size[0]; ++i, to += size[1]) {
          int64_t place = int64_t(i) * window.step[0] + down - window.padding[0], row = place / window.spread[0];
          bool inside = place >= 0 && place % window.spread[0] == 0 && row < rows;
          see(to, inside ? x.line(n, c, uint32_t(row), columns) : Line(), places, size[1], outside);
        }
      }
    }
  }

  /// Removes the unused elements between rows and stores the sums.
  void store(Element *sums, uint32_t n, uint32_t c) {
    uint32_t width = shape.dims[3], count = shape.dims[2] * width;
    for (uint32_t i = 1; i < shape.dims[2] && size[1] != width; ++i) {
      memmove(sums + uint64_t(i) * width, sums + uint64_t(i) * size[1], width * sizeof(Element));
    }
    if constexpr (std::is_same_v<Element, float>) {
      if (isInteger) {
        auto *whole = reinterpret_cast<int32_t *>(sums);
        for (uint32_t i = 0; i < count; ++i) {
          int32_t value = int32_t(sums[i]);
          memcpy(whole + i, &value, sizeof value);
        }
        return stage.store(whole, n, c, 0, count);
      }
    }
    stage.store(sums, n, c, 0, count);
  }

  const Shape &shape;
  const Window &window;
  uint32_t rows, columns;
  uint32_t size[2], phases[2]; ///< rows and columns of a plane; number of planes down and across
  bool isInteger;
  Rows x;
  Scratch &scratch;
  OutputStage stage;
  Element *planes = nullptr;
};

template <typename Element>
const char *depthwise(const depthwise_command &command, Machine &machine) {
  Rows w = machine.memories.rows(command.w);
  Element weights[256]; // the maximum number of taps of the command
  const Window &window = command.window;
  auto sum = [&](uint32_t c, Element *sums, const Element *const *seen, uint32_t taps, uint64_t count) {
    for (uint32_t k = 0; k < window.kernel[0]; ++k) {
      see(weights + k * window.kernel[1], w.line(0, c, k, window.kernel[1]), {}, window.kernel[1], Element());
    }
    sumTaps(sums, seen, weights, taps, count);
  };
  OutputStage stage(command.output, machine, command.shape, command.y, command.r, command.p);
  return Sliding<Element>(command, machine, stage).run(Element(window.padValue), sum);
}

template <typename Element>
const char *pool(const pool_command &command, Machine &machine) {
  OutputStage stage(command.output, machine, command.shape, command.y, Tensor(), Tensor());
  Sliding<Element> sliding(command, machine, stage);
  if (command.largest) {
    Type type = command.x.type;
    Element least = Element(type == Type::i8    ? -128.0f
                            : type == Type::u8  ? 0.0f
                            : type == Type::i16 ? -32768.0f
                                                : -std::numeric_limits<float>::infinity());
    return sliding.run(least, [&](uint32_t, Element *sums, const Element *const *seen, uint32_t taps, uint64_t count) {
      largestTap(sums, least, seen, taps, count);
    });
  }
  auto *ones = machine.scratch.take<Element>(3, uint64_t(command.window.kernel[0]) * command.window.kernel[1]);
  if (!ones) {
    return kNoMemory;
  }
  std::fill(ones, ones + uint32_t(command.window.kernel[0]) * command.window.kernel[1], Element(1));
  auto sum = [&](uint32_t, Element *sums, const Element *const *seen, uint32_t taps, uint64_t count) {
    sumTaps(sums, seen, ones, taps, count);
  };
  return sliding.run(Element(command.window.padValue), sum);
}

} // namespace

const char *execute(const depthwise_command &command, Machine &machine) {
  return command.x.type == Type::i16 ? depthwise<int32_t>(command, machine) : depthwise<float>(command, machine);
}

const char *execute(const pool_command &command, Machine &machine) {
  return command.x.type == Type::i16 ? pool<int32_t>(command, machine) : pool<float>(command, machine);
}

} // namespace bmrt::npu
