//===- CommandStream.cpp - Streams of NPU commands ------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Stream/CommandStream.h"

#include "llvm/Support/MathExtras.h"
#include "llvm/Support/xxhash.h"

using namespace bmodel::npu;
using llvm::ArrayRef;

namespace tessera::npu {

/// Alignment of constants: a multiple of every chip's burst.
constexpr uint64_t kAlignment = 64;

TileView slice(TileView place, unsigned dim, uint32_t begin, uint32_t size, const Chip &chip) {
  place.shape.dims[dim] = size, place.at[dim] += begin;
  place.copy.offset += place.copy.region == Region::none ? 0 : int64_t(begin) * place.copy.strides[dim];
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

uint64_t Constants::add(ArrayRef<char> added, llvm::StringRef layer) {
  const uint64_t hash = llvm::xxh3_64bits(llvm::StringRef(added.data(), added.size()));
  auto [first, last] = known.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    const Piece &piece = pieces[it->second];
    if (ArrayRef(bytes).slice(piece.offset, piece.bytes) == added) {
      return piece.offset;
    }
  }
  bytes.resize(llvm::alignTo(bytes.size(), kAlignment));
  known.emplace(hash, uint32_t(pieces.size()));
  pieces.push_back({bytes.size(), added.size(), layer.str()});
  bytes.insert(bytes.end(), added.begin(), added.end());
  return pieces.back().offset;
}

uint64_t CommandStream::addBuffer(const LocalBuffer &buffer) {
  buffers.resize(std::max<size_t>(buffers.size(), 1));
  buffers.push_back(buffer);
  return (uint64_t(buffers.size() - 1) << kBufferShift) + kBufferBegin;
}

/// Strides of a dense local tensor in bytes of a lane: of rows, of channels within a lane, and of images; and its size.
struct Dense {
  uint64_t row, plane, image, bytes;

  Dense(const Shape &shape, Type type, uint16_t lane, const Chip &chip) {
    uint64_t size = sizeOf(type);
    row = shape.dims[3] * size;
    plane = row * shape.dims[2];
    image = plane * llvm::divideCeil(lane + shape.dims[1], chip.lanes);
    bytes = image * shape.dims[0];
  }
};

TileView CommandStream::addLocal(const Shape &shape, Type type, uint16_t lane) {
  Dense dense(shape, type, lane, chip);
  TileView result;
  result.shape = shape;
  result.tensor.offset = addBuffer({dense.bytes, shape, type, lane});
  uint64_t strides[] = {dense.image, dense.plane, dense.row, sizeOf(type)};
  for (int i = 0; i < 4; ++i) {
    // A tensor whose strides overflow does not fit local memory anyway.
    result.tensor.strides[i] = int32_t(std::min<uint64_t>(strides[i], INT32_MAX));
  }
  result.tensor.region = Region::local, result.tensor.type = type, result.tensor.lane = lane;
  return result;
}

void CommandStream::setProgram(map_command &map, const Instructions &program) {
  InstructionCounts counts = countsOf(program.data(), program.size());
  map.length = uint16_t(program.size()), map.plain = counts.plain, map.slow = counts.slow;
  map.program.region = Region::constants, map.program.type = Type::i32, map.program.strides[3] = 4;
  map.program.offset =
      addConstant({reinterpret_cast<const char *>(program.data()), program.size() * sizeof(bmodel::npu::Instruction)});
}

void CommandStream::append(std::vector<Tile> tiles, bool overlap) {
  size_t ready = 0; // tiles whose preceding steps have been appended
  for (size_t i = 0; i < tiles.size(); ++i) {
    bool opens = i == 0 && tiles[0].first.isEmpty(), readsStageBefore = false;
    for (; ready < std::min(tiles.size(), i + (overlap ? 2 : 1)); ++ready) {
      if (!tiles[ready].first.isEmpty()) {
        stages.push_back({std::move(tiles[ready].first), layer, overlap && ready > 0});
        readsStageBefore = ready == i;
      }
    }
    stages.push_back({std::move(static_cast<Step &>(tiles[i])), layer, overlap && !opens && !readsStageBefore});
  }
}

/// Returns the range of off-chip bytes of a tensor.
static std::pair<int64_t, int64_t> extentOf(const Operand &operand) {
  auto low = int64_t(operand.tensor.offset), high = low + int64_t(sizeOf(operand.tensor.type));
  for (int i = 0; i < 4; ++i) {
    int64_t reach = int64_t(operand.shape.dims[i] - 1) * operand.tensor.strides[i];
    low += std::min<int64_t>(reach, 0), high += std::max<int64_t>(reach, 0);
  }
  return {low, high};
}

static bool meet(const Operand &a, const Operand &b) {
  auto [aLow, aHigh] = extentOf(a);
  auto [bLow, bHigh] = extentOf(b);
  return a.tensor.region == b.tensor.region && aLow < bHigh && bLow < aHigh;
}

/// Returns true if a load touches neither bytes that the previous step writes nor buffers that it uses.
static bool readsOthers(const Descriptor &load, const Stage &before) {
  if (load.header.opcode != Opcode::copy && load.header.opcode != Opcode::fill) {
    return false;
  }
  Operand operands[kMostOperands], others[kMostOperands];
  size_t count = operandsOf(load, operands);
  for (const auto *part : {&before.loads, &before.computes, &before.stores}) {
    for (const Descriptor &command : *part) {
      for (size_t other = 0, number = operandsOf(command, others); other < number; ++other) {
        for (size_t k = 0; k < count; ++k) {
          bool touch =
              operands[k].tensor.region == Region::local
                  ? others[other].tensor.region == Region::local &&
                        operands[k].tensor.offset >> kBufferShift == others[other].tensor.offset >> kBufferShift
                  : others[other].written && meet(operands[k], others[other]);
          if (touch) {
            return false;
          }
        }
      }
    }
  }
  return true;
}

void CommandStream::findIndependentStages() {
  for (size_t i = 1; i < stages.size(); ++i) {
    stages[i].isIndependent =
        !stages[i].hoisted && stages[i].layer != stages[i - 1].layer &&
        llvm::all_of(stages[i].loads, [&](const Descriptor &load) { return readsOthers(load, stages[i - 1]); });
  }
}

TileView LocalBudget::allocate(const Shape &shape, Type type) {
  TileView result = stream.addLocal(shape, type, lane);
  used += llvm::alignTo(stream.buffers.back().bytes, stream.chip.portBytes);
  return result;
}

TileView LocalBudget::keep(const Shape &shape, Type type) {
  TileView result = stream.addLocal(shape, type, lane);
  liveAcross += llvm::alignTo(stream.buffers.back().bytes, stream.chip.portBytes);
  return result;
}

} // namespace tessera::npu
