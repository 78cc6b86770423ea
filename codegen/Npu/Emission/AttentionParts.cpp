//===- AttentionParts.cpp - Attention of batches that lie unevenly --------===//
// SPDX-License-Identifier: Apache-2.0
//
// Heads of windows, say: each head by itself lies evenly. Where heads are side by side in rows, these come and go as a
// whole, for parts of them are short runs of bytes.
//===----------------------------------------------------------------------===//
#include "codegen/Npu/Emission/AttentionEmission.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
namespace hw = bmodel::npu;

namespace tessera::npu {

/// The least number of parts, each of them every so manyth batch, whose batches lie evenly: heads of windows, say. 1:
/// there is none.
int64_t AttentionEmission::findPeriod() const {
  auto areEven = [&](const Matrices &of, int64_t period) {
    return llvm::all_of(llvm::seq(int64_t(0), period),
                        [&](int64_t first) { return affineOf(everyOf(of.begins, first, period), 1).has_value(); });
  };
  for (int64_t period = 2; period <= sizes.batches / 2; ++period) {
    bool isEven = sizes.batches % period == 0 && areEven(q, period) && areEven(k, period) && areEven(v, period) &&
                  areEven(y, period) && (!sizes.hasMask || areEven(mask, period));
    if (isEven) {
      return period;
    }
  }
  return 1;
}

AttentionEmission AttentionEmission::partOf(int64_t first, int64_t period) const {
  AttentionEmission part = *this;
  for (Matrices *of : {&part.q, &part.k, &part.v, &part.y, &part.mask}) {
    of->begins = everyOf(of->begins, first, period);
  }
  part.sizes.batches /= period, part.sizes.group = 1, part.sizes.runs = 0;
  part.findCommon();
  return part;
}

/// Heads side by side in the same rows, whole: n is what a part has as batches.
struct AttentionEmission::Whole {
  TileView q, keys, values, y;
  SmallVector<SmallVector<TileView>> masks; ///< of each part
  int64_t batches = 0, period = 0;
};

/// Whether rows of all operands hold those of each part one after another.
bool AttentionEmission::isSideBySide(int64_t period) const {
  auto areBeside = [&](const Matrices &of, int64_t width) {
    return (width == 1 || of.byColumn == 1) && llvm::all_of(llvm::seq(int64_t(1), period), [&](int64_t part) {
             return of.begins[size_t(part)] == of.begins[0] + part * width;
           });
  };
  auto form = op->getAttrOfType<AttentionAttr>(NpuDialect::kAttentionAttr);
  return form && form.getWay() == AttentionWay::matrix && areBeside(q, sizes.depth) && areBeside(k, sizes.depth) &&
         areBeside(v, sizes.features) && areBeside(y, sizes.features) &&
         std::max(sizes.keys, sizes.features) <= UINT16_MAX;
}

llvm::Error AttentionEmission::placeWhole(Whole &whole, MutableArrayRef<AttentionEmission> parts) {
  auto period = int64_t(parts.size());
  whole.period = period, whole.batches = sizes.batches / period;
  auto affine = [&](const Matrices &of) { return *affineOf(everyOf(of.begins, 0, period), 1); };
  auto place = [&](TileView &to, const Matrices &of, int64_t count, int64_t width) {
    Affine at = affine(of);
    llvm::Expected<TileView> placed = context.operands.place(of.value, {whole.batches, count, 1, period * width},
                                                             {at.byOuter, of.byRow, 0, 1}, at.base);
    if (placed) {
      to = *placed;
    }
    return placed ? llvm::Error::success() : placed.takeError();
  };
  Affine at = affine(k);
  llvm::Expected<TileView> keys = context.operands.placeOutside(
      k.value, {whole.batches, period * sizes.depth, 1, sizes.keys}, {at.byOuter, 1, 0, k.byRow}, at.base);
  if (!keys) {
    return keys.takeError();
  }
  whole.keys = *keys;
  for (AttentionEmission &part : parts) {
    AttentionTiles tiles(part.sizes, AttentionWay::matrix, 1, context.tiler, scales());
    part.rows = sizes.queries, part.inner = 1;
    if (llvm::Error error = part.placeMasks(tiles)) {
      return error;
    }
    whole.masks.push_back(std::move(tiles.masks));
  }
  if (llvm::Error error = place(whole.q, q, sizes.queries, sizes.depth)) {
    return error;
  }
  if (llvm::Error error = place(whole.values, v, sizes.keys, sizes.features)) {
    return error;
  }
  return place(whole.y, y, sizes.queries, sizes.features);
}

/// Bytes of a lane for what a batch has of all parts, as far as it is not there.
uint64_t AttentionEmission::bytesOfBatch(const Whole &whole) const {
  uint64_t lanes = context.chip.lanes, depth = uint64_t(whole.period * sizes.depth);
  uint64_t features = uint64_t(whole.period * sizes.features), bytes = llvm::divideCeil(depth, lanes) * sizes.keys;
  bytes += whole.q.isLocal() ? 0 : llvm::divideCeil(uint64_t(sizes.queries), lanes) * depth;
  bytes += whole.values.isLocal() ? 0 : llvm::divideCeil(uint64_t(sizes.keys), lanes) * features;
  uint64_t size = hw::sizeOf(whole.y.tensor.type);
  return bytes + (whole.y.isLocal() ? 0 : llvm::divideCeil(uint64_t(sizes.queries), lanes) * features * size);
}

/// The work for batches [first, first + count) of all parts.
llvm::Expected<std::vector<Tile>> AttentionEmission::tilesOf(const Whole &whole, ArrayRef<AttentionEmission> parts,
                                                             uint32_t first, uint32_t count) {
  const Chip &chip = context.chip;
  Tile around;
  LocalBudget localBudget(context.stream);
  auto batches = [&](const TileView &of) { return slice(of, 0, first, count, chip); };
  TileView to = batches(whole.y);
  localBudget.lane = laneOf({to, whole.q});
  TileView queries = load(batches(whole.q), localBudget, around);
  TileView keys = load(batches(whole.keys), localBudget, around);
  TileView values = loadAnyLane(batches(whole.values), localBudget, around), result = resultOf(to, localBudget);
  TileView bare = result; // parts of rows are not stored
  bare.copy = Tensor(), bare.directStores = {};
  std::vector<Tile> made;
  for (auto [index, part] : llvm::enumerate(parts)) {
    AttentionTiles tiles(part.sizes, AttentionWay::matrix, 1, context.tiler, scales());
    setMapped(tiles);
    auto depth = uint32_t(sizes.depth), features = uint32_t(sizes.features), at = uint32_t(index);
    tiles.q = {slice(queries, 3, at * depth, depth, chip)}, tiles.keys = {slice(keys, 1, at * depth, depth, chip)};
    tiles.values = {slice(values, 3, at * features, features, chip)};
    tiles.y = {slice(bare, 3, at * features, features, chip)};
    ArrayRef<TileView> masks = whole.masks[index];
    if (masks.size() == 1) {
      tiles.masks = {batches(masks[0])};
    } else if (!masks.empty()) {
      tiles.masks.assign(masks.slice(first, count));
    }
    tiles.whole = Shape{{count, uint32_t(sizes.queries), 1, 1}};
    if (!tiles.choose()) {
      return refuse("needs more than the bytes of a lane for all scores of a query");
    }
    llvm::append_range(made, tiles.make());
  }
  made.front().loads.insert(made.front().loads.begin(), around.loads.begin(), around.loads.end());
  store(result, to, made.back());
  return made;
}

/// Tells whether there was room. So many batches at a time that loads and stores go on beside computation.
llvm::Expected<bool> AttentionEmission::runSideBySide(MutableArrayRef<AttentionEmission> parts) {
  constexpr uint32_t kGoodTurns = 4;
  Tiler &tiler = context.tiler;
  Whole whole;
  if (llvm::Error error = placeWhole(whole, parts)) {
    return error;
  }
  uint64_t each = bytesOfBatch(whole), room = tiler.budget / 2;
  auto turn = uint32_t(llvm::divideCeil(whole.batches, int64_t(kGoodTurns)));
  while (turn > 1 && 2 * turn * each > room) {
    turn = (turn + 1) / 2;
  }
  if (2 * turn * each > room) {
    return false;
  }
  uint64_t budget = std::exchange(tiler.budget, tiler.budget - 2 * turn * each);
  llvm::scope_exit restore([&] { tiler.budget = budget; });
  AttentionTiles first(parts[0].sizes, AttentionWay::matrix, 1, tiler, scales());
  first.q = {whole.q}, first.y = {whole.y}, first.keys = {whole.keys}, first.masks = whole.masks[0];
  first.keys[0].tensor.region = Region::local; // as tiles have them
  first.whole = Shape{{turn, uint32_t(sizes.queries), 1, 1}};
  if (!first.choose()) {
    return false;
  }
  std::vector<Tile> all;
  for (uint32_t at = 0; at < whole.batches && !tiler.surveys; at += turn) {
    llvm::Expected<std::vector<Tile>> tiles = tilesOf(whole, parts, at, std::min(turn, uint32_t(whole.batches) - at));
    if (!tiles) {
      return tiles.takeError();
    }
    llvm::append_range(all, *tiles);
  }
  tiler.appendTiles(std::move(all), first.minimum() + 2 * each, first.requirement() + 2 * turn * each);
  return true;
}

llvm::Error AttentionEmission::runInParts(int64_t period) {
  std::vector<AttentionEmission> parts;
  for (int64_t first = 0; first < period; ++first) {
    parts.push_back(partOf(first, period));
  }
  if (isSideBySide(period)) {
    llvm::Expected<bool> done = runSideBySide(parts);
    if (!done || *done) {
      return done.takeError();
    }
  }
  for (AttentionEmission &part : parts) {
    if (llvm::Error error = part.run()) {
      return error;
    }
  }
  return llvm::Error::success();
}

} // namespace tessera::npu
