//===- EmitAttention.cpp - Attention of the NPU ---------------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// What batches have in common becomes dims and strides; the rest is in AttentionTiles.cpp.
//===----------------------------------------------------------------------===//
#include "codegen/Npu/Attention.h"
#include "codegen/Npu/Emitter.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera::npu {
namespace {

/// Where batch outer * group + inner of an operand begins, in elements.
struct Affine {
  int64_t base, byOuter, byInner;
};

/// Nothing where batches lie otherwise.
std::optional<Affine> affineOf(ArrayRef<int64_t> begins, int64_t group) {
  int64_t count = int64_t(begins.size());
  Affine made = {begins[0], count > group ? begins[size_t(group)] - begins[0] : 0,
                 group > 1 ? begins[1] - begins[0] : 0};
  for (int64_t i = 0; i < count; ++i) {
    if (begins[size_t(i)] != made.base + i / group * made.byOuter + i % group * made.byInner) {
      return std::nullopt;
    }
  }
  return made;
}

/// How many batches one after another have the same keys and values: 1 unless all do it alike.
int64_t groupOf(ArrayRef<int64_t> keys, ArrayRef<int64_t> values) {
  int64_t group = 1, count = int64_t(keys.size());
  while (group < count && keys[size_t(group)] == keys[0] && values[size_t(group)] == values[0]) {
    ++group;
  }
  auto isShared = [&](ArrayRef<int64_t> begins) {
    std::optional<Affine> found = affineOf(begins, group);
    return found && found->byInner == 0;
  };
  return count % group == 0 && isShared(keys) && isShared(values) ? group : 1;
}

/// Of an operand of attention: where each batch begins, and the strides of a matrix's rows and columns.
struct Matrices {
  Value value;
  SmallVector<int64_t> begins;
  int64_t byRow, byColumn;
};

/// |of|: the value that |seen| tells of, as the op has it.
Matrices matricesOf(const Seen &seen, Value of, ArrayRef<int64_t> batch) {
  SmallVector<int64_t> dims(typeOf(of).getShape());
  dims.insert(dims.begin(), dims.size() < 2 ? 2 - dims.size() : 0, 1);
  int64_t height = dims[dims.size() - 2], width = dims.back();
  Matrices made{seen.value, batchesOf(ArrayRef(dims).drop_back(2), batch), *seen.strideOf(width, height),
                *seen.strideOf(1, width)};
  for (int64_t &begin : made.begins) {
    begin = seen.at(begin * height * width);
  }
  return made;
}

/// Into how many runs batches fall that lie evenly.
int64_t runsOf(ArrayRef<int64_t> begins) {
  int64_t runs = 1;
  for (size_t first = 0, i = 1; i < begins.size(); ++i) {
    if (begins[i] - begins[i - 1] != begins[first + 1] - begins[first]) {
      ++runs, first = i;
    }
  }
  return runs;
}

/// Whether the batches of each group lie evenly.
bool hasEvenGroups(const Matrices &of, int64_t group) {
  for (size_t first = 0; first < of.begins.size(); first += size_t(group)) {
    if (!affineOf(ArrayRef(of.begins).slice(first, size_t(group)), group)) {
      return false;
    }
  }
  return true;
}

/// The distance of all rows of the batches of a group, where they are one dim.
std::optional<int64_t> rowsOfGroup(const Matrices &of, const AttentionSizes &sizes) {
  int64_t byInner = sizes.group > 1 ? of.begins[1] - of.begins[0] : 0;
  if (sizes.group == 1 || byInner == sizes.queries * of.byRow) {
    return of.byRow;
  }
  return sizes.queries == 1 ? std::optional(byInner) : std::nullopt;
}

} // namespace

llvm::Error Emitter::emitAttention(device::AttentionOp op) {
  if (llvm::any_of(op->getOperands(), [](Value each) { return !typeOf(each).getElementType().isF32(); })) {
    return refuse("is attention of narrow floats, or has a mask of other numbers, which is not emitted yet");
  }
  ArrayRef<int64_t> qDims = typeOf(op.getQ()).getShape(), batch = qDims.drop_back(2);
  auto matrices = [&](Value value) { return matricesOf(folds.seen(value), value, batch); };
  const Folds::Tail *tail = folds.tailOf(op);
  Matrices q = matrices(op.getQ()), k = matrices(op.getK()), v = matrices(op.getV()), mask{};
  Matrices y = tail ? matricesOf(tail->targets.front(), op.getY(), batch) : matrices(op.getY());
  AttentionSizes sizes{.batches = ShapedType::getNumElements(batch),
                       .queries = qDims[batch.size()],
                       .depth = qDims.back(),
                       .keys = typeOf(op.getK()).getShape()[typeOf(op.getK()).getRank() - 2],
                       .features = typeOf(op.getV()).getShape().back(),
                       .group = groupOf(k.begins, v.begins),
                       .hasMask = bool(op.getMask())};
  if (sizes.hasMask) {
    mask = matrices(op.getMask());
    sizes.group = affineOf(mask.begins, sizes.group) ? sizes.group : 1;
  }
  sizes.group = hasEvenGroups(q, sizes.group) && hasEvenGroups(y, sizes.group) ? sizes.group : 1;
  int64_t group = sizes.group, outer = sizes.batches / group, lanes = chip.lanes;
  std::optional<Affine> kAt = affineOf(k.begins, group), vAt = affineOf(v.begins, group), maskAt,
                        qAt = affineOf(q.begins, group), yAt = affineOf(y.begins, group);
  maskAt = sizes.hasMask ? affineOf(mask.begins, group) : Affine{0, 0, 0};
  // Rows of a group's batches as one dim, where the mask lets them.
  int64_t byRow = group == 1 ? mask.byRow : sizes.queries == 1 && maskAt ? maskAt->byInner : 0;
  bool isOneDim = maskAt && (group == 1 || sizes.queries == 1 || (mask.byRow == 0 && maskAt->byInner == 0));
  std::optional<int64_t> qRows = rowsOfGroup(q, sizes), yRows = rowsOfGroup(y, sizes);
  bool byBatch = kAt && vAt && isOneDim && qAt && yAt && qRows && yRows &&
                 llvm::divideCeil(outer, lanes) * sizes.queries < outer * llvm::divideCeil(sizes.queries, lanes);
  if (!qAt || !yAt) {
    sizes.runs = std::max({runsOf(q.begins), runsOf(k.begins), runsOf(v.begins), runsOf(y.begins)});
  }
  int64_t blocks = blocksOf(sizes, chip);
  AttentionWay way = byBatch ? AttentionWay::batches : chooseWay(sizes, blocks, chip);
  bool isBlocked = way == AttentionWay::blocks;
  AttentionTiles tiles(sizes, way, uint32_t(blocks), tiler, float(op.getScale().convertToDouble()));
  if (device::MapOp map = tail ? tail->map : device::MapOp()) {
    tiles.mapped = tail->program, tiles.mappedOperands = map.getInputs().size();
  }
  auto placeAll = [&](SmallVector<Place> &to, const Matrices &of, std::optional<Affine> at, ArrayRef<int64_t> rest,
                      ArrayRef<int64_t> strides) -> llvm::Error {
    // By n, c, h, w: what batches share has no stride there.
    at = isBlocked ? std::nullopt : at;
    int64_t count = at ? 1 : isBlocked ? sizes.batches : outer;
    for (int64_t n = 0; n < count; ++n) {
      SmallVector<int64_t> view = {byBatch || !at ? 1 : outer}, steps = {byBatch || !at ? 0 : at->byOuter};
      view.append(rest.begin(), rest.end()), steps.append(strides.begin(), strides.end());
      llvm::Expected<Place> placed = placeOutside(of.value, view, steps, at ? at->base : of.begins[size_t(n)]);
      if (!placed) {
        return placed.takeError();
      }
      to.push_back(*placed);
    }
    return llvm::Error::success();
  };
  int64_t over = byBatch ? outer : 1, kStep = byBatch ? kAt->byOuter : 0, vStep = byBatch ? vAt->byOuter : 0;
  if (llvm::Error error = placeAll(tiles.keys, k, kAt, {over, sizes.depth, sizes.keys}, {kStep, k.byColumn, k.byRow})) {
    return error;
  }
  if (llvm::Error error =
          placeAll(tiles.values, v, vAt, {over, sizes.keys, sizes.features}, {vStep, v.byRow, v.byColumn})) {
    return error;
  }
  int64_t rows = byBatch ? outer : sizes.queries, inner = byBatch ? group * sizes.queries : group;
  if (isBlocked) {
    rows = blocks, inner = sizes.queries / blocks;
  }
  if (sizes.hasMask) {
    int64_t byC = byBatch ? maskAt->byOuter : mask.byRow, byH = byBatch ? byRow : maskAt ? maskAt->byInner : 0;
    if (isBlocked) {
      byC = mask.byRow * inner, byH = mask.byRow;
    }
    if (llvm::Error error = placeAll(tiles.masks, mask, maskAt, {rows, inner, sizes.keys}, {byC, byH, mask.byColumn})) {
      return error;
    }
  }
  // Evenly lying batches are one place; others have one each, outside the chip.
  auto placeAllRows = [&](SmallVector<Place> &to, const Matrices &of, std::optional<Affine> at, int64_t byRow,
                          int64_t width) -> llvm::Error {
    bool isWritten = makes(of.value);
    auto add = [&](ArrayRef<int64_t> view, ArrayRef<int64_t> steps, int64_t offset, bool outside) {
      llvm::Expected<Place> placed =
          outside && !isWritten ? placeOutside(of.value, view, steps, offset) : place(of.value, view, steps, offset);
      if (placed) {
        to.push_back(*placed);
      }
      return placed ? llvm::Error::success() : placed.takeError();
    };
    if (byBatch) {
      return add({1, outer, inner, width}, {0, at->byOuter, byRow, of.byColumn}, at->base, false);
    }
    bool areBlocksEven = isBlocked && affineOf(of.begins, 1) && // each batch goes on where the one before it ends
                         (sizes.batches == 1 || of.begins[1] - of.begins[0] == sizes.queries * of.byRow);
    if (areBlocksEven) {
      return add({1, sizes.batches * blocks, inner, width}, {0, inner * of.byRow, of.byRow, of.byColumn}, of.begins[0],
                 false);
    }
    if (at && !isBlocked) {
      return add({outer, rows, inner, width}, {at->byOuter, of.byRow, at->byInner, of.byColumn}, at->base, false);
    }
    if (isWritten && tiler.surveys) {
      plan.keepOutside(of.value);
    }
    for (int64_t n = 0; n < (isBlocked ? sizes.batches : outer); ++n) {
      size_t first = size_t(isBlocked ? n : n * group);
      int64_t byInner = !isBlocked && group > 1 ? of.begins[first + 1] - of.begins[first] : 0;
      SmallVector<int64_t> steps = {0, isBlocked ? inner * of.byRow : of.byRow, isBlocked ? of.byRow : byInner,
                                    of.byColumn};
      if (llvm::Error error = add({1, rows, inner, width}, steps, of.begins[first], true)) {
        return error;
      }
    }
    return llvm::Error::success();
  };
  if (llvm::Error error = placeAllRows(tiles.q, q, qAt, qRows.value_or(0), sizes.depth)) {
    return error;
  }
  if (llvm::Error error = placeAllRows(tiles.y, y, yAt, yRows.value_or(0), sizes.features)) {
    return error;
  }
  tiles.whole = Shape{{uint32_t(byBatch || isBlocked ? 1 : outer), uint32_t(isBlocked ? sizes.batches * blocks : rows),
                       uint32_t(inner), 1}};
  if (!tiles.choose()) {
    return refuse("needs more than the " + llvm::Twine(tiler.budget) + " bytes of a lane for all scores of a query");
  }
  tiler.appendTiles(tiler.surveys ? std::vector<Tile>() : tiles.make(), tiles.least(), tiles.need());
  return llvm::Error::success();
}

} // namespace tessera::npu
