//===- VerifyPacking.cpp - Verifies packed weights against their op -------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/IR/PackedWeights.h"

#include "device_dialect/IR/DeviceBlockOps.h"
#include "device_dialect/IR/Layout.h"
#include "mlir/IR/TypeUtilities.h"
#include "top_dialect/IR/Sizes.h"

using namespace mlir;

namespace tessera::x86 {
namespace {

/// Begins an error at |op| that names its packing.
InFlightDiagnostic reject(Operation *op, PackingAttr packing) {
  return op->emitOpError() << "has weights packed as " << packing << ", but ";
}

/// Returns true if a kernel exists that multiplies elements of type |x| by what a K step of |packing| holds.
bool fitsElement(PackingAttr packing, Type x) {
  PackedStep step = packing.getStep();
  if (step == PackedStep::bf16x2) {
    return x.isBF16();
  }
  if (isa<FloatType>(x)) {
    return isFloatStep(step) || isScaledStep(step);
  }
  if (x.isInteger(8)) {
    bool values = packing.getOrder() == PackedOrder::depthwise && step == PackedStep::f32;
    return values || step == PackedStep::i8x4 || step == PackedStep::i16x4;
  }
  // An i16 input takes both windows of an AMX tile: one has the low bytes, the other one the high bytes.
  bool halves = step == PackedStep::i8x4 && packing.getChunk() && packing.getOrder() != PackedOrder::pixels &&
                packing.getRows() <= kAmxTileRows / 2;
  return x.isSignlessInteger(16) && (step == PackedStep::i16x2 || halves);
}

bool allOnes(ArrayRef<int64_t> values) {
  return llvm::all_of(values, [](int64_t value) { return value == 1; });
}

LogicalResult verifyConv(device::ConvOp conv, PackingAttr packing) {
  ArrayRef<int64_t> shape = packing.getShape();
  if (packing.getOrder() == PackedOrder::matrix || shape.size() != 4) {
    return reject(conv, packing) << "is a convolution, which requires 4 dims and an order other than matrix";
  }
  bool rows = packing.getOrder() == PackedOrder::taps || packing.getOrder() == PackedOrder::apart ||
              packing.getOrder() == PackedOrder::pixels;
  if (rows == device::isBlocked(conv.getX().getType())) {
    return reject(conv, packing) << "reads " << conv.getX().getType() << ", allowed "
                                 << (rows ? "a row-major tensor" : "channel blocks");
  }
  int64_t dilation = conv.getDilations().back();
  if (rows && (packing.getOrder() == PackedOrder::apart) != (dilation != 1)) {
    return reject(conv, packing) << "has column dilation " << dilation
                                 << "; orders taps and pixels require 1, order apart more than 1";
  }
  ConvWeightDims dims = weightDims(conv);
  if (int64_t chunk = packing.getChunk(); chunk && dilation != 1) {
    int64_t bytes = 4 / stepElements(packing.getStep());
    int64_t tap = paddedDepth(packing.getOrder(), dims.groupC, bytes, dims.kw, chunk);
    if (tap % chunk != 0) {
      return reject(conv, packing) << "has column dilation " << dilation << ", and the " << tap
                                   << " bytes of one tap are not a multiple of the chunk";
    }
  }
  if (packing.getOrder() == PackedOrder::winograd && (dims.kh != 3 || dims.kw != 3 || dims.groups != 1 ||
                                                      !allOnes(conv.getStrides()) || !allOnes(conv.getDilations()))) {
    return reject(conv, packing) << "is not a dense 3x3 convolution of stride 1";
  }
  bool windows = packing.getOrder() == PackedOrder::windows;
  bool depthwise = windows || packing.getOrder() == PackedOrder::depthwise;
  if (depthwise && (dims.groupC != 1 || dims.oc != dims.groups)) {
    return reject(conv, packing) << "has " << dims.groups << " groups of " << dims.groupC << " to "
                                 << dims.oc / dims.groups << " channels, allowed 1 to 1";
  }
  if (windows && !fitsWindows(conv.getStrides().back(), dilation)) {
    return reject(conv, packing) << "has column stride " << conv.getStrides().back() << " and dilation " << dilation
                                 << ", which the order windows does not support";
  }
  return success();
}

LogicalResult verifyRecurrent(device::RecurrentOp op, PackingAttr packing) {
  int64_t hidden = op.getHiddenSize();
  int64_t dims[] = {op.getNumDirections(), op.getNumGates() * hidden, hidden};
  if (!sameSizes(packing.getShape(), dims)) {
    return reject(op, packing) << "has weights of dims " << dims[0] << "x" << dims[1] << "x" << dims[2];
  }
  if (!isFloatStep(packing.getStep()) || packing.getScaleGroup()) {
    return reject(op, packing) << "its hidden state requires float weights without a scale_group";
  }
  return success();
}

} // namespace

LogicalResult PackingAttr::verifyWeights(Operation *op, RankedTensorType weights) const {
  auto conv = dyn_cast<device::ConvOp>(op);
  if (conv && failed(verifyConv(conv, *this))) {
    return failure();
  }
  if (!conv && getOrder() != PackedOrder::matrix) {
    return reject(op, *this) << "is not a convolution, so it requires the order matrix";
  }
  auto recurrent = dyn_cast<device::RecurrentOp>(op);
  if (recurrent && failed(verifyRecurrent(recurrent, *this))) {
    return failure();
  }
  Type x = getElementTypeOrSelf(op->getOperand(0).getType());
  if (!fitsElement(*this, x)) {
    return reject(op, *this) << "its input has element type " << x;
  }
  RankedTensorType expected = packedType(op, *this);
  if (weights != expected) {
    return reject(op, *this) << "they are " << weights << ", expected " << expected;
  }
  return success();
}

LogicalResult BlockPackingAttr::verifyWeights(Operation *op, RankedTensorType weights) const {
  auto matmul = dyn_cast<device::BlockMatMulOp>(op);
  if (!matmul || int64_t(matmul.getBlock()) != getBlock()) {
    return op->emitOpError() << "has weights packed as " << *this << ", but is not a block_matmul with such blocks";
  }
  auto expected = RankedTensorType::get({bytes()}, IntegerType::get(getContext(), 8));
  if (weights != expected) {
    return op->emitOpError() << "has weights packed as " << *this << ", but they are " << weights << ", expected "
                             << expected;
  }
  return success();
}

} // namespace tessera::x86
