// SPDX-License-Identifier: Apache-2.0
//===- Memories.h - Memories that commands access ---------------------------===//
#ifndef TESSERA_BMRUNTIME_SRC_NPU_MEMORIES_H
#define TESSERA_BMRUNTIME_SRC_NPU_MEMORIES_H

#include "../core/Memory.h"
#include "bmodel/npu/chip.h"
#include "bmodel/npu/isa.h"

namespace bmrt::npu {

using bmodel::npu::Chip;
using bmodel::npu::Region;
using bmodel::npu::Shape;
using bmodel::npu::Tensor;
using bmodel::npu::Type;

/// A memory area of the caller.
struct Area {
  unsigned char *data = nullptr;
  uint64_t bytes = 0;
};

/// The memories of the regions outside the chip during a run.
struct Buffers {
  Area constants, workspace;
  const Area *io = nullptr;
  uint32_t ioCount = 0;
};

/// A row of a tensor in memory; without data, every position is outside.
struct Line {
  const unsigned char *data = nullptr;
  int64_t step = 0; ///< bytes between elements
  uint32_t size = 0;
  Type type{};
};

/// Access to the rows (along w) of a tensor, with addresses resolved once per command.
class Rows {
public:
  Rows() = default;
  Rows(const Tensor &tensor, const Chip &chip, unsigned char *base)
      : base(base + tensor.offset), lanes(tensor.region == Region::local ? chip.lanes : 0), laneBytes(chip.laneBytes),
        lane(tensor.lane), type(tensor.type) {
    for (int i = 0; i < 4; ++i) {
      strides[i] = tensor.strides[i];
    }
  }

  explicit operator bool() const { return base != nullptr; }
  /// Returns the address of the first element of a row.
  unsigned char *at(uint32_t n, uint32_t c, uint32_t h) const {
    int64_t place = int64_t(n) * strides[0] + int64_t(h) * strides[2];
    if (lanes) {
      uint32_t whole = lane + c;
      return base + place + int64_t(whole % lanes) * laneBytes + int64_t(whole / lanes) * strides[1];
    }
    return base + place + int64_t(c) * strides[1];
  }
  int64_t step() const { return strides[3]; }
  /// Returns a row of `size` elements.
  Line line(uint32_t n, uint32_t c, uint32_t h, uint32_t size) const { return {at(n, c, h), strides[3], size, type}; }
  Type elementType() const { return type; }

  /// Loads `count` elements from (n,c,h,w) on, converted to f32.
  void load(float *out, uint32_t n, uint32_t c, uint32_t h, uint32_t w, uint32_t count) const;
  /// Stores `count` values. Converts to float types with rounding; for integers, values must be whole numbers and are
  /// saturated.
  void store(const float *values, uint32_t n, uint32_t c, uint32_t h, uint32_t w, uint32_t count) const;

private:
  unsigned char *base = nullptr;
  uint32_t lanes = 0; ///< 0: not in local memory
  int64_t laneBytes = 0;
  uint32_t lane = 0;
  Type type{};
  int64_t strides[4] = {};
};

/// The chip's local memory, and the buffers of a run.
class Memories {
public:
  explicit Memories(const Chip &chip) : chip(chip) {}

  /// Returns false if memory has run out.
  [[nodiscard]] bool allocate() { return local.allocate(chip.localBytes()); }
  void bind(const Buffers &given) { buffers = given; }

  /// Returns the memory of a region; {} if the region does not exist.
  Area areaOf(Region region) const;
  /// Returns the rows of a tensor that checkOperands has accepted; none for an absent tensor.
  Rows rows(const Tensor &tensor) const {
    return tensor.region == Region::none ? Rows() : Rows(tensor, chip, areaOf(tensor.region).data);
  }

private:
  const Chip &chip;
  core::Buffer local;
  Buffers buffers;
};

} // namespace bmrt::npu

#endif // TESSERA_BMRUNTIME_SRC_NPU_MEMORIES_H
