//===- AmxConv.cpp - Direct convolution on AMX tiles ----------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// AMX tiles need K contiguous in each row, so the input is always copied to scratch with channels last. An i16 input
// has two copies, one of the low and one of the high bytes.
//===----------------------------------------------------------------------===//
#include "codegen/X86/AmxTile.h"
#include "codegen/X86/ConvLoops.h"

using namespace mlir;

namespace tessera::x86 {
namespace {

/// Returns the positions in a row of the copy.
int64_t positionsOfRow(const ConvShape &s) {
  return int64_t(llvm::alignTo((s.ow.value() - 1) * s.strideW + (s.kw - 1) * s.dilationW + 1, s.strideW));
}

/// Returns how many output rows one register tile can hold. Output rows share a window if it holds them and the input
/// rows between them.
int64_t rowsOfTile(const ConvGeometry &g) {
  int64_t width = g.tiling.width.value(), between = g.s.strideH * positionsOfRow(g.s) / g.s.strideW;
  int64_t perWindow = width > kWindowRows ? 0 : 1 + (kWindowRows - width) / between;
  return g.packing.getRows() / kWindowRows * perWindow;
}

/// A convolution whose input is copied with channels last.
struct AmxGeometry : ConvGeometry {
  AmxGeometry(device::ConvOp op, const X86Target &target);

  int64_t strip = 0;  ///< row steps of a flat row that are copied at a time
  int64_t highAt = 0; ///< bytes from the copy of the low bytes of i16 to that of the high bytes; 0: bytes or bf16

private:
  bool halves() const { return s.kind == TileKind::S16; }
  int64_t stepsOfStrip() const;
};

bool isFlat(device::ConvOp op) {
  ConvShape s(op);
  return s.isPointwise() && packingOf(op).getOrder() == PackedOrder::channels_last && !s.padded();
}

AmxGeometry::AmxGeometry(device::ConvOp op, const X86Target &target)
    : ConvGeometry(op, target, /*copied=*/true, isFlat(op)) {
  tiling.stackRows(rowsOfTile(*this));
  splitLaunch();
  // An AMX window reads all of its rows, even those that the tile does not need.
  int64_t behind = kWindowRows * s.strideW * input.positionBytes;
  if (tiling.flat) {
    strip = std::min(rowStepsOfPart(), stepsOfStrip());
    copyFlat(strip, behind);
  } else {
    copyRows(positionsOfRow(s), behind);
  }
  if (halves()) {
    highAt = int64_t(llvm::alignTo(input.copyBytes, 64)) + 64;
    input.copyBytes += highAt;
  }
}

/// Returns the number of row steps to copy at a time. AMX reads its few rows so fast that the copy should stay in L1;
/// then all weights are read again for each strip, which is cheap while they are in L2.
int64_t AmxGeometry::stepsOfStrip() const {
  constexpr int64_t kStripBytes = 24 * 1024, kMostWeights = 256 * 1024;
  if (weightBytes() > kMostWeights) {
    return tiling.rowSteps.value();
  }
  return std::max<int64_t>(1, kStripBytes / (tiling.columns.size * input.positionBytes * (halves() ? 2 : 1)));
}

class AmxConv {
public:
  AmxConv(device::ConvOp op, KernelBuilder &kb, ArrayRef<TileExtra> extras)
      : op(op), kb(kb), g(op, targetOf(kb)),
        // The channels of neighbouring taps are contiguous: they form one K group.
        loops(kb, op, g, extras, g.groupOffsets(g.s.kw / tapsOfGroup()),
              [this](TileShape &shape, SegmentIndex) { complete(shape); }) {}

  void emit();

private:
  int64_t tapsOfGroup() const { return g.s.dilationW == 1 ? g.s.kw : 1; }
  void complete(TileShape &shape) const;
  void copyRows(const ConvPart &part, Value firstRow);
  void copyFlat(const ConvPart &part, Value begin, Value end);

  device::ConvOp op;
  KernelBuilder &kb;
  const AmxGeometry g;
  ConvLoops loops;
};

void AmxConv::complete(TileShape &shape) const {
  shape.groups = {{g.s.kh * g.s.kw / tapsOfGroup(), tapsOfGroup() * g.input.positionBytes / 4}};
  shape.chunk = g.packing.getChunk(), shape.rowStride = g.tiling.stepW * g.input.positionBytes;
  shape.windowRows = kWindowRows;
  shape.highAt = g.highAt;
}

/// Copies the input rows of |part| to scratch with their padding.
void AmxConv::copyRows(const ConvPart &part, Value firstRow) {
  auto copyPositions = [&](Value from, Value to, Value count) {
    if (g.input.blocked) {
      return copyChannelsLast(kb, from, to, count, g.s.icBlocks(), g.sourcePlane().value(), g.s.aBytes,
                              g.input.positionBytes, g.highAt);
    }
    copyPixels(kb, from, to, count, g.s.groupC(), g.sourcePlane().value(), g.s.aBytes);
  };
  copyPaddedRows(kb, g, part, firstRow, copyPositions, [&](Value to, Dim bytes) {
    auto value = static_cast<int8_t>(op.getPadValue()); // i16 inputs have zero padding
    fillBytes(kb, to, bytes, value);
    if (g.highAt) {
      fillBytes(kb, to, bytes, value, g.highAt);
    }
  });
}

/// Copies the positions [begin, end) of the flat row to scratch.
void AmxConv::copyFlat(const ConvPart &part, Value begin, Value end) {
  const ConvShape &s = g.s;
  Value source = byteOffset(kb, kb.operand(0), kb.mul(part.imageGroup, g.sourceGroup()));
  if (s.strideH == 1 && s.strideW == 1) {
    return copyChannelsLast(kb, byteOffset(kb, source, kb.mul(begin, g.sourceBytes())), kb.scratch(),
                            kb.sub(end, begin), s.icBlocks(), g.sourcePlane().value(), s.aBytes, g.input.positionBytes,
                            g.highAt);
  }
  copyChannelsLast(kb, source, kb.scratch(), kb.sub(end, begin), s.icBlocks(), g.sourcePlane().value(), s.aBytes,
                   g.input.positionBytes, g.highAt, [&](Value index) {
                     Value position = kb.add(begin, index), row = kb.div(position, s.ow);
                     Value column = kb.rem(position, s.ow);
                     return kb.add(kb.mul(row, s.strideH * s.w), kb.mul(column, s.strideW));
                   });
}

void AmxConv::emit() {
  kb.setScratchBytes(g.scratchBytes());
  kb.forTiles(g.launchTiles(), [&](Value tile) {
    emitTileConfig(kb, kWindowRows, g.packing.getChunk());
    ConvPart part = loops.partOf(tile);
    if (g.tiling.flat) {
      loops.emitFlat(part, g.strip, [&](Value begin, Value end) { copyFlat(part, begin, end); });
    } else {
      loops.emitCopied(part, [&](Value firstRow) { copyRows(part, firstRow); });
    }
    emitTileRelease(kb);
  });
}

} // namespace

void emitAmxConv(device::ConvOp op, KernelBuilder &kb, ArrayRef<TileExtra> extras) { AmxConv(op, kb, extras).emit(); }

} // namespace tessera::x86
