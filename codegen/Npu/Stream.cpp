//===- Stream.cpp - Commands of the NPU while they are made ---------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Stream.h"

#include "llvm/Support/MathExtras.h"

using namespace bmodel::npu;
using llvm::ArrayRef;

namespace tessera::npu {

/// Of constants: a burst of every chip begins there.
constexpr uint64_t kAlignment = 64;

Place slice(Place place, unsigned dim, uint32_t begin, uint32_t size, const Chip &chip) {
  place.shape.dims[dim] = size;
  Tensor &tensor = place.tensor;
  if (dim != 1 || tensor.region != Region::local) {
    tensor.offset += int64_t(begin) * tensor.strides[dim];
    return place;
  }
  uint32_t channel = tensor.lane + begin;
  tensor.offset += int64_t(channel / chip.lanes) * tensor.strides[1];
  tensor.lane = uint16_t(channel % chip.lanes);
  return place;
}

Place Area::allocate(const Shape &shape, Type type) {
  next = llvm::alignTo(next, chip.portBytes);
  uint64_t size = sizeOf(type), row = shape.dims[3] * size;
  uint64_t plane = llvm::alignTo(row * shape.dims[2], size), groups = llvm::divideCeil(shape.dims[1], chip.lanes);
  Place made;
  made.shape = shape;
  made.tensor.offset = next;
  uint64_t strides[] = {plane * groups, plane, row, size};
  for (int i = 0; i < 4; ++i) {
    // Too large for a stride is too large for the area.
    made.tensor.strides[i] = int32_t(std::min<uint64_t>(strides[i], INT32_MAX));
  }
  made.tensor.region = Region::local;
  made.tensor.type = type;
  next += plane * groups * shape.dims[0];
  return made;
}

uint64_t Stream::addConstant(ArrayRef<char> bytes) {
  auto [entry, isNew] = known.try_emplace(llvm::StringRef(bytes.data(), bytes.size()), 0);
  if (isNew) {
    constants.resize(llvm::alignTo(constants.size(), kAlignment));
    entry->second = constants.size();
    constants.insert(constants.end(), bytes.begin(), bytes.end());
  }
  return entry->second;
}

void Stream::setProgram(map_command &map, const Instructions &program) {
  InstructionCounts counts = countsOf(program.data(), program.size());
  map.length = uint16_t(program.size()), map.plain = counts.plain, map.slow = counts.slow;
  map.program.region = Region::constants, map.program.type = Type::i32, map.program.strides[3] = 4;
  map.program.offset =
      addConstant({reinterpret_cast<const char *>(program.data()), program.size() * sizeof(bmodel::npu::Instruction)});
}

void Stream::beginLayer(llvm::StringRef name) { layers.push_back(name.str()); }

void Stream::append(ArrayRef<Descriptor> part) {
  for (const Descriptor &command : part) {
    commands.push_back(command);
    commands.back().header.layer = uint32_t(layers.size() - 1);
  }
}

void Stream::append(ArrayRef<Tile> tiles, bool overlap) {
  for (size_t i = 0; i < tiles.size(); ++i) {
    if (i == 0 || !overlap) {
      append(tiles[i].loads);
    }
    if (overlap && i + 1 < tiles.size()) {
      append(tiles[i + 1].loads);
    }
    append(tiles[i].computes);
    append(tiles[i].stores);
  }
}

} // namespace tessera::npu
