//===- ConvGeometry.cpp - Sizes of a convolution on register tiles --------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/ConvGeometry.h"

using namespace mlir;

namespace tessera::x86 {

ConvTiling::ConvTiling(const ConvShape &s, bool flat, int64_t mostPositions)
    : flat(flat), height(flat ? 1 : s.oh), width(flat ? s.oh * s.ow : s.ow), stepW(flat ? 1 : s.strideW),
      columns(width, mostPositions), rowSteps(height == 1 ? columns.pieces : height) {}

void ConvTiling::stackRows(int64_t rows) {
  if (height > 1 && columns.pieces == 1) {
    tileH = std::clamp<int64_t>(rows, 1, height);
    rowSteps = ceilDiv(height, tileH);
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
      tiling(s, flat, packing.getRows()), segments{false, {{0, tiling.height, 0, s.kh}}, {{0, tiling.width, 0, s.kw}}} {
}

void ConvGeometry::splitLaunch() {
  int64_t inBytes = s.icBlocks() * kBlock * s.aBytes * s.h * s.w;
  int64_t flops = s.flops() / s.n / s.groups / productsPerStep(packing.getStep(), packing.getChunk());
  work =
      splitWork(flops, tiling.rowSteps, panels.count, inBytes * (input.copied ? 2 : 1), weightBytes(), s.n * s.groups);
  prefetchLines = prefetchedLines();
}

/// The next panel is prefetched while the tiles of this one run; the weights of a small layer stay in L2 anyway.
int64_t ConvGeometry::prefetchedLines() const {
  if (weightBytes() <= 256 * 1024 || weights.copied) {
    return 0;
  }
  int64_t tilesPerPanel = (tiling.height == 1 ? 1 : tilesPerRow()) * rowStepsOfPart();
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
  input.plane = rowSteps * (tiling.columns.size + (tiling.columns.wide ? 1 : 0)) * input.positionBytes;
  input.copyBytes = input.plane * input.planes + behind;
}

void ConvGeometry::copyRows(int64_t positions, int64_t behind) {
  int64_t rowsOut = tiling.height == 1 ? 1 : rowStepsOfPart() * tiling.tileH;
  int64_t rowsIn = (rowsOut - 1) * s.strideH + (s.kh - 1) * s.dilationH + 1;
  input.pitch = positions * input.positionBytes;
  input.plane = rowsIn * input.pitch;
  input.copyBytes = int64_t(llvm::alignTo(input.plane * input.planes + behind, 64));
}

TileShape ConvGeometry::tileShape(int64_t rows, int64_t width, int64_t blocks) const {
  TileShape shape;
  shape.kind = s.kind;
  shape.blocks = blocks;
  weights.describe(shape);
  shape.groupBytes = tiling.flat ? input.plane : 0;
  for (int64_t y = 0; y < rows; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      shape.rows.push_back(y * s.strideH * input.pitch + x * tiling.stepW * input.positionBytes);
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

int64_t rowsOfVectorTile(const ConvGeometry &g) { return g.packing.getRows() / g.tiling.width; }

int64_t positionsOfVectorRow(const ConvGeometry &g) {
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
