//===- QueryTiles.cpp - Rows of q as launch and register tiles ------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/QueryTiles.h"

#include "codegen/Kernels/Transpose.h"
#include "codegen/X86/AmxTile.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera::x86 {

/// Returns the number of parts of |rows| rows. With few matrices the rows are split as well, although each part packs k
/// and v again; an even number of parts suits 2 and 4 threads.
static int64_t partsOf(int64_t batch, int64_t rows, int64_t pieces) {
  constexpr int64_t kWantedTiles = 8, kRowsWorthPacking = 64;
  int64_t parts = std::clamp<int64_t>(kWantedTiles / std::max<int64_t>(1, batch), 1,
                                      std::max<int64_t>(1, std::min(rows / kRowsWorthPacking, pieces)));
  return parts - (parts > 1 && parts % 2);
}

/// Returns the rows of a part if their number is symbolic. A prompt has many rows even if one is likely, and each part
/// packs k again.
static int64_t openRows(int64_t likely, int64_t parts, int64_t largest) {
  constexpr int64_t kRowsOfPrompt = 128;
  return llvm::alignTo(std::max(kRowsOfPrompt, ceilDiv(likely, parts)), largest);
}

QueryTiles::QueryTiles(const kernels::AttentionShape &shape, int64_t largest)
    : shape(shape), kb(shape.kb), largest(largest), likely(likelyOf(shape.queries)), rows(likely, largest),
      parts(partsOf(likelyOf(kernels::multiply(shape.batchDims())), likely, rows.pieces)),
      rowsOfPart(openRows(likely, parts, largest)) {}

SmallVector<Dim> QueryTiles::space() const {
  SmallVector<Dim> sizes(shape.batchDims());
  sizes.push_back(isOpen() ? tessera::ceilDiv(shape.queries, rowsOfPart) : Dim(parts));
  return sizes;
}

void QueryTiles::forGroups(Value part, function_ref<void(Value first, Value count)> body) const {
  if (isOpen()) {
    Value first = kb.mul(part, rowsOfPart), end = kb.min(kb.add(first, rowsOfPart), kb.index(shape.queries));
    return kb.forLoop(first, end, largest,
                      [&](Value row) { body(row, kb.min(kb.constant(largest), kb.sub(end, row))); });
  }
  Value begin = kb.div(kb.mul(part, rows.pieces), parts), end = kb.div(kb.mul(kb.add(part, 1), rows.pieces), parts);
  Value wide = kb.constant(rows.wide);
  if (rows.wide) {
    kb.forLoop(begin, kb.min(end, wide), 1,
               [&](Value piece) { body(kb.mul(piece, rows.size + 1), kb.constant(rows.size + 1)); });
  }
  if (rows.wide < rows.pieces) {
    kb.forLoop(kb.max(begin, wide), end, 1,
               [&](Value piece) { body(kb.add(kb.mul(piece, rows.size), rows.wide), kb.constant(rows.size)); });
  }
}

void QueryTiles::forTiles(Value count, function_ref<void(Value first, int64_t rows)> body) const {
  if (std::optional<int64_t> known = getConstantIntValue(count)) {
    return body(kb.constant(0), *known);
  }
  forOpenTiles(kb, kb.constant(0), count, largest, [&](Value begin, Value tiles, int64_t rowsOfTile) {
    kb.forLoop(kb.constant(0), tiles, 1,
               [&](Value tile) { body(kb.add(begin, kb.mul(tile, rowsOfTile)), rowsOfTile); });
  });
}

void KeyPanels::move(Dim panels, Dim keys, Value source, Value target) const {
  kernels::LoopNest nest;
  nest.bases = {0, 0};
  nest.dims = {{panels, {width * keyStride, width * rows}}, {depth, {1, width}}, {keys, {keyStride, 1}}};
  kernels::TiledMove move = kernels::planMove(kb, nest, source, target, element);
  kb.forLoop(0, move.tiles, 1, [&](Value tile) { move.body(tile); });
}

void KeyPanels::packWhole(Dim panels) const {
  if (panels.isKnown()) {
    return panels.is(0) ? void() : move(panels, width, from, to);
  }
  kb.forLoop(0, panels, 1, [&](Value panel) {
    move(1, width, kb.element(element, from, kb.mul(panel, width * keyStride)),
         kb.element(element, to, kb.mul(panel, width * rows)));
  });
}

void KeyPanels::packTail(Dim panel, Dim keys) const {
  Value source = kb.element(element, from, kb.index(panel * (width * keyStride)));
  Value target = kb.element(element, to, kb.index(panel * (width * rows)));
  if (keys.isKnown()) {
    return keys.is(0) ? void() : move(1, keys, source, target);
  }
  // Half a block, and single keys: moving four or two keys takes almost as long as moving eight, and as much code.
  Value begin = kb.constant(0), end = kb.index(keys);
  for (int64_t keysOfTile : {kBlock, kBlock / 2, int64_t(1)}) {
    if (keysOfTile == width) {
      continue; // a tail is smaller than a panel
    }
    Value last = kb.sub(end, kb.rem(kb.sub(end, begin), keysOfTile));
    kb.forLoop(begin, last, keysOfTile, [&](Value key) {
      move(1, keysOfTile, kb.element(element, source, kb.mul(key, keyStride)), kb.element(element, target, key));
    });
    begin = last;
  }
}

bool hasAmxRows(const kernels::AttentionShape &shape) {
  return targetOf(shape.kb).amx && shape.keys.isKnown() && shape.queries.isKnown() &&
         shape.queries.value() >= kFewestMatrixRows;
}

void setSteps(TileShape &shape, Dim steps) {
  shape.openSteps = !steps.isKnown();
  if (shape.openSteps) {
    shape.groups = {{1, kBlock}};
    return;
  }
  int64_t tail = steps.value() % kBlock;
  shape.groups = {{steps.value() / kBlock, kBlock}, {tail ? 1 : 0, tail}};
}

} // namespace tessera::x86
