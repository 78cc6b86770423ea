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

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

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

Matrices matricesOf(Value value, ArrayRef<int64_t> batch) {
  SmallVector<int64_t> dims(typeOf(value).getShape());
  dims.insert(dims.begin(), dims.size() < 2 ? 2 - dims.size() : 0, 1);
  int64_t height = dims[dims.size() - 2], width = dims.back();
  Matrices made{value, batchesOf(ArrayRef(dims).drop_back(2), batch), height == 1 ? 0 : width, width == 1 ? 0 : 1};
  for (int64_t &begin : made.begins) {
    begin *= height * width;
  }
  return made;
}

} // namespace

llvm::Error Emitter::emitAttention(device::AttentionOp op) {
  if (llvm::any_of(op->getOperands(), [](Value each) { return !typeOf(each).getElementType().isF32(); })) {
    return refuse("is attention of narrow floats, or has a mask of other numbers, which is not emitted yet");
  }
  ArrayRef<int64_t> qDims = typeOf(op.getQ()).getShape(), batch = qDims.drop_back(2);
  Matrices k = matricesOf(op.getK(), batch), v = matricesOf(op.getV(), batch), mask{};
  AttentionSizes sizes{.batches = ShapedType::getNumElements(batch),
                       .queries = qDims[batch.size()],
                       .depth = qDims.back(),
                       .keys = typeOf(op.getK()).getShape()[typeOf(op.getK()).getRank() - 2],
                       .features = typeOf(op.getV()).getShape().back(),
                       .group = groupOf(k.begins, v.begins),
                       .hasMask = bool(op.getMask())};
  if (sizes.hasMask) {
    mask = matricesOf(op.getMask(), batch);
    sizes.group = affineOf(mask.begins, sizes.group) ? sizes.group : 1;
  }
  int64_t group = sizes.group, outer = sizes.batches / group, lanes = chip.lanes;
  std::optional<Affine> kAt = affineOf(k.begins, group), vAt = affineOf(v.begins, group), maskAt;
  maskAt = sizes.hasMask ? affineOf(mask.begins, group) : Affine{0, 0, 0};
  // Rows of a group's batches as one dim, where the mask lets them.
  int64_t byRow = group == 1 ? mask.byRow : sizes.queries == 1 && maskAt ? maskAt->byInner : 0;
  bool isOneDim = maskAt && (group == 1 || sizes.queries == 1 || (mask.byRow == 0 && maskAt->byInner == 0));
  bool byBatch = kAt && vAt && isOneDim &&
                 llvm::divideCeil(outer, lanes) * sizes.queries < outer * llvm::divideCeil(sizes.queries, lanes);
  int64_t blocks = blocksOf(sizes, chip);
  AttentionWay way = byBatch ? AttentionWay::batches : chooseWay(sizes, blocks, chip);
  bool isBlocked = way == AttentionWay::blocks;
  AttentionTiles tiles(sizes, way, uint32_t(blocks), tiler, float(op.getScale().convertToDouble()));
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
  if (llvm::Error error = placeAll(tiles.keys, k, kAt, {over, sizes.depth, sizes.keys}, {kStep, 1, sizes.depth})) {
    return error;
  }
  if (llvm::Error error =
          placeAll(tiles.values, v, vAt, {over, sizes.keys, sizes.features}, {vStep, sizes.features, 1})) {
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
  auto placeRows = [&](Value value, int64_t width) {
    int64_t matrix = sizes.queries * width;
    return byBatch || isBlocked ? place(value, {1, isBlocked ? sizes.batches * blocks : outer, inner, width},
                                        {0, inner * width, width, 1})
                                : place(value, {outer, rows, inner, width}, {group * matrix, width, matrix, 1});
  };
  llvm::Expected<Place> q = placeRows(op.getQ(), sizes.depth), y = placeRows(op.getY(), sizes.features);
  if (!q || !y) {
    return llvm::joinErrors(q.takeError(), y.takeError());
  }
  tiles.q = *q, tiles.y = *y;
  if (!tiles.choose()) {
    return refuse("needs more than the " + llvm::Twine(tiler.budget) + " bytes of a lane for all scores of a query");
  }
  tiler.appendTiles(tiler.surveys ? std::vector<Tile>() : tiles.make(), tiles.least(), tiles.need());
  return llvm::Error::success();
}

} // namespace tessera::npu
