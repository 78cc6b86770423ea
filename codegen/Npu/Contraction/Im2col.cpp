//===- Im2col.cpp - Kernel taps as input channels -------------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// The matrix unit sums as many input channels at once as its reduction tree is wide, but a picture has three. Therefore
// kernel rows become channels (im2col): channel k * C + c holds, in row i, the row of x's channel c that kernel row k
// sees from row i of the result. Each row remains one run of bytes, which off-chip memory moves efficiently.
//
// Once kernel rows are channels, kernel columns can follow: the channels from f * K * C on hold copies of the first K *
// C channels, shifted by f columns, made in local memory. The window steps over them as over the input, so rows remain
// runs of bytes.
//===----------------------------------------------------------------------===//
#include "codegen/Npu/Contraction/Contraction.h"
#include "codegen/Npu/ElementTypes.h"

#include "bmodel/npu/latency.h"

#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace bmodel::npu;

namespace tessera::npu {
namespace {

/// Returns the cycles of the matrix unit for |channels| input channels and |taps| taps.
double multiplyCycles(const Contraction &contraction, uint64_t channels, uint64_t taps, const Chip &chip) {
  uint64_t positions = uint64_t(contraction.y.dim(0)) * contraction.y.dim(2) * contraction.y.dim(3);
  uint64_t groups = llvm::divideCeil(contraction.y.dim(1), chip.lanes);
  double sums =
      double(positions * taps * llvm::divideCeil(channels, std::min(chip.reduction, chip.lanes))) / chip.pixels;
  double divisor =
      divisorOf(contraction.x.tensor.type, chip) * passesOf(contraction.x.tensor.type, contraction.weights.type);
  return double(groups) * std::max(sums * divisor, double(positions) / chip.outputs);
}

/// Returns the view as a dense tensor in local memory; only its costs matter.
TileView denseOf(TileView place) {
  uint64_t size = sizeOf(place.tensor.type);
  place.tensor.region = Region::local, place.tensor.offset = 0, place.tensor.lane = 0;
  place.tensor.strides[3] = int32_t(size), place.tensor.strides[2] = int32_t(size * place.dim(3));
  place.tensor.strides[1] = place.tensor.strides[0] = int32_t(size * place.dim(3) * place.dim(2));
  return place;
}

/// Returns the cycles of moving a view to dense local memory.
double copyCycles(const TileView &from, const Chip &chip) {
  copy_command copy;
  copy.x = from.tensor, copy.y = denseOf(from).tensor, copy.shape = from.shape;
  return costOf(encode(copy), chip).cycles;
}

} // namespace

TileView everyRow(TileView x, uint32_t begin, uint32_t step, uint32_t rows, const Chip &chip) {
  TileView result = slice(x, 2, begin, rows, chip);
  result.tensor.strides[2] *= int32_t(step);
  return result;
}

double multiplyCycles(const Contraction &contraction, Im2col im2col, const Chip &chip) {
  uint32_t kernel = contraction.window.kernel[0], columns = contraction.window.kernel[1];
  return multiplyCycles(contraction, uint64_t(contraction.x.dim(1)) * kernel * im2col.columns, columns / im2col.columns,
                        chip);
}

/// Returns the number of columns that the windows of one row of the result cover.
static uint32_t reachOf(const Contraction &contraction, uint32_t taps) {
  const Window &window = contraction.window;
  return (contraction.y.dim(3) - 1) * window.step[1] + (taps - 1) * window.dilation[1] + 1;
}

/// Returns true if kernel columns can become channels. Only integer sums may be re-associated like this.
static bool canFoldColumns(const Contraction &contraction) {
  const Window &window = contraction.window;
  return window.kernel[1] > 1 && window.padding[1] >= 0 && window.spread[1] == 1 && !contraction.sumsFloats() &&
         reachOf(contraction, window.kernel[1]) > uint32_t(window.padding[1]);
}

Window windowOfIm2col(Window window, Im2col im2col) {
  window.kernel[1] = uint8_t(window.kernel[1] / im2col.columns), window.padding[1] = 0;
  window.dilation[1] = window.kernel[1] == 1 ? uint8_t(1) : uint8_t(window.dilation[1] * im2col.columns);
  return window;
}

/// Returns the number of columns that the windows cover after |folded| kernel columns became channels.
static uint32_t reachOfIm2col(const Contraction &contraction, uint32_t folded) {
  Window window = windowOfIm2col(contraction.window, {Im2colRows::inside, folded});
  return (contraction.y.dim(3) - 1) * window.step[1] + (window.kernel[1] - 1) * window.dilation[1] + 1;
}

/// Returns true if groups of |columns| kernel columns can become channels: all columns, or a divisor of their number.
static bool canFold(const Contraction &contraction, uint32_t columns) {
  uint32_t all = contraction.window.kernel[1];
  return columns == 1 || (canFoldColumns(contraction) && columns <= all && all % columns == 0 &&
                          (columns == all || contraction.window.dilation[1] * columns <= UINT8_MAX));
}

/// Returns the cycles of copying the folded rows once for each further column of a group.
static double columnCycles(const Contraction &contraction, uint32_t rows, uint32_t folded, const Chip &chip) {
  TileView block = contraction.x;
  block.shape.dims[1] *= contraction.window.kernel[0];
  block.shape.dims[2] = rows, block.shape.dims[3] = reachOfIm2col(contraction, folded);
  return (folded - 1) * copyCycles(denseOf(block), chip);
}

/// Returns the number of tiles through which the folded input passes. Each tile has its own moves.
static double tilesOf(const Contraction &contraction, uint64_t channels, uint32_t rows, double moves,
                      const Chip &chip) {
  constexpr double kGoodTiles = 8, kLeastMove = 8; // same values as in Tiler.cpp
  uint64_t bytes =
      llvm::divideCeil(channels, chip.lanes) * rows * contraction.x.dim(3) * sizeOf(contraction.x.tensor.type);
  double fitting = 2 * double(bytes) / double(chip.laneBytes);
  return std::max({1.0, fitting, std::min(kGoodTiles, moves / (kLeastMove * chip.dmaLatency))});
}

/// Returns true if kernel rows can become channels.
static bool canFoldRows(const Contraction &contraction) {
  return contraction.depth.isPlain() && contraction.groups == 1 && contraction.window.kernel[0] > 1;
}

static TapsAs tapsOf(Im2col im2col) {
  bool hasColumns = im2col.columns > 1;
  return im2col.rows == Im2colRows::none      ? TapsAs::window
         : im2col.rows == Im2colRows::outside ? (hasColumns ? TapsAs::all_loaded : TapsAs::rows_loaded)
                                              : (hasColumns ? TapsAs::all_moved : TapsAs::rows_moved);
}

llvm::Expected<Im2col> im2colOf(TapsAttr taps, const Contraction &contraction) {
  TapsAs as = contraction.x.isLocal() ? taps.getResident() : taps.getFetched();
  if (contraction.mapped && (as == TapsAs::rows_loaded || as == TapsAs::all_loaded || as == TapsAs::window)) {
    return reject("has a fused input map, which requires npu.taps that are moved in local memory");
  }
  if (as == TapsAs::window) {
    return Im2col();
  }
  bool isLoaded = as == TapsAs::rows_loaded || as == TapsAs::all_loaded;
  bool hasColumns = as == TapsAs::all_loaded || as == TapsAs::all_moved;
  uint32_t part = contraction.x.isLocal() ? taps.getResidentColumns() : taps.getFetchedColumns();
  uint32_t columns = !hasColumns ? 1 : part ? part : contraction.window.kernel[1];
  if (!canFoldRows(contraction) || !canFold(contraction, columns) || (hasColumns && columns == 1)) {
    return reject("has npu.taps with kernel taps that cannot become channels");
  }
  return Im2col{isLoaded ? Im2colRows::outside : Im2colRows::inside, columns};
}

Im2colPlan planIm2col(const Contraction &contraction, const Chip &chip) {
  uint32_t kernel = contraction.window.kernel[0], columns = contraction.window.kernel[1];
  uint64_t channels = contraction.x.dim(1) / contraction.groups;
  std::pair<double, double> least = {multiplyCycles(contraction, channels, uint64_t(kernel) * columns, chip), 0};
  if (!canFoldRows(contraction)) {
    return {Im2col(), least.first};
  }
  // Most rows of x contribute to as many rows of the result as the kernel has rows. The estimate assumes this for all
  // rows.
  uint32_t rows =
      std::min(contraction.y.dim(2), llvm::divideCeil(contraction.x.dim(2), uint32_t(contraction.window.step[0])));
  auto rowCycles = [&](const TileView &x) {
    return kernel * copyCycles(everyRow(x, 0, contraction.window.step[0], rows, chip), chip);
  };
  constexpr double kLeastGain = 1.15; // for folding columns: the DMA has other work, too
  Im2col best;
  for (Im2colRows where : {Im2colRows::outside, Im2colRows::inside}) {
    bool isInside = where == Im2colRows::inside;
    if (!isInside && contraction.x.isLocal()) {
      continue;
    }
    double moves = rowCycles(isInside ? denseOf(contraction.x) : contraction.x);
    moves += isInside && !contraction.x.isLocal() ? copyCycles(contraction.x, chip) : 0;
    for (uint32_t folded = 1; folded <= columns; ++folded) {
      if (!canFold(contraction, folded)) {
        continue;
      }
      bool foldsColumns = folded > 1;
      double multiply = multiplyCycles(contraction, channels * kernel * folded, columns / folded, chip);
      double all = moves + (foldsColumns ? columnCycles(contraction, rows, folded, chip) : 0);
      uint64_t folds = channels * kernel * folded;
      all += (tilesOf(contraction, folds, rows, all, chip) - 1) * (kernel + folded) * chip.dmaLatency;
      // Taps of x in local memory are laid out before the contraction runs, not at the same time.
      std::pair<double, double> cycles = {contraction.x.isLocal() ? multiply + all : std::max(multiply, all), all};
      if (foldsColumns && cycles.first * kLeastGain > least.first) {
        continue;
      }
      if (cycles.first < least.first || (best.rows != Im2colRows::none && cycles < least)) {
        best = {where, folded}, least = cycles;
      }
    }
  }
  return {best, least.first};
}

/// Like planIm2col, if x is mapped while it is loaded: the time of the two queues running in parallel, plus the parts
/// at both ends during which only one runs.
static Im2colPlan planMapped(const Contraction &contraction, const Chip &chip) {
  uint32_t kernel = contraction.window.kernel[0], columns = contraction.window.kernel[1], rows = contraction.y.dim(2);
  Im2colPlan best{Im2col(), INFINITY};
  for (uint32_t folded = 1; folded <= columns; ++folded) {
    if (!canFold(contraction, folded)) {
      continue;
    }
    uint64_t folds = uint64_t(contraction.x.dim(1)) * kernel * folded;
    double multiply = multiplyCycles(contraction, Im2col{Im2colRows::inside, folded}, chip);
    MappedCycles whole = planBands(contraction, rows, multiply, chip);
    double tiles = tilesOf(contraction, folds, rows, whole.moves, chip);
    MappedCycles part =
        planBands(contraction, uint32_t(llvm::divideCeil(rows, uint64_t(tiles))), multiply / tiles, chip);
    double moves = part.moves * tiles + (folded > 1 ? columnCycles(contraction, rows, folded, chip) : 0);
    double computes = part.computes * tiles;
    double cycles = std::max(moves, computes) + std::min(moves, computes) / tiles;
    if (cycles < best.cycles) {
      best = {{Im2colRows::inside, folded}, cycles};
    }
  }
  return best;
}

/// Returns a contraction that reads |x| directly, with the properties of |contraction| that plans depend on.
static Contraction readerOf(const TileView &x, const Contraction &contraction) {
  Contraction reader;
  reader.x = x, reader.y = contraction.y, reader.weights.type = contraction.weights.type;
  reader.window = contraction.window, reader.depth = contraction.depth, reader.groups = contraction.groups;
  return reader;
}

bool usesIm2colUnmapped(const Contraction &contraction, const Chip &chip) {
  return bool(planIm2col(readerOf(contraction.x, contraction), chip).im2col);
}

bool paysToMap(const Contraction &contraction, const Chip &chip) {
  Im2colPlan before = planIm2col(readerOf(contraction.x, contraction), chip);
  double map =
      copyCycles(contraction.mapped->from, chip) + copyCycles(contraction.x, chip); // storing takes as long as loading
  return planMapped(contraction, chip).cycles < map + before.cycles;
}

TapsAttr chooseTaps(const Contraction &contraction, mlir::MLIRContext *context, const Chip &chip) {
  Im2col folds[] = {contraction.mapped ? planMapped(contraction, chip).im2col : planIm2col(contraction, chip).im2col,
                    planIm2col(readerOf(denseOf(contraction.x), contraction), chip).im2col};
  auto columns = [&](Im2col im2col) {
    return im2col.columns > 1 && im2col.columns < contraction.window.kernel[1] ? im2col.columns : 0;
  };
  return TapsAttr::get(context, tapsOf(folds[0]), tapsOf(folds[1]), columns(folds[0]), columns(folds[1]));
}

static Descriptor fillOf(const TileView &place, int16_t value) {
  fill_command fill;
  fill.y = place.tensor, fill.shape = place.shape;
  fill.value = uint32_t(int32_t(value)) & (sizeOf(place.tensor.type) == 1 ? 0xff : 0xffff);
  return encode(fill);
}

std::vector<Descriptor> fillEdges(const TileView &place, const Edges &edges, int16_t value, const Chip &chip) {
  std::vector<Descriptor> fills;
  double cycles = 0;
  for (auto [dim, before, behind] :
       {std::tuple(2u, edges.top, edges.bottom), std::tuple(3u, edges.left, edges.right)}) {
    uint32_t size = place.dim(dim);
    for (auto [begin, count] :
         {std::pair(0u, std::min(before, size)), std::pair(size - std::min(behind, size), behind)}) {
      if (count) {
        fills.push_back(fillOf(slice(place, dim, begin, std::min(count, size), chip), value));
        cycles += costOf(fills.back(), chip).cycles;
      }
    }
  }
  Descriptor all = fillOf(place, value);
  return cycles > costOf(all, chip).cycles ? std::vector<Descriptor>{all} : fills;
}

SeenRows rowsSeen(const Contraction &contraction, uint32_t begin, uint32_t rows, uint32_t k) {
  const Window &window = contraction.window;
  int64_t first = int64_t(begin) * window.step[0] + int64_t(k) * window.dilation[0] - window.padding[0];
  int64_t low = first >= 0 ? 0 : int64_t(llvm::divideCeil(uint64_t(-first), uint64_t(window.step[0])));
  int64_t end = first >= contraction.x.dim(2) ? 0 : (int64_t(contraction.x.dim(2)) - 1 - first) / window.step[0] + 1;
  return {uint32_t(std::min<int64_t>(low, rows)), uint32_t(std::clamp<int64_t>(end, 0, rows))};
}

/// Lays out the kernel rows from x as it is.
static void loadRows(const Contraction &contraction, const Im2colBuffer &place, const Shape &begin, const Shape &size,
                     const Chip &chip, LocalBudget &localBudget, Tile &tile) {
  const Window &window = contraction.window;
  uint32_t channels = contraction.x.dim(1), rows = size.dims[2];
  TileView x = slice(contraction.x, 0, begin.dims[0], size.dims[0], chip);
  uint32_t dropped = 0; // rows of product.x in front of the first row of |x|
  if (contraction.im2col.rows == Im2colRows::inside && !x.isLocal()) {
    Rows seen = rowsOf(window, contraction.x.dim(2), begin.dims[2], rows);
    x = load(slice(x, 2, seen.begin, seen.size, chip), localBudget, tile);
    dropped = seen.begin;
  }
  size_t at = tile.loads.size();
  Edges edges{0, 0, place.left, place.buffer.dim(3) - place.left - place.seenColumns};
  for (uint32_t k = 0; k < window.kernel[0]; ++k) {
    SeenRows seen = rowsSeen(contraction, begin.dims[2], rows, k);
    edges.top = std::max(edges.top, seen.low), edges.bottom = std::max(edges.bottom, rows - seen.end);
    if (seen.low >= seen.end) {
      continue;
    }
    uint32_t count = seen.end - seen.low;
    uint32_t row = (begin.dims[2] + seen.low) * window.step[0] + k * window.dilation[0] - window.padding[0] - dropped;
    TileView from = slice(everyRow(x, row, window.step[0], count, chip), 3, 0, place.seenColumns, chip);
    TileView to = slice(slice(place.buffer, 1, k * channels, channels, chip), 2, seen.low, count, chip);
    to = slice(to, 3, place.left, place.seenColumns, chip);
    copy_command copy;
    copy.x = from.tensor, copy.y = to.tensor, copy.shape = to.shape;
    tile.loads.push_back(encode(copy));
  }
  std::vector<Descriptor> fills = fillEdges(slice(place.buffer, 1, 0, place.block, chip), edges, window.padValue, chip);
  tile.loads.insert(tile.loads.begin() + int64_t(at), fills.begin(), fills.end());
}

TileView loadIm2col(const Contraction &contraction, const Shape &begin, const Shape &size, CommandStream &stream,
                    LocalBudget &localBudget, Tile &tile) {
  const Chip &chip = stream.chip;
  const Window &window = contraction.window;
  uint32_t block = contraction.x.dim(1) * window.kernel[0], columns = contraction.im2col.columns;
  bool folds = columns > 1;
  uint32_t width = folds ? reachOf(contraction, window.kernel[1]) : contraction.x.dim(3),
           left = folds ? window.padding[1] : 0;
  uint32_t rows = size.dims[2] + (contraction.mapped ? mappedShifts(contraction) : 0);
  Shape shape{{size.dims[0], block * columns, rows, width}};
  uint16_t lane = std::exchange(localBudget.lane, 0); // the matrix unit reads x from any lane
  Im2colBuffer place{localBudget.allocate(shape, contraction.x.tensor.type), block, left,
                     std::min(contraction.x.dim(3), width - left)};
  contraction.mapped ? loadMapped(contraction, place, begin, size, stream, localBudget, tile)
                     : loadRows(contraction, place, begin, size, chip, localBudget, tile);
  localBudget.lane = lane;
  TileView result = slice(place.buffer, 2, 0, size.dims[2], chip);
  if (!folds) {
    return result;
  }
  result.shape.dims[3] = reachOfIm2col(contraction, columns);
  for (uint32_t f = 1; f < columns; ++f) {
    TileView from = slice(result, 1, 0, block, chip), to = slice(result, 1, f * block, block, chip);
    copy_command copy;
    copy.x = slice(from, 3, f * window.dilation[1], from.dim(3), chip).tensor, copy.y = to.tensor,
    copy.shape = to.shape;
    tile.loads.push_back(encode(copy));
  }
  return result;
}

} // namespace tessera::npu
