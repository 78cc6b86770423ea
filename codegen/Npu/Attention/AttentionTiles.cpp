//===- AttentionTiles.cpp - Tiles of attention ----------------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// The scores of all keys are in local memory at once. Keys, then values, are loaded in blocks, or whole for the matrix
// unit.
//===----------------------------------------------------------------------===//
#include "codegen/Npu/Attention/Attention.h"

#include "llvm/Support/MathExtras.h"
#include <map>

using llvm::ArrayRef;
using llvm::SmallVector;
namespace hw = bmodel::npu;

namespace tessera::npu {
using bmodel::npu::Op;
using bmodel::npu::Type;
namespace {

constexpr uint64_t kFloat = sizeof(float);
/// Number of keys that are worth a block. Smaller blocks are used only if there is no room for this many.
constexpr uint32_t kGoodKeyBlock = 64;
/// Number of tiles that lets loads and stores overlap computation, and bytes of keys and values that are worth a tile.
constexpr uint32_t kGoodTiles = 4, kGoodBytes = 16384;

/// Appends y[n,c,h,w] (+)= sum over k of a[n,c,h,k] * b[n,c,k,w]. |goesOn|: add to y.
void dot(const TileView &y, const TileView &a, const TileView &b, bool goesOn, Tile &tile) {
  hw::dot_command command;
  command.y = y.tensor, command.a = a.tensor, command.b = b.tensor, command.shape = y.shape;
  command.s = goesOn ? y.tensor : Tensor(), command.steps = b.dim(2);
  tile.computes.push_back(hw::encode(command));
}

/// Consecutive rows whose views are evenly spaced.
struct Run {
  uint32_t row, count;
  int64_t distance; ///< in bytes
};

/// Cuts |rows| rows into runs of evenly spaced views.
SmallVector<Run> runsOf(uint32_t rows, llvm::function_ref<TileView(uint32_t)> placeOf) {
  SmallVector<Run> runs;
  auto distance = [&](uint32_t row) {
    return int64_t(placeOf(row).tensor.offset) - int64_t(placeOf(row - 1).tensor.offset);
  };
  for (uint32_t row = 0; row < rows; row += runs.back().count) {
    runs.push_back({row, 1, row + 1 < rows ? distance(row + 1) : 0});
    bool isFar = std::abs(runs.back().distance) > INT32_MAX;
    for (uint32_t end = row + 1; !isFar && end < rows && distance(end) == runs.back().distance; ++end) {
      ++runs.back().count;
    }
    runs.back().distance = isFar ? 0 : runs.back().distance;
  }
  return runs;
}

} // namespace

uint64_t AttentionTiles::requirementOf(const Shape &tile, uint32_t keyBlock) const {
  uint64_t groups = llvm::divideCeil(tile.dims[1], chip.lanes), rows = tile.dims[0] * groups * tile.dims[2];
  uint64_t buffers = overlaps ? 2 : 1; // buffers per loaded operand: the next one beside the current one
  uint64_t held = rows * uint64_t(buffers * sizes.depth + (sumsAreApart() ? 2 : 1) * sizes.features + sizes.keys + 2);
  uint64_t lanes = chip.lanes, spread = llvm::divideCeil(uint64_t(sizes.depth), lanes) * uint64_t(sizes.keys) +
                                        llvm::divideCeil(uint64_t(sizes.keys), lanes) * uint64_t(sizes.features);
  uint64_t moved = byMatrix ? buffers * tile.dims[0] * spread
                            : buffers * (byBatch || blocks ? groups : tile.dims[0]) * keyBlock *
                                  uint64_t(std::max(sizes.depth, sizes.features));
  uint64_t added = 0;
  if (!masks.empty()) {
    const int32_t *strides = masks[0].tensor.strides;
    added = groups * (strides[0] ? tile.dims[0] : 1) * (strides[2] || blocks ? tile.dims[2] : 1) * uint64_t(sizes.keys);
  }
  if (sizes.ofIntegers) { // the u8 powers are a separate copy of the scores
    held = rows * uint64_t(buffers * sizes.depth + kFloat * ((sumsAreApart() ? 2 : 1) * sizes.features + 2) +
                           (kFloat + 1) * sizes.keys);
    return held + moved + kFloat * buffers * added;
  }
  return kFloat * (held + moved + buffers * added);
}

/// Halves one dim of the tile or the block of keys, cheapest first: tiles of fewer batches cost nothing, smaller blocks
/// cost some commands, and other smaller tiles load the keys again. Returns false if nothing can be halved.
bool AttentionTiles::shrink() {
  auto halve = [](uint32_t &value, uint32_t least, uint32_t unit) {
    if (value <= least) {
      return false;
    }
    value = uint32_t(llvm::alignTo(llvm::divideCeil(value, 2), unit));
    return true;
  };
  uint32_t all = byMatrix ? keyBlock : 0; // the matrix unit does not add up blocks
  return halve(size.dims[0], 1, 1) || halve(keyBlock, std::max(kGoodKeyBlock, all), 1) ||
         halve(size.dims[1], chip.lanes, chip.lanes) || halve(keyBlock, std::max(1u, all), 1) ||
         halve(size.dims[2], 1, 1);
}

uint64_t AttentionTiles::minimum() const {
  Shape small{{1, std::min(whole.dims[1], chip.lanes), whole.dims[2], 0}};
  return requirementOf(small, byMatrix ? uint32_t(sizes.keys) : std::min(uint32_t(sizes.keys), kGoodKeyBlock));
}

bool AttentionTiles::choose() {
  size = whole, keyBlock = uint32_t(sizes.keys);
  bool isOne = !sideBySide && llvm::any_of(ArrayRef({&q, &y, &keys, &values, &masks}), // each n has its own view
                                           [](const auto *each) { return each->size() > 1; });
  size.dims[0] = isOne ? 1 : size.dims[0];
  while (requirementOf(size, keyBlock) > budget) {
    if (!shrink()) {
      return false;
    }
  }
  uint64_t each = (sizes.ofIntegers ? 1 : kFloat) * uint64_t(sizes.keys) * uint64_t(sizes.depth + sizes.features);
  // If the keys are already in local memory, there is no load to overlap with computation.
  while (!blocks && !keys[0].isLocal() && size.dims[0] > 1 && size.dims[0] * each > kGoodBytes &&
         whole.dims[0] < kGoodTiles * size.dims[0]) {
    size.dims[0] = (size.dims[0] + 1) / 2;
  }
  return true;
}

/// Returns the view that a tile has of an operand. |hasRows|: only the tile's rows; otherwise data that all rows share.
TileView AttentionTiles::partOf(ArrayRef<TileView> of, const Shape &begin, const Shape &part, bool hasRows) const {
  bool isOne = of.size() > 1;
  TileView result = slice(of[isOne ? begin.dims[0] : 0], 0, isOne ? 0 : begin.dims[0], part.dims[0], chip);
  if (hasRows || byBatch) {
    result = slice(result, 1, begin.dims[1], part.dims[1], chip);
  }
  return hasRows ? slice(result, 2, begin.dims[2], part.dims[2], chip) : result;
}

/// Loads keys [key, key + count) along |dim|. All lanes get the same, or each lane the keys of its batches.
TileView AttentionTiles::loadKeyBlock(ArrayRef<TileView> of, const Shape &begin, const Shape &part, unsigned dim,
                                      uint32_t key, uint32_t count, Tile &tile) {
  if (blocks) {
    return loadKeyBlockOfBlocks(of, begin, part, dim, key, count, tile);
  }
  TileView from = slice(partOf(of, begin, part, false), dim, key, count, chip);
  Shape shape = from.shape;
  shape.dims[1] = byBatch ? part.dims[1] : chip.lanes;
  TileView result = stream.addLocal(shape, Type::f32, byBatch ? lane : uint16_t(0));
  hw::copy_command copy;
  copy.y = result.tensor, copy.x = from.tensor, copy.shape = shape;
  tile.loads.push_back(hw::encode(copy));
  if (!byBatch) {
    result.tensor.strides[1] = 0, result.tensor.lane = lane, result.shape.dims[1] = part.dims[1];
  }
  return result;
}

/// Loads a block of keys for blocks of queries. Consecutive blocks whose keys are the same or evenly spaced are loaded
/// by one command.
TileView AttentionTiles::loadKeyBlockOfBlocks(ArrayRef<TileView> of, const Shape &begin, const Shape &part,
                                              unsigned dim, uint32_t key, uint32_t count, Tile &tile) {
  Shape shape = of[0].shape;
  shape.dims[1] = part.dims[1], shape.dims[dim] = count;
  TileView result = stream.addLocal(shape, Type::f32, lane);
  auto placeOf = [&](uint32_t row) { return slice(of[(begin.dims[1] + row) / blocks], dim, key, count, chip); };
  for (const Run &run : runsOf(part.dims[1], placeOf)) {
    hw::copy_command copy;
    copy.x = placeOf(run.row).tensor, copy.y = slice(result, 1, run.row, run.count, chip).tensor;
    copy.x.strides[1] = int32_t(run.distance), copy.shape = shape, copy.shape.dims[1] = run.count;
    tile.loads.push_back(hw::encode(copy));
  }
  return result;
}

/// Returns the rows of one block, for an operand with one view per batch.
TileView AttentionTiles::blockOf(ArrayRef<TileView> of, const Shape &begin, const Shape &part, uint32_t row) const {
  uint32_t at = begin.dims[1] + row;
  return slice(slice(of[at / blocks], 1, at % blocks, 1, chip), 2, begin.dims[2], part.dims[2], chip);
}

/// Loads the mask for blocks. Masks that several runs of blocks share are copied from the lanes of the first run.
TileView AttentionTiles::loadMaskOfBlocks(const Shape &begin, const Shape &part, LocalBudget &localBudget, Tile &tile) {
  Shape shape = part;
  shape.dims[3] = uint32_t(sizes.keys);
  TileView result = localBudget.allocate(shape, Type::f32);
  auto placeOf = [&](uint32_t row) { return blockOf(masks, begin, part, row); };
  std::map<std::tuple<uint64_t, uint32_t, int64_t>, uint32_t> known; // run -> its first row
  for (const Run &run : runsOf(part.dims[1], placeOf)) {
    TileView to = slice(result, 1, run.row, run.count, chip), from = placeOf(run.row);
    auto [same, isNew] = known.try_emplace({from.tensor.offset, run.count, run.distance}, run.row);
    from.tensor.strides[1] = int32_t(run.distance);
    hw::copy_command copy;
    copy.y = to.tensor, copy.x = isNew ? from.tensor : slice(result, 1, same->second, run.count, chip).tensor;
    copy.shape = to.shape;
    tile.loads.push_back(hw::encode(copy));
  }
  return result;
}

/// Moves rows of blocks between |local| and an operand with one view per batch. Evenly spaced rows are one command.
void AttentionTiles::moveBlocks(ArrayRef<TileView> of, const Shape &begin, const Shape &part, const TileView &local,
                                bool stores, Tile &tile) const {
  auto placeOf = [&](uint32_t row) { return blockOf(of, begin, part, row); };
  for (const Run &run : runsOf(part.dims[1], placeOf)) {
    TileView outside = placeOf(run.row), inside = slice(local, 1, run.row, run.count, chip);
    outside.tensor.strides[1] = int32_t(run.distance);
    hw::copy_command copy;
    copy.x = stores ? inside.tensor : outside.tensor, copy.y = stores ? outside.tensor : inside.tensor;
    copy.shape = inside.shape;
    (stores ? tile.stores : tile.loads).push_back(hw::encode(copy));
  }
}

TileView AttentionTiles::loadQueries(const Shape &begin, const Shape &part, LocalBudget &localBudget, Tile &tile) {
  if (!blocks || q.size() == 1) {
    return load(partOf(q, begin, part, true), localBudget, tile);
  }
  Shape shape = part;
  shape.dims[3] = uint32_t(sizes.depth);
  TileView result = localBudget.allocate(shape, Type::f32);
  moveBlocks(q, begin, part, result, false, tile);
  return result;
}

/// Divides the sums by the sum of powers, computes the fused map, and stores the result.
void AttentionTiles::finish(const TileView &sums, const TileView &total, const Shape &begin, const Shape &part,
                            LocalBudget &localBudget, Tile &tile) {
  const Instructions times = {{Op::mul, 4, 0, 1, 0}};
  bool areApart = blocks && y.size() > 1;
  TileView to = areApart ? y[0] : partOf(y, begin, part, true), result = sums;
  to.shape = sums.shape;
  if (sumsAreApart()) {
    result = areApart ? localBudget.allocate(to.shape, to.tensor.type) : resultOf(to, localBudget);
  }
  if (mappedOperands == 1 && mapped.size() < hw::kMostInstructions) { // in one program: the map only reads register 0
    Instructions all = {{Op::mul, uint8_t(mapped.empty() ? 4 : 0), 0, 1, 0}};
    llvm::append_range(all, mapped);
    compute(stream, all, result, {sums, repeated(total)}, tile);
  } else {
    compute(stream, times, sums, {sums, repeated(total)}, tile);
    compute(stream, mapped, result, SmallVector<TileView>(mappedOperands, sums), tile);
  }
  if (areApart) {
    moveBlocks(y, begin, part, result, true, tile);
  } else {
    store(result, to, tile);
  }
}

/// Loads the mask of a tile, unless the previous tile has the same one.
void AttentionTiles::loadMask(const TileView &scores, const Shape &begin, const Shape &part, LocalBudget &localBudget,
                              Tile &tile) {
  auto isAsBefore = [&](int dim) {
    return begin.dims[dim] == maskBegin.dims[dim] && part.dims[dim] == maskPart.dims[dim];
  };
  bool isSame = mask && masks.size() == 1 && masks[0].tensor.strides[0] == 0 && isAsBefore(1) && isAsBefore(2);
  maskBegin = begin, maskPart = part;
  if (blocks) {
    mask = loadMaskOfBlocks(begin, part, localBudget, tile);
  } else if (!isSame) {
    mask = load(partOf(masks, begin, part, true), localBudget, tile);
  }
  mask->shape = scores.shape;
}

void AttentionTiles::makeTile(const Shape &begin, const Shape &part) {
  TileView to = blocks && y.size() > 1 ? y[0] : partOf(y, begin, part, true);
  lane = laneOf({to, blocks && q.size() > 1 ? q[0] : partOf(q, begin, part, true)});
  LocalBudget localBudget(stream);
  localBudget.lane = lane;
  Tile first;
  TileView from = loadQueries(begin, part, localBudget, first);
  Shape all = part, row = part, of = part;
  all.dims[3] = uint32_t(sizes.keys), row.dims[3] = 1, of.dims[3] = uint32_t(sizes.features);
  TileView scores = localBudget.allocate(all, Type::f32);
  TileView best = localBudget.allocate(row, Type::f32), total = localBudget.allocate(row, Type::f32);
  TileView result = !sumsAreApart() && to.isLocal() ? to : localBudget.allocate(of, Type::f32);
  SmallVector<TileView> operands = {scores};
  if (!masks.empty()) {
    loadMask(scores, begin, part, localBudget, first);
    operands.push_back(*mask);
  }
  tiles.push_back(std::move(first));
  if (byMatrix) {
    SmallVector<TileView> rows = loadRows(keys, begin, part, localBudget, tiles.back());
    multiplyAll(scores, from, rows, masks.empty() ? scales.scores : 1, tiles.back());
  }
  for (uint32_t key = 0; key < sizes.keys && !byMatrix; key += keyBlock) {
    uint32_t count = std::min(keyBlock, uint32_t(sizes.keys) - key);
    Tile &tile = key ? tiles.emplace_back() : tiles.back();
    TileView some = loadKeyBlock(keys, begin, part, 3, key, count, tile);
    dot(slice(scores, 3, key, count, chip), from, some, false, tile);
  }
  if (!byMatrix || !masks.empty()) {
    compute(stream, scaled, scores, operands, tiles.back());
  }
  addPowers(scores, best, total, tiles.back());
  if (byMatrix) {
    Tile &tile = tiles.emplace_back();
    multiplyAll(result, scores, loadRows(values, begin, part, localBudget, tile), 1, tile);
  }
  for (uint32_t key = 0; key < sizes.keys && !byMatrix; key += keyBlock) {
    uint32_t count = std::min(keyBlock, uint32_t(sizes.keys) - key);
    Tile &tile = tiles.emplace_back();
    TileView some = loadKeyBlock(values, begin, part, 2, key, count, tile);
    dot(result, slice(scores, 3, key, count, chip), some, key > 0, tile);
  }
  finish(result, total, begin, part, localBudget, tiles.back());
}

static hw::Instruction constantOf(uint8_t to, float value) {
  return {Op::constant, to, 0, 0, llvm::bit_cast<uint32_t>(value)};
}

/// Writes the number to subtract from each row of scores: the largest score, or at least the lowest finite number if
/// masked rows give 0. In the latter case all powers of a row of -inf are 0.
void AttentionTiles::reduceScores(const TileView &best, const TileView &scores, Tile &tile) {
  reduce(best, scores, Reduction::largest, tile);
  if (sizes.zeroesMaskedRows) {
    compute(stream, {constantOf(4, std::numeric_limits<float>::lowest()), {Op::maximum, 4, 0, 4, 0}}, best, {best},
            tile);
  }
}

/// Computes |total| = |dividend| / |total|. The sum of a row's powers is 0 for a masked row, otherwise at least 1, the
/// power of the largest score.
void AttentionTiles::divide(const TileView &total, float dividend, Tile &tile) {
  Instructions program;
  uint8_t divisor = 0;
  if (sizes.zeroesMaskedRows) {
    program = {constantOf(5, 1), {Op::maximum, 5, 0, 5, 0}}, divisor = 5;
  }
  llvm::append_range(program, Instructions{constantOf(4, dividend), {Op::div, 4, 4, divisor, 0}});
  compute(stream, program, total, {total}, tile);
}

/// Computes the exponentials of scores, and the reciprocals of their sums.
void AttentionTiles::addPowers(const TileView &scores, const TileView &best, const TileView &total, Tile &tile) {
  const Instructions powers = {{Op::sub, 4, 0, 1, 0}, {Op::expNegative, 4, 4, 0, 0}};
  reduceScores(best, scores, tile);
  compute(stream, powers, scores, {scores, repeated(best)}, tile);
  reduce(total, scores, Reduction::sum, tile);
  divide(total, 1, tile);
}

/// Builds the tiles with batches in the innermost loop, so that a mask shared by batches is loaded once.
std::vector<Tile> AttentionTiles::make() {
  const uint32_t *all = whole.dims;
  Shape begin{{0, 0, 0, 0}};
  for (begin.dims[1] = 0; begin.dims[1] < all[1]; begin.dims[1] += size.dims[1]) {
    for (begin.dims[2] = 0; begin.dims[2] < all[2]; begin.dims[2] += size.dims[2]) {
      for (begin.dims[0] = 0; begin.dims[0] < all[0]; begin.dims[0] += size.dims[0]) {
        Shape part = size;
        for (int i = 0; i < 3; ++i) {
          part.dims[i] = std::min(size.dims[i], all[i] - begin.dims[i]);
        }
        sizes.ofIntegers ? makeIntegerTile(begin, part) : makeTile(begin, part);
      }
    }
  }
  return std::exchange(tiles, {});
}

} // namespace tessera::npu
