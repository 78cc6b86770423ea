//===- ConvGeometry.cpp - Sizes of a convolution on register tiles --------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/ConvGeometry.h"

using namespace mlir;

namespace tessera::x86 {

ConvTiling::ConvTiling(const ConvShape &s, bool flat, int64_t mostPositions)
    : flat(flat), height(flat ? Dim(1) : s.oh), width(flat ? s.oh * s.ow : s.ow), stepW(flat ? 1 : s.strideW),
      mostPositions(mostPositions), columns(std::max<int64_t>(1, likelyOf(width)), mostPositions),
      rowSteps(!isOneRow()       ? height
               : width.isKnown() ? Dim(columns.pieces)
                                 : tessera::ceilDiv(width, mostPositions)) {}

void ConvTiling::stackRows(int64_t rows) {
  if (height.isKnown() && width.isKnown() && !isOneRow() && columns.pieces == 1) {
    tileH = std::clamp<int64_t>(rows, 1, height.value());
    rowSteps = ceilDiv(height.value(), tileH);
  }
}

static ConvInput inputOf(const ConvShape &s, PackingAttr packing, bool copied) {
  PackedOrder order = packing.getOrder();
  bool blocked = order == PackedOrder::blocks || order == PackedOrder::channels_last;
  int64_t lanes = blocked ? kBlock : 1;
  if (hasChannelsLast(order)) {
    return {blocked, lanes, 1, paddedDepth(order, s.groupC(), s.aBytes, s.kw, packing.getChunk()), copied};
  }
  return {blocked, lanes, blocked ? s.icBlocks() : s.groupC(), s.aBytes * lanes, copied};
}

ConvGeometry::ConvGeometry(device::ConvOp op, const X86Target &target, bool copied, bool flat)
    : s(op), packing(packingOf(op)), weights(target, panelsOfConv(packing, s.groups)),
      panels(s.ocBlocks(), weights.panels.panelBlocks), input(inputOf(s, packing, copied)),
      tiling(s, flat, packing.getRows()),
      segments{false, {{0, likelyOf(tiling.height), 0, s.kh}}, {{0, likelyOf(tiling.width), 0, s.kw}}} {}

void ConvGeometry::splitLaunch() {
  int64_t inBytes = s.icBlocks() * kBlock * s.aBytes * likelyOf(s.h) * likelyOf(s.w);
  int64_t flops = s.flops() / s.n / s.groups / productsPerStep(packing.getStep(), packing.getChunk());
  work =
      splitWork(flops, likelyRowSteps(), panels.count, inBytes * (input.copied ? 2 : 1), weightBytes(), s.n * s.groups);
  prefetchLines = prefetchedLines();
}

/// The next panel is prefetched while the tiles of this one run; the weights of a small layer stay in L2 anyway.
int64_t ConvGeometry::prefetchedLines() const {
  if (weightBytes() <= 256 * 1024 || weights.copied || s.hasOpenPlanes()) {
    return 0;
  }
  int64_t tilesPerPanel = (tiling.isOneRow() ? 1 : tilesPerRow()) * rowStepsOfPart();
  int64_t lines = weights.panels.bytesOfBlock() / kBlockBytes;
  return std::min<int64_t>(ceilDiv(lines * panels.blocks, tilesPerPanel), 2 * lines);
}

int64_t ConvGeometry::tilesPerRow() const {
  int64_t tiles = 0;
  for (const BorderSegment &segment : segments.columns) {
    tiles += EvenSplit(segment.length(), packing.getRows()).pieces;
  }
  return tiles;
}

int64_t ConvGeometry::weightBytes() const {
  bool plain = s.kind == TileKind::F32 && weights.stepBytes == kBlockBytes;
  return plain ? steps() * s.groupOc() * 4 : s.ocBlocks() * weights.panels.bytesOfBlock();
}

void ConvGeometry::readInPlace() {
  input.pitch = s.w * input.positionBytes;
  input.plane = s.h * input.pitch;
}

void ConvGeometry::copyFlat(int64_t rowSteps, int64_t behind) {
  const EvenSplit &columns = tiling.columns;
  int64_t largest = tiling.width.isKnown() ? columns.length(0) : tiling.mostPositions;
  int64_t plane = rowSteps * largest * input.positionBytes;
  input.plane = plane;
  input.copyBytes = plane * input.planes + behind;
}

void ConvGeometry::copyRows(Dim positions, int64_t behind) {
  int64_t rowsOut = tiling.isOneRow() ? 1 : rowStepsOfPart() * tiling.tileH;
  int64_t rowsIn = (rowsOut - 1) * s.strideH + (s.kh - 1) * s.dilationH + 1;
  // An odd number of positions keeps rows in different cache sets whatever the largest width is.
  int64_t pitch = (positions.isKnown() ? positions.value() : maxOf(positions) | 1) * input.positionBytes;
  input.positions = positions;
  input.pitch = pitch;
  input.plane = rowsIn * pitch;
  input.copyBytes = int64_t(llvm::alignTo(rowsIn * pitch * input.planes + behind, 64));
}

TileShape ConvGeometry::tileShape(int64_t rows, int64_t width, int64_t blocks) const {
  TileShape shape;
  shape.kind = s.kind;
  shape.blocks = blocks;
  weights.describe(shape);
  shape.openGroups = tiling.flat && !input.plane.isKnown();
  shape.groupBytes = tiling.flat && !shape.openGroups ? input.plane.value() : 0;
  for (int64_t y = 0; y < rows; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      int64_t rowBytes = y ? y * s.strideH * input.pitch.value() : 0;
      shape.rows.push_back(rowBytes + x * tiling.stepW * input.positionBytes);
    }
  }
  shape.prefetchLines = prefetchLines;
  shape.aheadBytes = streamAhead(shape.step, weightBytes());
  return shape;
}

SmallVector<int32_t> ConvGeometry::groupOffsets(int64_t groupsPerRow) const {
  SmallVector<int32_t> offsets;
  if (tiling.flat) {
    return offsets;
  }
  for (int64_t plane = 0; plane < input.planes; ++plane) {
    for (int64_t y = 0; y < s.kh; ++y) {
      for (int64_t x = 0; x < groupsPerRow; ++x) {
        offsets.push_back(tapOffset(plane, y, x));
      }
    }
  }
  return offsets;
}

//===----------------------------------------------------------------------===//
// Vector instructions
//===----------------------------------------------------------------------===//

int64_t rowsOfVectorTile(const ConvGeometry &g) {
  return g.tiling.width.isKnown() ? g.packing.getRows() / g.tiling.width.value() : 1;
}

Dim positionsOfVectorRow(const ConvGeometry &g) {
  // The last K step of a kernel row reads beyond its taps if they do not fill the step (the weights there are zero).
  int64_t perStep = stepElements(g.packing.getStep()), reach = (g.s.kw - 1) * g.s.dilationW + 1;
  if (g.packing.getOrder() == PackedOrder::taps) {
    reach = (g.s.kw - 1) / perStep * perStep + perStep;
  } else if (g.packing.getOrder() == PackedOrder::apart) {
    reach += perStep - 1;
  }
  return (g.s.ow - 1) * g.s.strideW + reach;
}

int64_t groupsOfVectorRow(const ConvGeometry &g) { return g.packing.getOrder() == PackedOrder::taps ? 1 : g.s.kw; }

} // namespace tessera::x86
