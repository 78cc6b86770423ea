//===- MicroConv.cpp - Selects the micro-kernel of a convolution ----------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/Micro.h"
#include "codegen/X86/MicroShape.h"

#include "codegen/Kernels/KernelInterface.h"
#include "top_dialect/IR/Sizes.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace tessera::x86 {

/// Returns true if the kernel of |packing| and |shape| accepts symbolic heights and widths.
static bool acceptsOpenPlanes(const ConvShape &shape, PackingAttr packing) {
  bool dilatedWindows = packing.getOrder() == PackedOrder::windows && shape.dilationW != 1;
  return !dilatedWindows && !packing.getChunk();
}

LogicalResult emitMicroConv(device::ConvOp op, KernelBuilder &kb) {
  unsigned unsupported = 0;
  auto y = cast<RankedTensorType>(op.getY().getType());
  std::optional<SmallVector<TileExtra>> extras = classifyExtras(op, op.getExtras(), y, unsupported);
  if (!extras) {
    return op.emitOpError() << "packed convolution cannot read epilogue operand " << unsupported << " of type "
                            << op.getExtras()[unsupported].getType()
                            << "; allowed: the result's type, one value per channel, one value";
  }
  if (failed(checkPacking(op, targetOf(kb)))) {
    return failure();
  }
  ConvShape shape(op);
  if (shape.hasOpenPlanes() && !acceptsOpenPlanes(shape, packingOf(op))) {
    return op.emitError() << kernels::kOpenSizesText;
  }
  switch (packingOf(op).getOrder()) {
  case PackedOrder::winograd:
    return emitWinograd(op, kb, *extras);
  case PackedOrder::windows:
    return emitDepthwise8(op, kb, *extras);
  case PackedOrder::depthwise:
    return tileKindOf(getElementTypeOrSelf(op.getX().getType())) == TileKind::F32 ? emitDepthwise(op, kb, *extras)
                                                                                  : emitDepthwise8(op, kb, *extras);
  default:
    break;
  }
  TileKind kind = shape.kind;
  auto emitDirect = packingOf(op).getChunk() ? emitAmxConv : sumsFloats(kind) ? emitFloatConv : emitIntegerConv;
  emitDirect(op, kb, *extras);
  return success();
}

} // namespace tessera::x86
