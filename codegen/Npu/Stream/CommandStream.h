//===- CommandStream.h - Streams of NPU commands ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Ops append steps. Until all steps are known, local memory consists of numbered buffers. Their addresses, and the
// times of their loads, are then decided for the whole program at once (PlanMemory.h).
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_NPU_STREAM_COMMANDSTREAM_H
#define TESSERA_CODEGEN_NPU_STREAM_COMMANDSTREAM_H

#include "bmodel/npu/chip.h"
#include "bmodel/npu/isa.h"
#include "codegen/Npu/Vector/VectorProgram.h"
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

/// A view of a tensor with dims n, c, h, w, in off-chip or local memory.
struct TileView {
  Tensor tensor; ///< region `none` for results that only leave through direct stores
  Shape shape;
  Tensor copy; ///< for results in local memory: off-chip location to store to as well; region `none` if there is none
  llvm::ArrayRef<DirectStore> directStores; ///< for results
  int64_t at[4] = {0, 0, 0, 0};             ///< position of this view within its value

  uint32_t dim(unsigned index) const { return shape.dims[index]; }
  bool isLocal() const { return tensor.region == Region::local; }
};

/// Returns [begin, begin + size) of one dim. Channels of local tensors advance from lane to lane.
TileView slice(TileView place, unsigned dim, uint32_t begin, uint32_t size, const Chip &chip);

/// Offsets of local tensors hold the number of the buffer in the bits from this one on, and the position in the buffer
/// below.
inline constexpr unsigned kBufferShift = 40;
/// Position of a buffer's first byte. Views of which the buffer only holds a part begin before it.
inline constexpr uint64_t kBufferBegin = uint64_t(1) << (kBufferShift - 1);

/// A buffer in every lane, for a dense tensor that begins in lane |lane|.
struct LocalBuffer {
  uint64_t bytes = 0;
  Shape shape;
  bmodel::npu::Type type{};
  uint16_t lane = 0;
};

/// One step of the program: loads, computation and stores, in this order.
struct Step {
  std::vector<Descriptor> loads, computes, stores;

  bool isEmpty() const { return loads.empty() && computes.empty() && stores.empty(); }
};
/// The step for a part of an op's work.
struct Tile : Step {
  Step first; ///< preceding step that computes what the tile's loads move; empty if there is none
};
/// A step in its position in the program.
struct Stage : Step {
  uint32_t layer = 0;
  bool hoisted = false;       ///< loads may begin before the computation of the previous step
  bool isIndependent = false; ///< likewise, if the previous step belongs to another op and there is room for both
};

/// Data that commands read and that is known at compile time. Equal data is stored once.
class Constants {
public:
  /// A range of |bytes|, and the layer that added it first.
  struct Piece {
    uint64_t offset, bytes;
    std::string layer;
  };

  /// Returns the offset of |bytes|, which is aligned to the bursts of every chip.
  uint64_t add(llvm::ArrayRef<char> bytes, llvm::StringRef layer = "");

  std::vector<char> bytes;
  std::vector<Piece> pieces; ///< ranges of |bytes|, in order
  /// Offset of the weights, biases and factors of an op, by op, whether kernel rows are folded, and volume (factors may
  /// differ between volumes).
  std::map<std::tuple<const void *, bool, int64_t>, uint64_t> weights;

private:
  std::unordered_multimap<uint64_t, uint32_t> known; ///< hash of the data -> index of a piece
};

/// Data that an op has loaded whole, for the next op that reads the same. Its buffer is in use as long as commands
/// refer to it.
struct LoadedRows {
  mlir::Value value;
  TileView outside, local;
  uint64_t bytes; ///< per lane

  bool isOf(mlir::Value other, const TileView &place) const {
    return value == other && std::memcmp(&outside.tensor, &place.tensor, sizeof(Tensor)) == 0 &&
           std::memcmp(&outside.shape, &place.shape, sizeof(Shape)) == 0;
  }
};

/// Steps, the buffers that they use, and the constants that they read.
class CommandStream {
public:
  CommandStream(const Chip &chip, Constants &constants) : chip(chip), constants(constants) {}

  uint64_t addConstant(llvm::ArrayRef<char> bytes) {
    return constants.add(bytes, layers.empty() ? llvm::StringRef() : layers[layer]);
  }
  /// Returns the offset of the new buffer's first byte.
  uint64_t addBuffer(const LocalBuffer &buffer);
  /// Returns a dense tensor in a new buffer, which begins in lane |lane|.
  TileView addLocal(const Shape &shape, bmodel::npu::Type type, uint16_t lane);

  /// Sets the fields of a map command that define its program.
  void setProgram(bmodel::npu::map_command &map, const Instructions &program);

  /// Begins a layer. What is appended from here on belongs to it.
  void beginLayer(llvm::StringRef name) {
    layers.push_back(name.str());
    layer = uint32_t(layers.size() - 1);
  }
  /// Returns to an existing layer.
  void enterLayer(uint32_t number) { layer = number; }
  /// Finds the steps whose loads do not read results of the previous step.
  void findIndependentStages();

  /// Appends tiles. |overlap|: the loads of each tile may come before the computation of the previous tile, and its
  /// preceding step before that of the previous tile, so that neither queue waits for the moves between the two.
  void append(std::vector<Tile> tiles, bool overlap);

  const Chip &chip;
  Constants &constants;
  std::vector<Stage> stages;
  std::vector<LocalBuffer> buffers; ///< number 0 is unused
  std::vector<std::string> layers;
  std::optional<LoadedRows> loadedRows;

private:
  uint32_t layer = 0;
};

/// Local memory used by a tile.
class LocalBudget {
public:
  explicit LocalBudget(CommandStream &stream) : stream(stream) {}

  /// Allocates a dense tensor from lane |lane| on, for this tile.
  TileView allocate(const Shape &shape, bmodel::npu::Type type);
  /// Allocates a tensor for this tile and the following tiles of the same channels.
  TileView keep(const Shape &shape, bmodel::npu::Type type);

  uint64_t used = 0, liveAcross = 0; ///< bytes per lane
  uint64_t fixed = 0;                ///< bytes per lane that all tiles of the op share
  uint16_t lane = 0;                 ///< lane in which all operands begin
  /// For ops that run slice by slice: tensors shared by the slices, filled by the first one.
  std::vector<TileView> *shared = nullptr;
  bool fillsShared = false;
  size_t nextShared = 0;

private:
  CommandStream &stream;
};

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_STREAM_COMMANDSTREAM_H
