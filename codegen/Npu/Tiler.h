//===- Tiler.h - Cutting an op into what fits local memory ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_TILER_H
#define TESSERA_CODEGEN_NPU_TILER_H

#include "codegen/Npu/Stream.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"

namespace tessera::npu {

/// Makes one tile of an op. Of the same channels, the one that begins at 0 in all other dims comes first.
using BuildTile = llvm::function_ref<void(const Shape &begin, const Shape &size, LocalBudget &localBudget, Tile &tile)>;

/// Cuts ops into tiles, as few as fit, two in local memory at once if possible, and appends them to a stream.
class Tiler {
public:
  explicit Tiler(Stream &stream) : stream(stream), budget(stream.chip.laneBytes) {}

  /// |granule|: what each dim may be cut into multiples of; 0: not at all. Error if not even the smallest tile fits.
  llvm::Error append(const Shape &whole, const Shape &granule, BuildTile build);

  /// Appends tiles that the op cut itself: they use |bytes| of a lane at once, and would do with |atLeast|.
  void appendTiles(std::vector<Tile> tiles, uint64_t atLeast, uint64_t bytes);

  /// What the DMA would do for a tile of that size.
  double cyclesToMove(const Shape &size, BuildTile build) { return tryTile(size, build).moves; }

  Stream &stream;
  uint64_t budget;         ///< bytes of a lane that the tiles of the op may use
  bool overlaps = true;    ///< two tiles at once
  bool surveys = false;    ///< nothing is appended; |least| is told instead
  Shape whole;             ///< what the last op was cut from
  uint32_t appends = 0;    ///< how often it was cut
  uint64_t minimum = 0;    ///< bytes of the smallest tile
  uint64_t used = 0;       ///< bytes of one tile of all
  uint64_t liveAcross = 0; ///< bytes that tiles share, all channels

  /// Of an op that runs slice by slice: the rows of its turn, what is loaded before, and what its turns share.
  struct Turn {
    uint32_t begin, end;
    std::vector<Descriptor> before;
    std::vector<TileView> &shared;
    bool isFirst; ///< of the op
    bool isAlone; ///< the step before may have made what it reads: it is of the same op, or of none in the group
  };
  std::optional<Turn> turn;

private:
  void appendTurn(const Shape &whole, BuildTile build);
  struct Fit {
    uint64_t used = 0, liveAcross = 0, fixed = 0;
    double moves = 0; ///< cycles of what it loads and stores
  };
  Fit tryTile(const Shape &size, BuildTile build);
  bool makeTiles(const Shape &whole, const Shape &step, bool two, BuildTile build, std::vector<Tile> &tiles);
  Shape inParts(const Shape &whole, Shape step, const Shape &granule, BuildTile build);
  std::vector<Tile> cut(const Shape &whole, const Shape &granule, bool two, llvm::ArrayRef<unsigned> dims,
                        BuildTile build);
  double cyclesOf(llvm::ArrayRef<Tile> tiles) const;
  bool appendCut(const Shape &whole, const Shape &granule, bool two, BuildTile build);
};

/// The rows of x that rows [begin, begin + size) of a result see through a window, and the padding before them.
struct Rows {
  uint32_t begin, size;
  int16_t padding;
};
Rows rowsOf(const bmodel::npu::Window &window, uint32_t rows, uint32_t begin, uint32_t size);

/// The part of a place that belongs to a tile.
TileView tileOf(TileView place, const Shape &begin, const Shape &size, const Chip &chip);

/// The lane in which what lies in local memory begins.
uint16_t laneOf(llvm::ArrayRef<TileView> places);

/// |from| in local memory, from the area's lane on: it itself, loaded, or moved there from another lane. Dims that it
/// repeats (stride 0) are not repeated there, but for channels: each lane has its own.
TileView load(const TileView &from, LocalBudget &localBudget, Tile &tile, bool keep = false);
/// The same of what may begin in any lane: what is in local memory is read where it lies.
TileView loadAnyLane(const TileView &from, LocalBudget &localBudget, Tile &tile);
/// The same of what the tiles of the same channels share; |liveAcross| holds it from one to the next.
TileView loadOnce(const TileView &from, const Shape &begin, LocalBudget &localBudget, Tile &tile,
                  std::optional<TileView> &liveAcross);
/// What is the same for all channels of a lane, once a lane.
TileView loadPerLane(const TileView &from, const Shape &begin, uint32_t channels, const Chip &chip,
                     LocalBudget &localBudget, Tile &tile, std::optional<TileView> &liveAcross);
/// Where a result is computed: at |to| itself, or at a place that is stored there.
TileView resultOf(const TileView &to, LocalBudget &localBudget);
void store(TileView local, const TileView &to, Tile &tile);
/// The same of a place that the result was not computed at: another one in local memory gets it from the DMA.
void storeToo(TileView local, const TileView &to, Tile &tile);

/// |place| with one element along w for all of them.
TileView repeated(TileView place);
/// Appends a reduce command to the tile: |kind| of each row of |of|.
enum class Reduction : uint8_t { sum, largest, smallest, product, squares };
void reduce(const TileView &y, const TileView &of, Reduction kind, Tile &tile);
/// Appends a map command to the tile.
void compute(Stream &stream, const Instructions &program, const TileView &y, llvm::ArrayRef<TileView> operands,
             Step &step);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_TILER_H
