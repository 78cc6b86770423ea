//===- MatMulGeometry.cpp - Sizes of a matmul on register tiles -----------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/MatMulGeometry.h"

#include "codegen/X86/AmxTile.h"
#include "codegen/X86/Transforms/AmxTiles.h"
#include "device_dialect/IR/Layout.h"
#include "top_dialect/IR/Sizes.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include <numeric>

using namespace mlir;

namespace tessera::x86 {

MatMulDims::MatMulDims(device::MatMulOp op, ArrayRef<TileExtra> extras)
    : batch(1), m(Shape(op.getY()).dropBack().back()),
      k(Shape(op.getA())[Shape(op.getA()).rank() - (op.getTransA() ? 2 : 1)].value()),
      n(Shape(op.getY()).back().value()) {
  Shape a(op.getA()), y(op.getY());
  auto pad = [&](SmallVector<Dim> shape) {
    SmallVector<Dim> dims(y.rank() - shape.size(), Dim(1));
    llvm::append_range(dims, ArrayRef(shape).drop_back(2));
    return dims;
  };
  auto product = [](ArrayRef<Dim> dims) {
    return std::accumulate(dims.begin(), dims.end(), Dim(1), [](Dim x, Dim y) { return x * y; });
  };
  batchDims = y.dropBack(2).dims(), batchA = pad(a.dims()),
  batchB = pad(llvm::map_to_vector(op.getWeightShape(), [](int64_t size) { return Dim(size); }));
  // With one matrix B for all of A, the batches are further rows of one matmul.
  if (product(batchB).is(1) && !op.getTransA() && sameSize(product(batchA), product(batchDims)) &&
      llvm::none_of(extras, [](const TileExtra &extra) { return extra.kind == ExtraKind::Row || extra.perMatrix; })) {
    m *= product(batchDims);
    batchDims.clear(), batchA.clear(), batchB.clear();
  }
  batch = product(batchDims);
}

static Type elementOf(Value value) { return getElementTypeOrSelf(value.getType()); }

/// Returns true if AMX tiles compute a matmul of bytes whose B is an activation.
static bool packsForTiles(device::MatMulOp op, const X86Target &target) {
  return target.amx && Shape(op.getY()).dropBack().back().value() >= kFewestMatrixRows;
}

/// Returns the blocks of columns per tile if |op| reads its f32 activation B in place, which requires so few rows that
/// the registers hold all of them. Returns 0 if B is packed.
static int64_t blocksInPlace(device::MatMulOp op, const X86Target &target) {
  constexpr int64_t kMostBlocks = 8;
  if (op.getPacking()) {
    return 0;
  }
  ArrayRef<int64_t> y = Shape(op.getY()).values(), b = op.getWeightShape();
  int64_t columns = y.back(), rows = ShapedType::getNumElements(b.drop_back(2)) == 1
                                         ? ShapedType::getNumElements(y.drop_back())
                                         : y[y.size() - 2];
  bool reachable = columns < (int64_t(1) << 24); // 32-bit offsets reach from row to row
  if (op.getTransB() || !elementOf(op.getB()).isF32() || tileKindOf(elementOf(op.getA())) != TileKind::F32 ||
      columns < kBlock || !reachable) {
    return 0;
  }
  int64_t blocks = std::min(kMostBlocks, columns / kBlock);
  while (blocks > 0 && maxTileRows(target, blocks) < rows) {
    --blocks;
  }
  return blocks;
}

/// Returns the panels of a packed B, or those that each launch tile packs at run time: f32, or bytes if the chip can
/// multiply them with those of A, else 16-bit words.
static Panels panelsOf(device::MatMulOp op, const X86Target &target) {
  if (PackingAttr packing = packingOf(op)) {
    return panelsOfMatMul(packing, op.getTransB());
  }
  ArrayRef<int64_t> shape = op.getWeightShape().take_back(2);
  int64_t columns = shape[op.getTransB() ? 0 : 1], depth = shape[op.getTransB() ? 1 : 0];
  int64_t blocks = std::min<int64_t>(ceilDiv(columns, kBlock), target.hasMasks() ? 2 : 1);
  if (int64_t few = blocksInPlace(op, target)) {
    blocks = few;
  }
  TileKind kind = *tileKindOf(elementOf(op.getA()));
  if (kind == TileKind::F32) {
    return panelsOfMatrix(PackedStep::f32, depth, columns, blocks);
  }
  bool tiles = packsForTiles(op, target), dots = tiles || (target.vnni && kind == TileKind::U8);
  Panels panels = panelsOfMatrix(dots ? PackedStep::i8x4 : PackedStep::i16x4, depth, columns, blocks);
  if (tiles) {
    KSplit chunks = chunksOfRow(panels.steps() * 4);
    panels.runs = {{chunks.count, chunks.chunk / 4}};
  }
  return panels;
}

static MatMulColumns columnsOf(device::MatMulOp op, const X86Target &target) {
  bool packed = op.getPacking().has_value();
  TileWeights weights(target, panelsOf(op, target));
  TileKind kind = *tileKindOf(elementOf(op.getA()), packingOf(op));
  int64_t chunk = packed                                               ? packingOf(op).getChunk()
                  : kind != TileKind::F32 && packsForTiles(op, target) ? weights.panels.runs.front().size * 4
                                                                       : 0;
  PanelSplit panels(weights.panels.blocks(), weights.panels.panelBlocks);
  return {packed, blocksInPlace(op, target) != 0, chunk, std::move(weights), panels};
}

static MatMulRows rowsOf(device::MatMulOp op, const X86Target &target, const MatMulDims &dims,
                         const MatMulColumns &columns) {
  int64_t mostRows = columns.packed  ? packingOf(op).getRows()
                     : columns.chunk ? kAmxTileRows
                                     : maxTileRows(target, columns.panels.blocks);
  Type element = elementOf(op.getA());
  TileKind kind = *tileKindOf(element, packingOf(op));
  int64_t steps = columns.weights.panels.steps();
  return {kind,
          element,
          device::elementBytes(element),
          RowCopy::none,
          false,
          op.getTransA() ? 4 : steps * 4,
          op.getTransA() ? dims.m.value() * 4 : 4,
          mostRows,
          EvenSplit(dims.likelyRows(), mostRows)};
}

MatMulGeometry::MatMulGeometry(device::MatMulOp op, const X86Target &target, ArrayRef<TileExtra> extras)
    : dims(op, extras), columns(columnsOf(op, target)), rows(rowsOf(op, target, dims, columns)) {
  setRowCopy(op);
  avoidSharedSets(op);
  splitLaunch();
}

void MatMulGeometry::setRowCopy(device::MatMulOp op) {
  int64_t bytes = dims.k * rows.elementBytes;
  if (rows.kind == TileKind::F32 && rows.elementBytes < 4) {
    rows.copy = RowCopy::widen;
  } else if (rows.kind == TileKind::S16 && columns.chunk) {
    rows.copy = RowCopy::halves;
    // Row strides of both halves would often be whole pages, so that all rows share the same L1 sets.
    rows.rowBytes = op.getTransA() ? rows.rowBytes : steps() * 8 + kBlockBytes;
  } else if (rows.kind == TileKind::S8 && columns.packed && flipsBytes(packingOf(op)) && dims.n >= 64) {
    rows.copy = RowCopy::flip; // for VNNI, once for several panels
  } else if ((rows.kind != TileKind::F32 && bytes % 4 != 0) || (columns.chunk && bytes != steps() * 4)) {
    rows.copy = RowCopy::plain;
  }
}

/// Decides whether to copy A to a buffer with a padded row stride. If the stride of A is a multiple of the page size,
/// all rows of a tile map to the same L1 sets, which leaves no room for B. The copy pays off if enough columns read it.
void MatMulGeometry::avoidSharedSets(device::MatMulOp op) {
  constexpr int64_t kPage = 4096, kFewRows = 5, kFewColumns = 192;
  rows.sharesSets = !op.getTransA() && !columns.chunk && rows.rowBytes % kPage == 0 && rows.tiles.size > kFewRows &&
                    dims.n >= kFewColumns;
  if (rows.sharesSets) {
    rows.copy = rows.copy == RowCopy::none ? RowCopy::plain : rows.copy;
    rows.rowBytes += kBlockBytes;
  }
}

void MatMulGeometry::splitLaunch() {
  const TileWeights &weights = columns.weights;
  const PanelSplit &panels = columns.panels;
  int64_t m = dims.likelyRows(), batch = dims.likelyBatch(), pieces = rows.tiles.pieces;
  int64_t flops = 2 * m * dims.n * dims.k / productsPerStep(weights.panels.step, columns.chunk);
  int64_t readOfB = bBytes() * (columns.packed || columns.inPlace ? 1 : 3);
  int64_t aBytes = m * dims.k * (rows.copy == RowCopy::widen ? 4 : rows.elementBytes);
  work = rows.sharesSets ? splitCopiedWork(flops, pieces, panels.count, m * rows.rowBytes, readOfB, batch)
                         : splitWork(flops, pieces, panels.count, aBytes, readOfB, batch);
  piecesOfPart = ceilDiv(pieces, work.rowParts);
  if (!dims.m.isKnown() && pieces == 1) {
    splitFewLikelyRows();
  }
  chooseCopies();
  if (dims.m.isKnown() && columns.packed && !hasPanelInScratch() && bBytes() > 256 * 1024) {
    int64_t lines = weights.panels.bytesOfBlock() / kBlockBytes;
    prefetchLines = std::min<int64_t>(ceilDiv(lines * panels.blocks, piecesOfPart), 2 * lines);
  }
  if (hasPanelInScratch()) {
    scratchBytes = copyAt = steps() * panels.blocks * columns.copies.value_or(weights).tileStepBytes;
  }
  if (rows.copy != RowCopy::none) {
    int64_t rowsOfTile = dims.m.isKnown() ? rows.tiles.size + 1 : rows.mostRows;
    scratchBytes = copyAt + piecesOfPart * rowsOfTile * rows.rowBytes;
  }
}

/// Lets the launch tiles of a matmul whose rows mostly fit one register tile hold up to kRows rows, so that the panels
/// that they read, and perhaps copy, serve several register tiles. There are more parts of columns instead, because
/// threads share the few launch tiles of a prompt.
void MatMulGeometry::splitFewLikelyRows() {
  constexpr int64_t kRows = 128, kRowBytes = 512 * 1024, kPanelParts = 16;
  const int64_t rowsOfPart = std::min({kRows, kRowBytes / rows.rowBytes, maxOf(dims.m)});
  piecesOfPart = std::max<int64_t>(1, ceilDiv(rowsOfPart, rows.mostRows));
  if (piecesOfPart > 1) {
    work.panelParts = std::max(work.panelParts, std::min(kPanelParts, columns.panels.count));
  }
}

/// Decides whether panels of weights below 32 bits are copied as f32. Register tiles widen them at the cost of half a
/// tile or less, and add the same products in the same order.
void MatMulGeometry::chooseCopies() {
  if (!columns.packed || columns.weights.copied || stepBits(columns.weights.panels.step) >= 32 ||
      piecesOfPart < kFewestPiecesOfCopies) {
    return;
  }
  if (dims.m.isKnown()) {
    columns.weights = columns.weights.asCopies();
  } else {
    columns.copies = columns.weights.asCopies();
  }
}

int64_t MatMulGeometry::bBytes() const {
  const TileWeights &weights = columns.weights;
  bool plain = rows.kind == TileKind::F32 && weights.stepBytes == kBlockBytes;
  return plain ? dims.n * dims.k * 4 : weights.panels.blocks() * weights.panels.bytesOfBlock();
}

int64_t MatMulGeometry::windowRows() const {
  return rows.copy == RowCopy::halves ? rows.tiles.length(0) : std::min(dims.m.value(), kWindowRows);
}

} // namespace tessera::x86
