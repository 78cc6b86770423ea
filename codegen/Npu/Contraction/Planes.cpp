//===- Planes.cpp - Volumes as images on the NPU --------------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// The planes of a volume are processed as images. The planes that a kernel sees are laid out next to each other in
// local memory, so that one command sums all of them, in the same way as for a two-dimensional kernel: as channels,
// ordered by kernel planes; or, in depthwise convolutions, as rows, ordered by kernel planes and kernel rows for each
// row of the result.
//===----------------------------------------------------------------------===//
#include "codegen/Npu/Contraction/Contraction.h"

#include "llvm/Support/MathExtras.h"

using namespace bmodel::npu;

namespace tessera::npu {
namespace {

/// The results [low, end), out of a range, for which a tap lies inside x, and the position in x that the first of them
/// sees.
struct StridedView {
  uint32_t low = 0, end = 0, position = 0;

  uint32_t count() const { return end - low; }
};

/// |size|: number of positions of x. |tap|: offset of the tap from the first tap of a window, minus the padding.
StridedView seenWith(int64_t tap, uint32_t begin, uint32_t count, uint32_t step, uint32_t size) {
  int64_t first = int64_t(begin) * step + tap;
  int64_t low = first >= 0 ? 0 : int64_t(llvm::divideCeil(uint64_t(-first), uint64_t(step)));
  int64_t end = first >= size ? 0 : std::min<int64_t>(count, (int64_t(size) - 1 - first) / step + 1);
  return low < end ? StridedView{uint32_t(low), uint32_t(end), uint32_t(first + low * step)} : StridedView();
}

/// Returns |count| positions of a dim: every |step|-th one from |begin| on.
TileView every(TileView place, unsigned dim, uint32_t begin, uint32_t step, uint32_t count, const Chip &chip) {
  TileView result = slice(place, dim, begin, count, chip);
  result.tensor.strides[dim] *= int32_t(step);
  return result;
}

/// Lays out the part of x that a tile's windows see.
class PlaneLoader {
public:
  PlaneLoader(const Contraction &contraction, TileView x, const Shape &begin, const Shape &size, const Chip &chip,
              LocalBudget &localBudget, Tile &tile)
      : contraction(contraction), x(x), begin(begin), size(size), chip(chip), localBudget(localBudget), tile(tile) {}

  TileView run() {
    const Depth &depth = contraction.depth;
    uint32_t planes = depth.kernel, channels = x.dim(1);
    rows = rowsOf(contraction.window, x.dim(2), begin.dims[2], size.dims[2]);
    bool byRows = contraction.isDepthwise();
    uint32_t taps = planes * contraction.window.kernel[0];
    Shape shape{
        {size.dims[0], byRows ? channels : channels * planes, byRows ? size.dims[2] * taps : rows.size, x.dim(3)}};
    uint16_t lane = localBudget.lane;
    localBudget.lane = byRows ? lane : 0; // the matrix unit reads x from any lane
    if (!x.isLocal() && (planes > depth.step || byRows)) {
      loadOncePerTile();
    }
    result = localBudget.allocate(shape, x.tensor.type);
    localBudget.lane = lane;
    at = tile.loads.size();
    for (uint32_t k = 0; k < planes; ++k) {
      StridedView seen = seenWith(int64_t(k) * depth.dilation - depth.padding, begin.dims[0], size.dims[0], depth.step,
                                  contraction.x.dim(0));
      isPadded = isPadded || seen.count() < size.dims[0];
      if (seen.count()) {
        byRows ? addRows(k, seen) : addChannels(k, seen);
      }
    }
    addPadding();
    return result;
  }

private:
  /// Loads the planes and rows that the tile sees. Positions then count from the first of them.
  void loadOncePerTile() {
    Window along;
    along.kernel[0] = uint8_t(contraction.depth.kernel), along.step[0] = uint8_t(contraction.depth.step);
    along.dilation[0] = uint8_t(contraction.depth.dilation), along.padding[0] = int16_t(contraction.depth.padding);
    Rows seen = rowsOf(along, x.dim(0), begin.dims[0], size.dims[0]);
    x = load(slice(slice(x, 0, seen.begin, seen.size, chip), 2, rows.begin, rows.size, chip), localBudget, tile);
    droppedPlanes = seen.begin, droppedRows = rows.begin;
  }

  void addChannels(uint32_t k, StridedView seen) {
    uint32_t planes = contraction.depth.kernel, channels = contraction.x.dim(1) / contraction.groups;
    TileView from = every(x, 0, seen.position - droppedPlanes, contraction.depth.step, seen.count(), chip);
    from = slice(from, 2, rows.begin - droppedRows, rows.size, chip);
    TileView to = slice(result, 0, seen.low, seen.count(), chip);
    for (uint32_t group = 0; group * channels < x.dim(1); ++group) {
      copy(slice(to, 1, (group * planes + k) * channels, channels, chip),
           slice(from, 1, group * channels, channels, chip));
    }
  }

  void addRows(uint32_t k, StridedView seen) {
    const Window &window = contraction.window;
    uint32_t kernel = window.kernel[0], taps = contraction.depth.kernel * kernel;
    TileView planes = every(x, 0, seen.position - droppedPlanes, contraction.depth.step, seen.count(), chip);
    TileView to = slice(result, 0, seen.low, seen.count(), chip);
    for (uint32_t i = 0; i < kernel; ++i) {
      StridedView row = seenWith(int64_t(i) * window.dilation[0] - window.padding[0], begin.dims[2], size.dims[2],
                                 window.step[0], contraction.x.dim(2));
      isPadded = isPadded || row.count() < size.dims[2];
      if (row.count()) {
        copy(every(to, 2, row.low * taps + k * kernel + i, taps, row.count(), chip),
             every(planes, 2, row.position - droppedRows, window.step[0], row.count(), chip));
      }
    }
  }

  void copy(const TileView &to, const TileView &from) {
    copy_command command;
    command.x = from.tensor, command.y = to.tensor, command.shape = to.shape;
    tile.loads.push_back(encode(command));
  }

  /// Fills the buffer before all copies.
  void addPadding() {
    if (isPadded) {
      fill_command fill;
      fill.y = result.tensor, fill.shape = result.shape;
      fill.value = uint32_t(int32_t(contraction.window.padValue)) & (sizeOf(result.tensor.type) == 1 ? 0xff : 0xffff);
      tile.loads.insert(tile.loads.begin() + int64_t(at), encode(fill));
    }
  }

  const Contraction &contraction;
  TileView x, result;
  const Shape &begin, &size;
  const Chip &chip;
  LocalBudget &localBudget;
  Tile &tile;
  Rows rows = {};
  uint32_t droppedPlanes = 0, droppedRows = 0; ///< numbers of planes and rows of x in front of the loaded ones
  size_t at = 0;
  bool isPadded = false;
};

} // namespace

TileView loadPlanes(const Contraction &contraction, const TileView &x, const Shape &begin, const Shape &size,
                    const Chip &chip, LocalBudget &localBudget, Tile &tile) {
  return PlaneLoader(contraction, x, begin, size, chip, localBudget, tile).run();
}

Window windowOfPlanes(const Contraction &contraction) {
  Window window = contraction.window;
  if (contraction.isDepthwise()) {
    window.kernel[0] = window.step[0] = uint8_t(contraction.depth.kernel * window.kernel[0]);
    window.dilation[0] = 1, window.padding[0] = 0;
  }
  return window;
}

} // namespace tessera::npu
