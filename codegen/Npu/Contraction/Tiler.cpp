//===- Tiler.cpp - Cuts ops into tiles that fit local memory --------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Contraction/Tiler.h"

#include "bmodel/npu/latency.h"
#include "codegen/Npu/Decisions/DirectStore.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace bmodel::npu;
using llvm::ArrayRef;

namespace tessera::npu {
namespace {

/// Number of tiles per op that lets the queues overlap well; least duration of a tile's moves, in DMA latencies; and
/// most additional data that all tiles together may move compared to fewer tiles, as a factor.
constexpr double kGoodTiles = 8, kLeastMove = 8, kMostRepeated = 1.2;
/// Dims along which overlapping tiles may be cut.
constexpr unsigned kNotChannels[] = {0, 2, 3}, kRowsOnly[] = {1};

/// Halves the first of the dims that can still be cut. Returns false if none can.
bool shrink(Shape &size, const Shape &granule, ArrayRef<unsigned> dims) {
  for (unsigned dim : dims) {
    uint32_t unit = granule.dims[dim];
    if (unit && size.dims[dim] > unit) {
      uint32_t units = uint32_t(llvm::divideCeil(size.dims[dim], unit));
      size.dims[dim] = (units + 1) / 2 * unit;
      return true;
    }
  }
  return false;
}

/// Calls visit(begin, size) for every tile.
template <typename Visit>
void eachTile(const Shape &whole, const Shape &step, Visit visit) {
  Shape begin{{0, 0, 0, 0}};
  for (begin.dims[1] = 0; begin.dims[1] < whole.dims[1]; begin.dims[1] += step.dims[1]) {
    for (begin.dims[0] = 0; begin.dims[0] < whole.dims[0]; begin.dims[0] += step.dims[0]) {
      for (begin.dims[2] = 0; begin.dims[2] < whole.dims[2]; begin.dims[2] += step.dims[2]) {
        for (begin.dims[3] = 0; begin.dims[3] < whole.dims[3]; begin.dims[3] += step.dims[3]) {
          Shape size;
          for (int i = 0; i < 4; ++i) {
            size.dims[i] = std::min(step.dims[i], whole.dims[i] - begin.dims[i]);
          }
          visit(begin, size);
        }
      }
    }
  }
}

double countTiles(const Shape &whole, const Shape &step) {
  double count = 1;
  for (int i = 0; i < 4; ++i) {
    count *= double(llvm::divideCeil(whole.dims[i], step.dims[i]));
  }
  return count;
}

bool isWhole(const Shape &whole, const Shape &step) {
  return std::equal(std::begin(whole.dims), std::end(whole.dims), std::begin(step.dims));
}

} // namespace

Tiler::Fit Tiler::tryTile(const Shape &size, BuildTile build) {
  size_t buffers = stream.buffers.size();
  LocalBudget localBudget(stream);
  Tile tile;
  build(Shape{{0, 0, 0, 0}}, size, localBudget, tile);
  stream.buffers.resize(buffers);
  double moves = 0;
  for (const auto *part : {&tile.first.loads, &tile.loads, &tile.stores}) {
    for (const Descriptor &command : *part) {
      moves += localBudget.used ? costOf(command, stream.chip).cycles : 0;
    }
  }
  return {localBudget.used, localBudget.liveAcross, localBudget.fixed, moves};
}

/// Builds all tiles of one size. Returns false if one does not fit.
bool Tiler::makeTiles(const Shape &whole, const Shape &step, bool two, BuildTile build, std::vector<Tile> &tiles) {
  size_t buffers = stream.buffers.size();
  uint64_t used = 0, liveAcross = 0, fixed = 0;
  eachTile(whole, step, [&](const Shape &begin, const Shape &size) {
    LocalBudget localBudget(stream);
    build(begin, size, localBudget, tiles.emplace_back());
    used = std::max(used, localBudget.used), liveAcross = std::max(liveAcross, localBudget.liveAcross),
    fixed = std::max(fixed, localBudget.fixed);
  });
  bool fits = fixed + liveAcross + (two && tiles.size() > 1 ? 2 : 1) * used <= budget;
  if (!fits) {
    tiles.clear(), stream.buffers.resize(buffers);
  }
  return fits;
}

/// Returns a smaller tile size as long as there are few tiles and each moves data for a long time, so that loads,
/// computation and stores of different tiles overlap. Stops if rows that several tiles load make the moves too
/// expensive.
Shape Tiler::inParts(const Shape &whole, Shape step, const Shape &granule, BuildTile build) {
  double tiles = countTiles(whole, step), moves = tryTile(step, build).moves, least = tiles * moves;
  // Each range of channels needs its own weights, so channels are not cut, unless they are rows of a tensor that cannot
  // be cut otherwise.
  bool hasRows = !granule.dims[0] && !granule.dims[2] && !granule.dims[3];
  const ArrayRef<unsigned> dims = hasRows ? ArrayRef<unsigned>(kRowsOnly) : ArrayRef<unsigned>(kNotChannels);
  while (tiles < kGoodTiles && moves > kLeastMove * stream.chip.dmaLatency) {
    Shape part = step;
    if (!shrink(part, granule, dims)) {
      break;
    }
    tiles = countTiles(whole, part), moves = tryTile(part, build).moves;
    if (tiles * moves > kMostRepeated * least) {
      break;
    }
    step = part;
  }
  return step;
}

/// Builds tiles of the largest size that fits. All tiles must be built to find this size, because a tile at a border,
/// such as the first one, reads less of the input than an inner tile. Returns no tiles if no size fits.
std::vector<Tile> Tiler::cut(const Shape &whole, const Shape &granule, bool two, ArrayRef<unsigned> dims,
                             BuildTile build) {
  Shape step = whole;
  std::vector<Tile> tiles;
  while (true) {
    Fit fit = tryTile(step, build);
    bool halves = two && (!isWhole(whole, step) || fit.moves > kLeastMove * stream.chip.dmaLatency);
    // If weights leave room for the next ones, these can be loaded while the current ones are in use.
    Shape fewer = step;
    uint64_t room = budget > fit.fixed ? budget - fit.fixed : budget;
    bool keepsLess = two && fit.liveAcross > room / (fit.used ? 2 : 4) && shrink(fewer, granule, {1});
    bool cutsMore = two && fit.fixed == 0; // otherwise all tiles see the same rows
    if (fit.fixed + fit.liveAcross + (halves ? 2 : 1) * fit.used <= budget && !keepsLess &&
        makeTiles(whole, cutsMore ? inParts(whole, step, granule, build) : step, two, build, tiles)) {
      return tiles;
    }
    if (keepsLess) {
      step = fewer;
    } else if (!shrink(step, granule, dims)) {
      return {};
    }
  }
}

/// Estimates the cycles of overlapping tiles.
double Tiler::cyclesOf(ArrayRef<Tile> tiles) const {
  double moves = 0, computes = 0;
  auto sum = [&](ArrayRef<Descriptor> commands) {
    double cycles = 0;
    for (const Descriptor &command : commands) {
      cycles += costOf(command, stream.chip).cycles;
    }
    return cycles;
  };
  for (const Tile &tile : tiles) {
    moves += sum(tile.first.loads) + sum(tile.loads) + sum(tile.stores);
    computes += sum(tile.first.computes) + sum(tile.computes);
  }
  double ends = sum(tiles.front().first.loads) + sum(tiles.front().loads) + sum(tiles.back().stores);
  return std::max(moves, computes) + std::min(ends, computes);
}

/// Appends the faster of two ways of cutting: rows first or channels first. Rows of the input that several tiles load,
/// and planes that leave memory in short runs, can cost more than loading weights again.
bool Tiler::appendCut(const Shape &whole, const Shape &granule, bool two, BuildTile build) {
  std::vector<Tile> tiles = cut(whole, granule, two, {0, 2, 1, 3}, build);
  if (tiles.size() > 1 && granule.dims[1] && whole.dims[1] > granule.dims[1]) {
    std::vector<Tile> others = cut(whole, granule, two, {0, 1, 2, 3}, build);
    if (!others.empty() && cyclesOf(others) < cyclesOf(tiles)) {
      tiles = std::move(others);
    }
  }
  if (tiles.empty()) {
    return false;
  }
  stream.append(std::move(tiles), two);
  return true;
}

/// Appends the tile of one slice, with all channels. Its loads may come before the computation of the previous step if
/// they read off-chip memory only.
void Tiler::appendSliceIteration(const Shape &whole, BuildTile build) {
  Shape begin{{0, 0, sliceIteration->begin, 0}}, size = whole;
  size.dims[2] = sliceIteration->end - sliceIteration->begin;
  LocalBudget localBudget(stream);
  localBudget.shared = &sliceIteration->shared, localBudget.fillsShared = sliceIteration->isFirst;
  Tile tile;
  build(begin, size, localBudget, tile);
  const bool isFirst = !tile.first.isEmpty(); // its loads are all from off-chip memory, except fills
  bool hoisted = !sliceIteration->isAlone && (isFirst || llvm::all_of(tile.loads, [](const Descriptor &load) {
                                                return load.header.opcode == Opcode::copy &&
                                                       load.as<copy_command>().x.region != Region::local;
                                              }));
  tile.loads.insert(tile.loads.begin(), sliceIteration->before.begin(), sliceIteration->before.end());
  const size_t at = stream.stages.size();
  stream.append({tile}, false);
  stream.stages[at].hoisted = hoisted;
}

llvm::Error Tiler::append(const Shape &whole, const Shape &granule, BuildTile build) {
  if (surveys) {
    Shape smallest;
    for (int i = 0; i < 4; ++i) {
      smallest.dims[i] = granule.dims[i] ? std::min(granule.dims[i], whole.dims[i]) : whole.dims[i];
    }
    Fit fit = tryTile(smallest, build);
    Fit all = tryTile(whole, build);
    minimum = std::max(minimum, fit.used + fit.liveAcross + fit.fixed), used += all.used, liveAcross += all.liveAcross;
    this->whole = whole, ++appends;
    return llvm::Error::success();
  }
  if (sliceIteration) {
    appendSliceIteration(whole, build);
    return llvm::Error::success();
  }
  if ((overlaps && appendCut(whole, granule, true, build)) || appendCut(whole, granule, false, build)) {
    return llvm::Error::success();
  }
  return llvm::createStringError(
      llvm::formatv("needs more than the {0} bytes of a lane for its smallest tile", stream.chip.laneBytes));
}

void Tiler::appendTiles(std::vector<Tile> tiles, uint64_t atLeast, uint64_t bytes) {
  if (surveys) {
    // Ops that cut themselves cannot run in groups: counting them as cut twice excludes them.
    minimum = std::max(minimum, atLeast), used += bytes, appends += 2;
    return;
  }
  stream.append(std::move(tiles), overlaps);
}

Rows rowsOf(const Window &window, uint32_t rows, uint32_t begin, uint32_t size) {
  int64_t first = int64_t(begin) * window.step[0] - window.padding[0];
  int64_t last = first + int64_t(size - 1) * window.step[0] + int64_t(window.kernel[0] - 1) * window.dilation[0];
  int64_t from = std::clamp<int64_t>(first, 0, rows - 1), to = std::clamp<int64_t>(last, from, rows - 1);
  return {uint32_t(from), uint32_t(to - from + 1), int16_t(from - first)};
}

TileView tileOf(TileView place, const Shape &begin, const Shape &size, const Chip &chip) {
  for (unsigned dim = 0; dim < 4; ++dim) {
    place = slice(place, dim, begin.dims[dim], size.dims[dim], chip);
  }
  return place;
}

uint16_t laneOf(ArrayRef<TileView> places) {
  for (const TileView &place : places) {
    if (place.isLocal()) {
      return place.tensor.lane;
    }
  }
  return 0;
}

TileView load(const TileView &from, LocalBudget &localBudget, Tile &tile, bool keep) {
  if (from.isLocal() && from.tensor.lane == localBudget.lane) {
    return from;
  }
  Shape shape = from.shape;
  for (int i : {0, 2, 3}) {
    shape.dims[i] = from.tensor.strides[i] ? shape.dims[i] : 1;
  }
  TileView to = keep ? localBudget.keep(shape, from.tensor.type) : localBudget.allocate(shape, from.tensor.type);
  copy_command copy;
  copy.y = to.tensor, copy.x = from.tensor, copy.shape = shape;
  tile.loads.push_back(encode(copy));
  for (int i : {0, 2, 3}) {
    to.tensor.strides[i] = from.tensor.strides[i] || from.shape.dims[i] == 1 ? to.tensor.strides[i] : 0;
  }
  to.shape = from.shape;
  return to;
}

TileView loadAnyLane(const TileView &from, LocalBudget &localBudget, Tile &tile) {
  return from.isLocal() ? from : load(from, localBudget, tile);
}

TileView loadOnce(const TileView &from, const Shape &begin, LocalBudget &localBudget, Tile &tile,
                  std::optional<TileView> &liveAcross) {
  if (localBudget.shared) {
    if (localBudget.fillsShared) {
      localBudget.shared->push_back(load(from, localBudget, tile, true));
      return localBudget.shared->back();
    }
    return (*localBudget.shared)[localBudget.nextShared++];
  }
  if (begin.dims[0] == 0 && begin.dims[2] == 0 && begin.dims[3] == 0) {
    liveAcross = load(from, localBudget, tile, true);
  }
  return *liveAcross;
}

TileView loadPerLane(const TileView &from, const Shape &begin, uint32_t channels, const Chip &chip,
                     LocalBudget &localBudget, Tile &tile, std::optional<TileView> &liveAcross) {
  TileView each = from;
  uint16_t lane = std::exchange(localBudget.lane, 0); // the channels from this lane on would not lie in one plane
  each.shape.dims[1] = lane ? chip.lanes : std::min(channels, chip.lanes);
  TileView result = loadOnce(each, begin, localBudget, tile, liveAcross);
  localBudget.lane = result.tensor.lane = lane;
  result.tensor.strides[1] = 0, result.shape.dims[1] = channels;
  return result;
}

TileView resultOf(const TileView &to, LocalBudget &localBudget) {
  return to.isLocal() ? to : localBudget.allocate(to.shape, to.tensor.type);
}

void store(TileView local, const TileView &to, Tile &tile) {
  local.shape = to.shape;
  for (const DirectStore &directStore : to.directStores) {
    llvm::append_range(tile.stores, directStore.commands(local, to.at));
  }
  const Tensor &target = to.isLocal() ? to.copy : to.tensor;
  if (target.region == Region::none) {
    return;
  }
  copy_command copy;
  copy.y = target, copy.x = local.tensor, copy.shape = to.shape;
  tile.stores.push_back(encode(copy));
}

void storeToo(TileView local, const TileView &to, Tile &tile) {
  if (to.isLocal()) {
    copy_command copy;
    copy.y = to.tensor, copy.x = local.tensor, copy.shape = to.shape;
    tile.stores.push_back(encode(copy));
    local = to;
  }
  store(local, to, tile);
}

TileView repeated(TileView place) {
  place.tensor.strides[3] = 0;
  return place;
}

void reduce(const TileView &y, const TileView &of, Reduction kind, Tile &tile) {
  reduce_command command;
  command.y = y.tensor, command.x = of.tensor, command.shape = of.shape, command.kind = uint8_t(kind);
  tile.computes.push_back(encode(command));
}

void compute(CommandStream &stream, const Instructions &program, const TileView &y, ArrayRef<TileView> operands,
             Step &step) {
  map_command map;
  Tensor *fields[] = {&map.a, &map.b, &map.c, &map.d};
  for (auto [field, operand] : llvm::zip(fields, operands)) {
    *field = operand.tensor;
  }
  map.y = y.tensor, map.shape = y.shape;
  stream.setProgram(map, program);
  step.computes.push_back(encode(map));
}

} // namespace tessera::npu
