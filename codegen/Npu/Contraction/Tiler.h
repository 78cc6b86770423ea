//===- Tiler.h - Cuts ops into tiles that fit local memory ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_CONTRACTION_TILER_H
#define TESSERA_CODEGEN_NPU_CONTRACTION_TILER_H

#include "codegen/Npu/Stream/CommandStream.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"

namespace tessera::npu {

/// Builds one tile of an op. For each range of channels, the tile that begins at 0 in all other dims comes first.
using BuildTile = llvm::function_ref<void(const Shape &begin, const Shape &size, LocalBudget &localBudget, Tile &tile)>;

/// Cuts ops into as few tiles as fit, two in local memory at once if possible, and appends them to a stream.
class Tiler {
public:
  explicit Tiler(CommandStream &stream) : stream(stream), budget(stream.chip.laneBytes) {}

  /// Cuts an op into tiles and appends them. |granule|: unit in which each dim can be cut; 0: not at all. Fails if not
  /// even the smallest tile fits.
  llvm::Error append(const Shape &whole, const Shape &granule, BuildTile build);

  /// Appends tiles that the op has cut itself. They use |bytes| per lane at once, and could run with |atLeast|.
  void appendTiles(std::vector<Tile> tiles, uint64_t atLeast, uint64_t bytes);

  /// Returns the DMA cycles of a tile of this size.
  double cyclesToMove(const Shape &size, BuildTile build) { return tryTile(size, build).moves; }

  CommandStream &stream;
  uint64_t budget;         ///< bytes per lane that the tiles of the op may use
  bool overlaps = true;    ///< keep two tiles in local memory at once
  bool surveys = false;    ///< append nothing, and report |minimum|, |used| and |liveAcross| instead
  Shape whole;             ///< shape that the last op was cut from
  uint32_t appends = 0;    ///< how often the op was cut
  uint64_t minimum = 0;    ///< bytes per lane of the smallest tile
  uint64_t used = 0;       ///< bytes per lane of a single tile of the whole
  uint64_t liveAcross = 0; ///< bytes per lane shared by tiles, for all channels

  /// For an op that runs slice by slice: the rows of its current slice, commands to load before, and tensors shared by
  /// slices.
  struct SliceIteration {
    uint32_t begin, end;
    std::vector<Descriptor> before;
    std::vector<TileView> &shared;
    bool isFirst; ///< first slice of the op
    bool isAlone; ///< the previous step may compute what this one reads: it belongs to the same op, or to none in the
                  ///< group
  };
  std::optional<SliceIteration> sliceIteration;

private:
  void appendSliceIteration(const Shape &whole, BuildTile build);
  struct Fit {
    uint64_t used = 0, liveAcross = 0, fixed = 0;
    double moves = 0; ///< DMA cycles of its loads and stores
  };
  Fit tryTile(const Shape &size, BuildTile build);
  bool makeTiles(const Shape &whole, const Shape &step, bool two, BuildTile build, std::vector<Tile> &tiles);
  Shape inParts(const Shape &whole, Shape step, const Shape &granule, BuildTile build);
  std::vector<Tile> cut(const Shape &whole, const Shape &granule, bool two, llvm::ArrayRef<unsigned> dims,
                        BuildTile build);
  double cyclesOf(llvm::ArrayRef<Tile> tiles) const;
  bool appendCut(const Shape &whole, const Shape &granule, bool two, BuildTile build);
};

/// Rows of x that rows [begin, begin + size) of a result see through a window, and the padding before them.
struct Rows {
  uint32_t begin, size;
  int16_t padding;
};
Rows rowsOf(const bmodel::npu::Window &window, uint32_t rows, uint32_t begin, uint32_t size);

/// Returns the part of |place| that belongs to a tile.
TileView tileOf(TileView place, const Shape &begin, const Shape &size, const Chip &chip);

/// Returns the lane in which the first local one of |places| begins, or 0.
uint16_t laneOf(llvm::ArrayRef<TileView> places);

/// Returns |from| in local memory, beginning in the budget's lane: |from| itself, or a loaded or moved copy. Dims that
/// |from| repeats (stride 0) are stored once, except channels, of which each lane needs its own copy.
TileView load(const TileView &from, LocalBudget &localBudget, Tile &tile, bool keep = false);
/// Like load, but reads tensors in local memory where they lie, in any lane.
TileView loadAnyLane(const TileView &from, LocalBudget &localBudget, Tile &tile);
/// Like load, for data that all tiles of the same channels share. |liveAcross| holds it from tile to tile.
TileView loadOnce(const TileView &from, const Shape &begin, LocalBudget &localBudget, Tile &tile,
                  std::optional<TileView> &liveAcross);
/// Loads data that is the same for all channels once per lane.
TileView loadPerLane(const TileView &from, const Shape &begin, uint32_t channels, const Chip &chip,
                     LocalBudget &localBudget, Tile &tile, std::optional<TileView> &liveAcross);
/// Returns the buffer in which a result is computed: |to| itself if it is local, else a new buffer to be stored there.
TileView resultOf(const TileView &to, LocalBudget &localBudget);
/// Stores a result, which was computed in |local|, at |to|.
void store(TileView local, const TileView &to, Tile &tile);
/// Like store, for a result that was not computed at |to| even if that is local: the DMA moves it there.
void storeToo(TileView local, const TileView &to, Tile &tile);

/// Returns |place| with one element broadcast along w.
TileView repeated(TileView place);
/// Appends a reduce command to the tile: reduction |kind| of each row of |of|.
enum class Reduction : uint8_t { sum, largest, smallest, product, squares };
void reduce(const TileView &y, const TileView &of, Reduction kind, Tile &tile);
/// Appends a map command to the tile.
void compute(CommandStream &stream, const Instructions &program, const TileView &y, llvm::ArrayRef<TileView> operands,
             Step &step);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_CONTRACTION_TILER_H
