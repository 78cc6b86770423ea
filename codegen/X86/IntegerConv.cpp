//===- IntegerConv.cpp - Direct convolution of integers by vectors --------===//
// SPDX-License-Identifier: Apache-2.0
//
// Vector instructions multiply 8- or 16-bit integers: VNNI where the chip has it, otherwise pairs of 16-bit words. A
// reads the blocked input in place. If the window crosses the border, the input rows of a launch tile are first copied
// to scratch with their padding; a row-major input is always copied. VNNI multiplies signed bytes as value + 128, which
// the copy adds if enough output channels read it.
//===----------------------------------------------------------------------===//
#include "codegen/X86/ConvLoops.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace tessera::x86 {
namespace {

/// Number of output channels from which copying signed bytes as value + 128 is cheaper than adding 128 in the K loop of
/// each panel.
constexpr int64_t kWorthCopying = 64;

ConvGeometry geometryOf(device::ConvOp op, const X86Target &target, bool signedDots) {
  ConvShape s(op);
  bool blocked = packingOf(op).getOrder() == PackedOrder::blocks;
  bool copied = s.padded() || !blocked || (signedDots && s.groupOc() >= kWorthCopying);
  bool flat = s.isPointwise() && s.strideH == 1 && s.strideW == 1 && !copied;
  copied |= s.hasOpenPlanes() && !flat;
  ConvGeometry g(op, target, copied, flat);
  g.tiling.stackRows(rowsOfVectorTile(g));
  g.splitLaunch();
  if (copied) {
    g.copyRows(positionsOfVectorRow(g));
  } else {
    g.readInPlace();
  }
  return g;
}

class IntegerConv {
public:
  IntegerConv(device::ConvOp op, KernelBuilder &kb, ArrayRef<TileExtra> extras)
      : op(op), kb(kb), signedDots(ConvShape(op).kind == TileKind::S8 && flipsBytes(packingOf(op))),
        g(geometryOf(op, targetOf(kb), signedDots)),
        loops(kb, op, g, extras, g.groupOffsets(groupsOfVectorRow(g)), [this](TileShape &shape, SegmentIndex) {
          shape.kind = signedDots && g.input.copied ? TileKind::U8 : shape.kind;
        }) {}

  void emit();

private:
  void copyRows(const ConvPart &part, Value firstRow);

  device::ConvOp op;
  KernelBuilder &kb;
  const bool signedDots; ///< signed A is multiplied as A + 128
  const ConvGeometry g;
  ConvLoops loops;
};

/// Copies the input rows of |part| to scratch with their padding.
void IntegerConv::copyRows(const ConvPart &part, Value firstRow) {
  auto copyPositions = [&](Value from, Value to, Value count) {
    Value bytes = kb.mul(count, g.input.positionBytes);
    if (signedDots) {
      return flipBytes(kb, from, to, bytes);
    }
    LLVM::MemcpyOp::create(kb.b, to, from, bytes, /*isVolatile=*/false);
  };
  copyPaddedRows(kb, g, part, firstRow, copyPositions, [&](Value to, Dim bytes) {
    fillBytes(kb, to, bytes, static_cast<int8_t>(op.getPadValue() ^ (signedDots ? 0x80 : 0)));
  });
}

void IntegerConv::emit() {
  kb.setScratchBytes(g.scratchBytes());
  kb.forTiles(g.launchTiles(), [&](Value tile) {
    ConvPart part = loops.partOf(tile);
    if (g.input.copied) {
      loops.emitCopied(part, [&](Value firstRow) { copyRows(part, firstRow); });
    } else {
      loops.emitInPlace(part);
    }
  });
}

} // namespace

void emitIntegerConv(device::ConvOp op, KernelBuilder &kb, ArrayRef<TileExtra> extras) {
  IntegerConv(op, kb, extras).emit();
}

} // namespace tessera::x86
