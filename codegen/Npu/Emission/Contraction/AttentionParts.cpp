//===- AttentionParts.cpp - Attention with unevenly spaced batches --------===//
// SPDX-License-Identifier: Apache-2.0
//
// In attention within windows, for example, the batches of each head are evenly spaced. If heads lie side by side in
// rows, whole rows are loaded and stored, because parts of rows are short runs of bytes.
//===----------------------------------------------------------------------===//
#include "codegen/Npu/Emission/Contraction/AttentionEmission.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>

using namespace mlir;
namespace hw = bmodel::npu;

namespace tessera::npu {

/// Returns the smallest period such that every period-th batch from each start is evenly spaced, e.g. the number of
/// heads of windows. Returns 1 if there is none.
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

/// Operands with heads side by side in the same rows. The dim n is a batch of each part.
struct AttentionEmission::Whole {
  TileView q, keys, values, y;
  SmallVector<TileView, 1> masks; ///< each part is one h
  int64_t batches = 0, period = 0;
};

/// Returns true if the rows of all operands hold the rows of the parts one after another.
bool AttentionEmission::isSideBySide(int64_t period) const {
  auto areBeside = [&](const Matrices &of, int64_t width) {
    return (width == 1 || of.byColumn == 1) && llvm::all_of(llvm::seq(int64_t(1), period), [&](int64_t part) {
             return of.begins[size_t(part)] == of.begins[0] + part * width;
           });
  };
  auto form = op->getAttrOfType<AttentionAttr>(NpuDialect::kAttentionAttr);
  return form && form.getMapping() == AttentionMapping::matrix && areBeside(q, sizes.depth) &&
         areBeside(k, sizes.depth) && areBeside(v, sizes.features) && areBeside(y, sizes.features) &&
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
  if (llvm::Error error = place(whole.q, q, sizes.queries, sizes.depth)) {
    return error;
  }
  if (llvm::Error error = place(whole.values, v, sizes.keys, sizes.features)) {
    return error;
  }
  return place(whole.y, y, sizes.queries, sizes.features);
}

/// Places the masks of all parts as one view. Returns false if they are not evenly spaced.
llvm::Expected<bool> AttentionEmission::placeMasksOf(Whole &whole, MutableArrayRef<AttentionEmission> parts) {
  SmallVector<TileView> each;
  for (AttentionEmission &part : parts) {
    AttentionTiles tiles(part.sizes, AttentionMapping::matrix, 1, context.tiler, scales());
    part.rows = sizes.queries, part.inner = 1;
    if (llvm::Error error = part.placeMasks(tiles)) {
      return error;
    }
    if (tiles.masks.size() != 1) {
      return !sizes.hasMask;
    }
    each.push_back(tiles.masks[0]);
  }
  int64_t distance = int64_t(each[1].tensor.offset) - int64_t(each[0].tensor.offset);
  for (auto [index, mask] : llvm::enumerate(each)) {
    Tensor expected = each[0].tensor;
    expected.offset += int64_t(index) * distance;
    if (std::memcmp(&mask.tensor, &expected, sizeof(Tensor)) != 0) {
      return false;
    }
  }
  if (distance < 0 || distance > INT32_MAX) {
    return false;
  }
  whole.masks = {each[0]};
  whole.masks[0].shape.dims[2] = uint32_t(parts.size()), whole.masks[0].tensor.strides[2] = int32_t(distance);
  return true;
}

/// Returns the bytes per lane that one batch of all parts needs for operands that are not in local memory.
uint64_t AttentionEmission::bytesOfBatch(const Whole &whole) const {
  uint64_t lanes = context.chip.lanes, depth = uint64_t(whole.period * sizes.depth);
  uint64_t features = uint64_t(whole.period * sizes.features), bytes = llvm::divideCeil(depth, lanes) * sizes.keys;
  bytes += whole.q.isLocal() ? 0 : llvm::divideCeil(uint64_t(sizes.queries), lanes) * depth;
  bytes += whole.values.isLocal() ? 0 : llvm::divideCeil(uint64_t(sizes.keys), lanes) * features;
  uint64_t size = hw::sizeOf(whole.y.tensor.type);
  return bytes + (whole.y.isLocal() ? 0 : llvm::divideCeil(uint64_t(sizes.queries), lanes) * features * size);
}

/// Builds the tiles for the batches [first, first + count) of all parts, each of which is one h.
llvm::Expected<std::vector<Tile>> AttentionEmission::tilesOf(const Whole &whole, AttentionTiles &tiles, uint32_t first,
                                                             uint32_t count) {
  const Chip &chip = context.chip;
  Tile around;
  LocalBudget localBudget(context.stream);
  auto batches = [&](const TileView &of) { return slice(of, 0, first, count, chip); };
  auto parts = [&](TileView of, int64_t width) {
    of.shape.dims[2] = uint32_t(whole.period), of.shape.dims[3] = uint32_t(width);
    of.tensor.strides[2] = int32_t(width) * of.tensor.strides[3];
    return of;
  };
  TileView to = batches(whole.y);
  localBudget.lane = laneOf({to, whole.q});
  TileView queries = load(batches(whole.q), localBudget, around);
  TileView keys = load(batches(whole.keys), localBudget, around);
  TileView values = loadAnyLane(batches(whole.values), localBudget, around), result = resultOf(to, localBudget);
  TileView bare = result; // the parts of rows are not stored separately
  bare.copy = Tensor(), bare.directStores = {};
  tiles.q = {parts(queries, sizes.depth)}, tiles.y = {parts(bare, sizes.features)};
  tiles.keys.clear(), tiles.values.clear(), tiles.masks.clear();
  for (uint32_t part = 0; part < whole.period; ++part) {
    auto depth = uint32_t(sizes.depth), features = uint32_t(sizes.features);
    tiles.keys.push_back(slice(keys, 1, part * depth, depth, chip));
    tiles.values.push_back(slice(values, 3, part * features, features, chip));
  }
  for (const TileView &mask : whole.masks) {
    tiles.masks.push_back(batches(mask));
  }
  tiles.whole = Shape{{count, uint32_t(sizes.queries), uint32_t(whole.period), 1}};
  if (!tiles.choose()) {
    return reject("needs more than the bytes of a lane for all scores of a query");
  }
  std::vector<Tile> made = tiles.make();
  made.front().loads.insert(made.front().loads.begin(), around.loads.begin(), around.loads.end());
  store(result, to, made.back());
  return made;
}

/// Runs all parts together, in turns of several batches so that loads and stores overlap computation. Returns false if
/// this does not fit.
llvm::Expected<bool> AttentionEmission::runSideBySide(MutableArrayRef<AttentionEmission> parts) {
  constexpr uint32_t kGoodTurns = 4;
  Tiler &tiler = context.tiler;
  Whole whole;
  if (llvm::Error error = placeWhole(whole, parts)) {
    return error;
  }
  if (llvm::Expected<bool> placed = placeMasksOf(whole, parts); !placed || !*placed) {
    return placed;
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
  AttentionTiles work(parts[0].sizes, AttentionMapping::matrix, 1, tiler, scales());
  setMapped(work);
  work.sideBySide = true;
  work.q = {whole.q}, work.y = {whole.y}, work.keys = {whole.keys}, work.masks = whole.masks;
  work.keys[0].tensor.region = Region::local; // as the tiles load them
  work.whole = Shape{{turn, uint32_t(sizes.queries), uint32_t(whole.period), 1}};
  if (!work.choose()) {
    return false;
  }
  const uint64_t minimum = work.minimum(), requirement = work.requirement();
  std::vector<Tile> all;
  for (uint32_t at = 0; at < whole.batches && !tiler.surveys; at += turn) {
    llvm::Expected<std::vector<Tile>> tiles = tilesOf(whole, work, at, std::min(turn, uint32_t(whole.batches) - at));
    if (!tiles) {
      return tiles.takeError();
    }
    llvm::append_range(all, *tiles);
  }
  tiler.appendTiles(std::move(all), minimum + 2 * each, requirement + 2 * turn * each);
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
