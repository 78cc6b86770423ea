//===- Stream.h - Commands of the NPU while they are made -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_STREAM_H
#define TESSERA_CODEGEN_NPU_STREAM_H

#include "bmodel/npu/chip.h"
#include "bmodel/npu/isa.h"
#include "codegen/Npu/VectorProgram.h"
#include "llvm/ADT/StringMap.h"
#include <string>
#include <vector>

namespace tessera::npu {

using bmodel::npu::Chip;
using bmodel::npu::Descriptor;
using bmodel::npu::Region;
using bmodel::npu::Shape;
using bmodel::npu::Tensor;

/// A tensor with its dims n, c, h, w, outside the chip or in local memory.
struct Place {
  Tensor tensor;
  Shape shape;

  uint32_t dim(unsigned index) const { return shape.dims[index]; }
};

/// [begin, begin + size) of one dim. Of local tensors c moves from lane to lane.
Place slice(Place place, unsigned dim, uint32_t begin, uint32_t size, const Chip &chip);

/// Bytes of local memory from one address to another, handed out one after the other, in every lane alike.
class Area {
public:
  Area(const Chip &chip, uint64_t begin, uint64_t end) : chip(chip), next(begin), end(end) {}

  /// A dense tensor from lane 0 on. Beyond the end it is no place to use: see isFull.
  Place allocate(const Shape &shape, bmodel::npu::Type type);
  bool isFull() const { return next > end; }
  uint64_t position() const { return next; }

private:
  const Chip &chip;
  uint64_t next, end;
};

/// One step of a pipeline: what is loaded, computed and stored, in this order.
struct Tile {
  std::vector<Descriptor> loads, computes, stores;
};

/// A stream and the constants that it reads.
class Stream {
public:
  explicit Stream(const Chip &chip) : chip(chip) {}

  /// The place of constant bytes; equal ones are kept once.
  uint64_t addConstant(llvm::ArrayRef<char> bytes);

  /// The fields of a map command that say what it computes.
  void setProgram(bmodel::npu::map_command &map, const Instructions &program);

  /// Begins a layer: what is appended from here on belongs to it.
  void beginLayer(llvm::StringRef name);
  /// Appends the tiles; where they do not share local memory, the loads of each come before the computation of the one
  /// before it, so that the queues overlap.
  void append(llvm::ArrayRef<Tile> tiles, bool overlap);

  const Chip &chip;
  std::vector<Descriptor> commands;
  std::vector<char> constants;
  std::vector<std::string> layers;

private:
  void append(llvm::ArrayRef<Descriptor> part);

  llvm::StringMap<uint64_t> known; ///< bytes -> offset
};

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_STREAM_H
