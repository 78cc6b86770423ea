// SPDX-License-Identifier: Apache-2.0
//===- RandomStream.h - Random command pipelines for tests ------------------===//
#ifndef TESSERA_BMODEL_FORMAT_TEST_RANDOMSTREAM_H
#define TESSERA_BMODEL_FORMAT_TEST_RANDOMSTREAM_H

#include "bmodel/npu/check.h"

#include <bit>
#include <random>

namespace bmodel::npu {

/// Random loads, computations, moves and stores over a few buffers in local memory, each of which is reused often. The
/// caller computes the waits with assignWaits. Every buffer is written before it is read; the last commands write the
/// whole output.
class RandomStream {
public:
  static constexpr uint32_t kPlaces = 24, kOutputs = 8;

  RandomStream(const Chip &chip, unsigned seed)
      : generator(seed), channels(chip.lanes + 3), integral(chip.requantise != "float") {
    for (uint32_t place = 0; place < kPlaces; ++place) {
      load(place);
    }
    for (int round = 0; round < 100; ++round) {
      uint32_t kind = below(7);
      kind == 0   ? load(below(kPlaces))
      : kind == 1 ? move()
      : kind == 2 ? store(below(kOutputs))
      : kind == 3 ? multiply()
                  : add();
    }
    for (uint32_t output = 0; output < kOutputs; ++output) {
      store(output);
    }
    assignWaits(commands, chip);
  }

  RegionSizes sizes() const {
    return {.constants = 0, .workspace = 0, .io = {kPlaces * tileBytes(), kOutputs * tileBytes()}, .inputs = 1};
  }
  uint64_t tileBytes() const { return uint64_t(channels) * kRow; }

  std::vector<Descriptor> commands;

private:
  static constexpr int32_t kRow = 16;

  uint32_t below(uint32_t limit) { return uint32_t(generator() % limit); }
  Shape shape() const { return {{1, channels, 1, kRow}}; }
  Tensor local(uint32_t place) const {
    return {.offset = uint64_t(place) * 64, .strides = {0, kRow, kRow, 1}, .region = Region::local, .type = Type::i8};
  }
  Tensor outside(int buffer, uint32_t tile) const {
    return {.offset = tile * tileBytes(),
            .strides = {0, kRow, kRow, 1},
            .region = Region(int(Region::io) + buffer),
            .type = Type::i8};
  }

  void load(uint32_t place) {
    copy_command c;
    c.y = local(place), c.x = outside(0, below(kPlaces)), c.shape = shape();
    commands.push_back(encode(c));
  }
  void move() {
    copy_command c;
    c.y = local(below(kPlaces)), c.x = local(below(kPlaces)), c.shape = shape();
    if (c.x.offset != c.y.offset) {
      commands.push_back(encode(c));
    }
  }
  /// Appends a compute command: the sum over rows of two adjacent buffers, computed as a pooling.
  void add() {
    pool_command c;
    c.x = local(below(kPlaces - 1)), c.y = local(below(kPlaces)), c.shape = shape();
    c.x.strides[2] = 64, c.window.kernel[0] = 2, c.rows = 2, c.columns = uint16_t(kRow);
    c.x.strides[1] = kRow; // channels beyond the number of lanes follow the first ones
    if (integral) {        // a factor of one half
      c.output = {.flags = Output::integral | Output::clamps, .lower = -128, .upper = 127};
      c.output.factor = std::bit_cast<float>(1 << 30), c.output.divisor = std::bit_cast<float>(31);
    }
    if (c.y.offset != c.x.offset && c.y.offset != c.x.offset + 64) {
      commands.push_back(encode(c));
    }
  }
  /// Appends a dot: multiplies the elements of two buffers into f32 sums, which fill a buffer.
  void multiply() {
    dot_command c;
    c.y = c.a = c.b = local(below(kPlaces)), c.shape = {{1, channels, 1, 4}}, c.steps = kRow;
    c.a.offset = local(below(kPlaces)).offset, c.b.offset = local(below(kPlaces)).offset;
    c.y.type = Type::f32, c.b.type = Type::i32, c.y.strides[3] = c.b.strides[3] = 4, c.b.strides[2] = 0;
    if (c.y.offset != c.a.offset && c.y.offset != c.b.offset) {
      commands.push_back(encode(c));
    }
  }
  void store(uint32_t output) {
    copy_command c;
    c.y = outside(1, output), c.x = local(below(kPlaces)), c.shape = shape();
    commands.push_back(encode(c));
  }

  std::mt19937 generator;
  uint32_t channels;
  bool integral;
};

} // namespace bmodel::npu

#endif // TESSERA_BMODEL_FORMAT_TEST_RANDOMSTREAM_H
