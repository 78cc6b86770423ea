//===- Stream.h - Commands of the NPU while they are made -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Ops append steps. Until all of them are there, local memory is made of numbered buffers: which bytes a buffer has,
// and when its load begins, is decided for the whole program at once (PlanMemory.h).
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_NPU_STREAM_H
#define TESSERA_CODEGEN_NPU_STREAM_H

#include "bmodel/npu/chip.h"
#include "bmodel/npu/isa.h"
#include "codegen/Npu/VectorProgram.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/StringMap.h"
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace tessera::npu {

using bmodel::npu::Chip;
using bmodel::npu::Descriptor;
using bmodel::npu::Region;
using bmodel::npu::Shape;
using bmodel::npu::Tensor;

struct DirectStore;

/// A tensor with its dims n, c, h, w, outside the chip or in local memory.
struct TileView {
  Tensor tensor; ///< of results that only leave through direct stores: region none
  Shape shape;
  Tensor copy; ///< of results in local memory: where they are stored too; region none: nowhere
  llvm::ArrayRef<DirectStore> directStores; ///< of results
  int64_t at[4] = {0, 0, 0, 0};             ///< where the place begins in its value

  uint32_t dim(unsigned index) const { return shape.dims[index]; }
  bool isLocal() const { return tensor.region == Region::local; }
};

/// [begin, begin + size) of one dim. Of local tensors c moves from lane to lane.
TileView slice(TileView place, unsigned dim, uint32_t begin, uint32_t size, const Chip &chip);

/// Offsets of local tensors hold the number of their buffer above this bit, and how far they are into it below.
inline constexpr unsigned kBufferShift = 40;
/// How far the first byte of a buffer is into it: places of which it holds a part begin before it.
inline constexpr uint64_t kBufferBegin = uint64_t(1) << (kBufferShift - 1);

/// Bytes of every lane, for a tensor that lies dense in them and begins in a lane.
struct LocalBuffer {
  uint64_t bytes = 0;
  Shape shape;
  bmodel::npu::Type type{};
  uint16_t lane = 0;
};

/// One step of the program: what is loaded, computed and stored, in this order.
struct Step {
  std::vector<Descriptor> loads, computes, stores;

  bool isEmpty() const { return loads.empty() && computes.empty() && stores.empty(); }
};
/// The step of a part of an op's work.
struct Tile : Step {
  Step first; ///< makes what the tile's loads move: a step in front, empty where they need none
};
struct Stage : Step {
  uint32_t layer = 0;
  bool hoisted = false;       ///< its loads may stand before the computation of the step before it
  bool isIndependent = false; ///< the same of a step of another op: where there is room for both
};

/// What commands read that is known before they run; equal bytes are kept once.
class Constants {
public:
  /// One of them, and the layer that asked for it first.
  struct Piece {
    uint64_t offset, bytes;
    std::string layer;
  };

  /// The place of bytes, a multiple of what every chip's bursts begin at.
  uint64_t add(llvm::ArrayRef<char> bytes, llvm::StringRef layer = "");

  std::vector<char> bytes;
  std::vector<Piece> pieces; ///< of bytes, in order
  /// Where the weights of an op are, with bias and factor of each output, as they are or with kernel rows folded; of
  /// each volume by itself, as factors may differ.
  std::map<std::tuple<const void *, bool, int64_t>, uint64_t> weights;

private:
  std::unordered_multimap<uint64_t, uint32_t> known; ///< hash of the bytes -> number of a piece
};

/// What an op has loaded whole, for the next one that reads the same: its buffer is in use for as long as commands say.
struct LoadedRows {
  mlir::Value value;
  TileView outside, local;
  uint64_t bytes; ///< of a lane

  bool isOf(mlir::Value other, const TileView &place) const {
    return value == other && std::memcmp(&outside.tensor, &place.tensor, sizeof(Tensor)) == 0 &&
           std::memcmp(&outside.shape, &place.shape, sizeof(Shape)) == 0;
  }
};

/// Steps, the buffers that they use, and the constants that they read.
class Stream {
public:
  Stream(const Chip &chip, Constants &constants) : chip(chip), constants(constants) {}

  uint64_t addConstant(llvm::ArrayRef<char> bytes) {
    return constants.add(bytes, layers.empty() ? llvm::StringRef() : layers[layer]);
  }
  /// The offset at which the buffer begins.
  uint64_t addBuffer(const LocalBuffer &buffer);
  /// A dense tensor in a buffer of its own, from |lane| on.
  TileView addLocal(const Shape &shape, bmodel::npu::Type type, uint16_t lane);

  /// The fields of a map command that say what it computes.
  void setProgram(bmodel::npu::map_command &map, const Instructions &program);

  /// Begins a layer: what is appended from here on belongs to it.
  void beginLayer(llvm::StringRef name) {
    layers.push_back(name.str());
    layer = uint32_t(layers.size() - 1);
  }
  /// Goes back to a layer.
  void enterLayer(uint32_t number) { layer = number; }
  /// Finds the steps whose loads read nothing that the step before them makes.
  void findIndependentStages();

  /// Appends tiles. |overlap|: the loads of each may come before the computation of the one before it, and its first
  /// step before that of the one before it, so that neither queue waits for the moves between the two.
  void append(std::vector<Tile> tiles, bool overlap);

  const Chip &chip;
  Constants &constants;
  std::vector<Stage> stages;
  std::vector<LocalBuffer> buffers; ///< number 0 is none
  std::vector<std::string> layers;
  std::optional<LoadedRows> loadedRows;

private:
  uint32_t layer = 0;
};

/// What a tile may use of local memory.
class LocalBudget {
public:
  explicit LocalBudget(Stream &stream) : stream(stream) {}

  /// A dense tensor from lane |lane| on, for this tile.
  TileView allocate(const Shape &shape, bmodel::npu::Type type);
  /// The same for this and the tiles behind it of the same channels.
  TileView keep(const Shape &shape, bmodel::npu::Type type);

  uint64_t used = 0, liveAcross = 0; ///< bytes of a lane
  uint64_t fixed = 0;                ///< the same of what all tiles of the op share
  uint16_t lane = 0;                 ///< in which all operands begin
  /// Of ops that run slice by slice: what its slices share, filled by the first of them.
  std::vector<TileView> *shared = nullptr;
  bool fillsShared = false;
  size_t nextShared = 0;

private:
  Stream &stream;
};

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_STREAM_H
