// SPDX-License-Identifier: Apache-2.0
//===- Memories.h - What commands read and write ----------------------------===//
#ifndef BMRT_NPU_MEMORIES_H
#define BMRT_NPU_MEMORIES_H

#include "../core/Memory.h"
#include "bmodel/npu/chip.h"
#include "bmodel/npu/isa.h"

namespace bmrt::npu {

using bmodel::npu::Chip;
using bmodel::npu::Region;
using bmodel::npu::Shape;
using bmodel::npu::Tensor;
using bmodel::npu::Type;

/// Memory of the caller.
struct Area {
  unsigned char *data = nullptr;
  uint64_t bytes = 0;
};

/// What regions outside the chip are during a run.
struct Buffers {
  Area constants, workspace;
  const Area *io = nullptr;
  uint32_t ioCount = 0;
};

/// A row of a tensor in memory. Without data it is outside of it.
struct Line {
  const unsigned char *data = nullptr;
  int64_t step = 0; ///< bytes from element to element
  uint32_t size = 0;
  Type type{};
};

/// Rows (along w) of a tensor, resolved once a command.
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
  /// The first element of a row.
  unsigned char *at(uint32_t n, uint32_t c, uint32_t h) const {
    int64_t place = int64_t(n) * strides[0] + int64_t(h) * strides[2];
    if (lanes) {
      uint32_t whole = lane + c;
      return base + place + int64_t(whole % lanes) * laneBytes + int64_t(whole / lanes) * strides[1];
    }
    return base + place + int64_t(c) * strides[1];
  }
  int64_t step() const { return strides[3]; }
  /// A row of `size` elements.
  Line line(uint32_t n, uint32_t c, uint32_t h, uint32_t size) const { return {at(n, c, h), strides[3], size, type}; }
  Type elementType() const { return type; }

  /// `count` elements from (n,c,h,w) on, converted.
  void load(float *out, uint32_t n, uint32_t c, uint32_t h, uint32_t w, uint32_t count) const;
  /// Floats as they are; integers take whole values, saturated.
  void store(const float *values, uint32_t n, uint32_t c, uint32_t h, uint32_t w, uint32_t count) const;

private:
  unsigned char *base = nullptr;
  uint32_t lanes = 0; ///< 0: not local
  int64_t laneBytes = 0;
  uint32_t lane = 0;
  Type type{};
  int64_t strides[4] = {};
};

/// The chip's local memory, and the buffers of a run.
class Memories {
public:
  explicit Memories(const Chip &chip) : chip(chip) {}

  /// False if memory has run out.
  [[nodiscard]] bool allocate() { return local.allocate(chip.localBytes()); }
  void bind(const Buffers &given) { buffers = given; }

  /// Where the region begins, and its size; {} for one that is not there.
  Area areaOf(Region region) const;
  /// Rows of a tensor that checkOperands has found to be inside its region; none for an absent one.
  Rows rows(const Tensor &tensor) const {
    return tensor.region == Region::none ? Rows() : Rows(tensor, chip, areaOf(tensor.region).data);
  }

private:
  const Chip &chip;
  core::Buffer local;
  Buffers buffers;
};

} // namespace bmrt::npu

#endif // BMRT_NPU_MEMORIES_H
