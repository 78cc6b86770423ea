//===- AttentionTiles.cpp - Tiles of attention ----------------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// Scores of all keys are in local memory at once; keys, then values, come to lanes in chunks, or, for the matrix unit,
// whole.
//===----------------------------------------------------------------------===//
#include "codegen/Npu/Attention.h"

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
/// Keys that are worth a chunk of their own: fewer only where there is no room for more.
constexpr uint32_t kGoodChunk = 64;
/// Tiles that let loads and stores go on beside computation, and bytes of a tile's keys that are worth one.
constexpr uint32_t kGoodTiles = 4, kGoodBytes = 16384;

/// y[n,c,h,w] (+)= sum over k of a[n,c,h,k] * b[n,c,k,w].
void dot(const TileView &y, const TileView &a, const TileView &b, bool goesOn, Tile &tile) {
  hw::dot_command command;
  command.y = y.tensor, command.a = a.tensor, command.b = b.tensor, command.shape = y.shape;
  command.s = goesOn ? y.tensor : Tensor(), command.steps = b.dim(2);
  tile.computes.push_back(hw::encode(command));
}

/// Rows one after another whose places are evenly apart.
struct Run {
  uint32_t row, count;
  int64_t distance; ///< in bytes
};

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

uint64_t AttentionTiles::requirementOf(const Shape &tile, uint32_t chunk) const {
  uint64_t groups = llvm::divideCeil(tile.dims[1], chip.lanes), rows = tile.dims[0] * groups * tile.dims[2];
  uint64_t chunks = overlaps ? 2 : 1; // of what is loaded, the next one beside the one in use
  uint64_t held = rows * uint64_t(chunks * sizes.depth + (sumsAreApart() ? 2 : 1) * sizes.features + sizes.keys + 2);
  uint64_t lanes = chip.lanes, spread = llvm::divideCeil(uint64_t(sizes.depth), lanes) * uint64_t(sizes.keys) +
                                        llvm::divideCeil(uint64_t(sizes.keys), lanes) * uint64_t(sizes.features);
  uint64_t moved = byMatrix ? chunks * tile.dims[0] * spread
                            : chunks * (byBatch || blocks ? groups : tile.dims[0]) * chunk *
                                  uint64_t(std::max(sizes.depth, sizes.features));
  uint64_t added = 0;
  if (!masks.empty()) {
    const int32_t *strides = masks[0].tensor.strides;
    added = groups * (strides[0] ? tile.dims[0] : 1) * (strides[2] || blocks ? tile.dims[2] : 1) * uint64_t(sizes.keys);
  }
  if (sizes.ofIntegers) { // the powers are a copy of the scores
    held = rows * uint64_t(chunks * sizes.depth + kFloat * ((sumsAreApart() ? 2 : 1) * sizes.features + 2) +
                           (kFloat + 1) * sizes.keys);
    return held + moved + kFloat * chunks * added;
  }
  return kFloat * (held + moved + chunks * added);
}

/// Tiles of fewer batches cost nothing, chunks some commands; other tiles of the same batches load their keys again.
bool AttentionTiles::shrink() {
  auto halve = [](uint32_t &value, uint32_t least, uint32_t unit) {
    if (value <= least) {
      return false;
    }
    value = uint32_t(llvm::alignTo(llvm::divideCeil(value, 2), unit));
    return true;
  };
  uint32_t all = byMatrix ? chunk : 0; // chunks would be sums of their own
  return halve(size.dims[0], 1, 1) || halve(chunk, std::max(kGoodChunk, all), 1) ||
         halve(size.dims[1], chip.lanes, chip.lanes) || halve(chunk, std::max(1u, all), 1) || halve(size.dims[2], 1, 1);
}

uint64_t AttentionTiles::minimum() const {
  Shape small{{1, std::min(whole.dims[1], chip.lanes), whole.dims[2], 0}};
  return requirementOf(small, byMatrix ? uint32_t(sizes.keys) : std::min(uint32_t(sizes.keys), kGoodChunk));
}

bool AttentionTiles::choose() {
  size = whole, chunk = uint32_t(sizes.keys);
  bool isOne = !sideBySide && llvm::any_of(ArrayRef({&q, &y, &keys, &values, &masks}), // each of n has its own
                                           [](const auto *each) { return each->size() > 1; });
  size.dims[0] = isOne ? 1 : size.dims[0];
  while (requirementOf(size, chunk) > budget) {
    if (!shrink()) {
      return false;
    }
  }
  uint64_t each = (sizes.ofIntegers ? 1 : kFloat) * uint64_t(sizes.keys) * uint64_t(sizes.depth + sizes.features);
  // What is there already needs no tiles beside which it could be loaded.
  while (!blocks && !keys[0].isLocal() && size.dims[0] > 1 && size.dims[0] * each > kGoodBytes &&
         whole.dims[0] < kGoodTiles * size.dims[0]) {
    size.dims[0] = (size.dims[0] + 1) / 2;
  }
  return true;
}

/// What a tile sees of an operand, with the rows of the tile or those that all of them see.
TileView AttentionTiles::partOf(ArrayRef<TileView> of, const Shape &begin, const Shape &part, bool hasRows) const {
  bool isOne = of.size() > 1;
  TileView made = slice(of[isOne ? begin.dims[0] : 0], 0, isOne ? 0 : begin.dims[0], part.dims[0], chip);
  if (hasRows || byBatch) {
    made = slice(made, 1, begin.dims[1], part.dims[1], chip);
  }
  return hasRows ? slice(made, 2, begin.dims[2], part.dims[2], chip) : made;
}

/// Keys [key, key + count) along |dim|: all lanes have the same, or each those of its batches.
TileView AttentionTiles::loadChunk(ArrayRef<TileView> of, const Shape &begin, const Shape &part, unsigned dim,
                                   uint32_t key, uint32_t count, Tile &tile) {
  if (blocks) {
    return loadChunkOfBlocks(of, begin, part, dim, key, count, tile);
  }
  TileView from = slice(partOf(of, begin, part, false), dim, key, count, chip);
  Shape shape = from.shape;
  shape.dims[1] = byBatch ? part.dims[1] : chip.lanes;
  TileView made = stream.addLocal(shape, Type::f32, byBatch ? lane : uint16_t(0));
  hw::copy_command copy;
  copy.y = made.tensor, copy.x = from.tensor, copy.shape = shape;
  tile.loads.push_back(hw::encode(copy));
  if (!byBatch) {
    made.tensor.strides[1] = 0, made.tensor.lane = lane, made.shape.dims[1] = part.dims[1];
  }
  return made;
}

/// Blocks one after another whose keys are evenly apart, or the same, get these by one command.
TileView AttentionTiles::loadChunkOfBlocks(ArrayRef<TileView> of, const Shape &begin, const Shape &part, unsigned dim,
                                           uint32_t key, uint32_t count, Tile &tile) {
  Shape shape = of[0].shape;
  shape.dims[1] = part.dims[1], shape.dims[dim] = count;
  TileView made = stream.addLocal(shape, Type::f32, lane);
  auto placeOf = [&](uint32_t row) { return slice(of[(begin.dims[1] + row) / blocks], dim, key, count, chip); };
  for (const Run &run : runsOf(part.dims[1], placeOf)) {
    hw::copy_command copy;
    copy.x = placeOf(run.row).tensor, copy.y = slice(made, 1, run.row, run.count, chip).tensor;
    copy.x.strides[1] = int32_t(run.distance), copy.shape = shape, copy.shape.dims[1] = run.count;
    tile.loads.push_back(hw::encode(copy));
  }
  return made;
}

/// Rows of a block of a batch that has a place of its own.
TileView AttentionTiles::blockOf(ArrayRef<TileView> of, const Shape &begin, const Shape &part, uint32_t row) const {
  uint32_t at = begin.dims[1] + row;
  return slice(slice(of[at / blocks], 1, at % blocks, 1, chip), 2, begin.dims[2], part.dims[2], chip);
}

/// What batches have in common comes from the lanes of the first of them.
TileView AttentionTiles::loadMaskOfBlocks(const Shape &begin, const Shape &part, LocalBudget &localBudget, Tile &tile) {
  Shape shape = part;
  shape.dims[3] = uint32_t(sizes.keys);
  TileView made = localBudget.allocate(shape, Type::f32);
  auto placeOf = [&](uint32_t row) { return blockOf(masks, begin, part, row); };
  std::map<std::tuple<uint64_t, uint32_t, int64_t>, uint32_t> known; // of runs -> row
  for (const Run &run : runsOf(part.dims[1], placeOf)) {
    TileView to = slice(made, 1, run.row, run.count, chip), from = placeOf(run.row);
    auto [same, isNew] = known.try_emplace({from.tensor.offset, run.count, run.distance}, run.row);
    from.tensor.strides[1] = int32_t(run.distance);
    hw::copy_command copy;
    copy.y = to.tensor, copy.x = isNew ? from.tensor : slice(made, 1, same->second, run.count, chip).tensor;
    copy.shape = to.shape;
    tile.loads.push_back(hw::encode(copy));
  }
  return made;
}

/// Rows of blocks between |local| and where each batch has its own: those that lie evenly by one command.
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
  TileView made = localBudget.allocate(shape, Type::f32);
  moveBlocks(q, begin, part, made, false, tile);
  return made;
}

/// Divides the sums of values, computes the map behind them, and stores that.
void AttentionTiles::finish(const TileView &sums, const TileView &total, const Shape &begin, const Shape &part,
                            LocalBudget &localBudget, Tile &tile) {
  const Instructions times = {{Op::mul, 4, 0, 1, 0}};
  bool areApart = blocks && y.size() > 1;
  TileView to = areApart ? y[0] : partOf(y, begin, part, true), result = sums;
  to.shape = sums.shape;
  if (sumsAreApart()) {
    result = areApart ? localBudget.allocate(to.shape, to.tensor.type) : resultOf(to, localBudget);
  }
  if (mappedOperands == 1 && mapped.size() < hw::kMostInstructions) { // at once: the map reads register 0 alone
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

/// What is added to |scores|, loaded unless the tile before has the same.
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
  for (uint32_t key = 0; key < sizes.keys && !byMatrix; key += chunk) {
    uint32_t count = std::min(chunk, uint32_t(sizes.keys) - key);
    Tile &tile = key ? tiles.emplace_back() : tiles.back();
    TileView some = loadChunk(keys, begin, part, 3, key, count, tile);
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
  for (uint32_t key = 0; key < sizes.keys && !byMatrix; key += chunk) {
    uint32_t count = std::min(chunk, uint32_t(sizes.keys) - key);
    Tile &tile = tiles.emplace_back();
    TileView some = loadChunk(values, begin, part, 2, key, count, tile);
    dot(result, slice(scores, 3, key, count, chip), some, key > 0, tile);
  }
  finish(result, total, begin, part, localBudget, tiles.back());
}

static hw::Instruction constantOf(uint8_t to, float value) {
  return {Op::constant, to, 0, 0, llvm::bit_cast<uint32_t>(value)};
}

/// Writes the number that each row of scores is reduced by: the largest, or the lowest finite number of a row that is
/// to be 0, whose powers are 0 then.
void AttentionTiles::reduceScores(const TileView &best, const TileView &scores, Tile &tile) {
  reduce(best, scores, Reduction::largest, tile);
  if (sizes.zeroesMaskedRows) {
    compute(stream, {constantOf(4, std::numeric_limits<float>::lowest()), {Op::maximum, 4, 0, 4, 0}}, best, {best},
            tile);
  }
}

/// |total| = |dividend| / |total|. The sum of a row's powers is 0, or at least that of the largest score, which is 1
/// or more.
void AttentionTiles::divide(const TileView &total, float dividend, Tile &tile) {
  Instructions program;
  uint8_t divisor = 0;
  if (sizes.zeroesMaskedRows) {
    program = {constantOf(5, 1), {Op::maximum, 5, 0, 5, 0}}, divisor = 5;
  }
  llvm::append_range(program, Instructions{constantOf(4, dividend), {Op::div, 4, 4, divisor, 0}});
  compute(stream, program, total, {total}, tile);
}

/// The exponentials of scores, and the reciprocals of their sums.
void AttentionTiles::addPowers(const TileView &scores, const TileView &best, const TileView &total, Tile &tile) {
  const Instructions powers = {{Op::sub, 4, 0, 1, 0}, {Op::expNegative, 4, 4, 0, 0}};
  reduceScores(best, scores, tile);
  compute(stream, powers, scores, {scores, repeated(best)}, tile);
  reduce(total, scores, Reduction::sum, tile);
  divide(total, 1, tile);
}

/// Batches innermost: a mask that they have in common is loaded once.
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
