//===- LayoutModels.cpp - Layouts that ops can read and write -------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Verify.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/Sizes.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::device;

/// Returns true if an operand has an element for each element of the result and is not constant; constants are read
/// row-major.
static bool isElementwise(OpOperand &operand, Value result) {
  return sameSizes(operand.get(), result) && !top::isConstant(operand.get());
}

/// Returns the layout for an op that iterates over operand 0, and over operands of the result's shape, together with
/// its result; smaller operands broadcast.
static OperandLayout besideResult(OpOperand &operand, Value result, bool blockedResult) {
  if (!blockedResult) {
    return OperandLayout::RowMajor;
  }
  bool walked = operand.getOperandNumber() == 0 || isElementwise(operand, result);
  return walked ? OperandLayout::AsResult : OperandLayout::Any;
}

/// Returns true if the axes do not split the channels of a block.
static bool isSpatial(ArrayRef<int64_t> axes) {
  return llvm::all_of(axes, [](int64_t axis) { return axis >= 2; });
}

//===----------------------------------------------------------------------===//
// conv: the kernel that a chip chooses may restrict this further
//===----------------------------------------------------------------------===//

bool ConvOp::canWriteBlocks() { return true; }
bool ConvOp::carriesLayout(OpOperand &) { return false; }
OperandLayout ConvOp::getOperandLayout(OpOperand &operand, bool blockedResult) {
  if (!blockedResult) {
    return OperandLayout::RowMajor;
  }
  if (operand.getOperandNumber() == 0) {
    return OperandLayout::Any;
  }
  if (llvm::none_of(getExtrasMutable(), [&](OpOperand &extra) { return &extra == &operand; })) {
    return OperandLayout::RowMajor;
  }
  RankedTensorType extra = typeOf(operand.get());
  bool full = sameSizes(extra, getY()) && knownNumElements(extra) != 1;
  return full ? OperandLayout::AsResult : OperandLayout::Any;
}

//===----------------------------------------------------------------------===//
// pool, lut, reduce, resize, map
//===----------------------------------------------------------------------===//

bool PoolOp::canWriteBlocks() { return true; }
bool PoolOp::carriesLayout(OpOperand &operand) { return operand.getOperandNumber() == 0; }
OperandLayout PoolOp::getOperandLayout(OpOperand &operand, bool blockedResult) {
  return besideResult(operand, getY(), blockedResult);
}

bool LutOp::canWriteBlocks() { return true; }
bool LutOp::carriesLayout(OpOperand &operand) { return operand.getOperandNumber() == 0; }
OperandLayout LutOp::getOperandLayout(OpOperand &operand, bool blockedResult) {
  return besideResult(operand, getY(), blockedResult);
}

bool ReduceOp::canWriteBlocks() { return isSpatial(getAxes()); }
bool ReduceOp::carriesLayout(OpOperand &operand) { return operand.getOperandNumber() == 0; }
OperandLayout ReduceOp::getOperandLayout(OpOperand &operand, bool blockedResult) {
  return besideResult(operand, getY(), blockedResult);
}

bool ResizeOp::canWriteBlocks() { return isSpatial(getAxes()); }
bool ResizeOp::carriesLayout(OpOperand &operand) { return operand.getOperandNumber() == 0; }
OperandLayout ResizeOp::getOperandLayout(OpOperand &operand, bool blockedResult) {
  return besideResult(operand, getY(), blockedResult);
}

bool MapOp::canWriteBlocks() { return true; }
bool MapOp::carriesLayout(OpOperand &operand) { return isElementwise(operand, getY()); }
OperandLayout MapOp::getOperandLayout(OpOperand &operand, bool blockedResult) {
  if (!blockedResult) {
    return OperandLayout::RowMajor;
  }
  return isElementwise(operand, getY()) ? OperandLayout::AsResult : OperandLayout::Any;
}

//===----------------------------------------------------------------------===//
// copy: reads every layout
//===----------------------------------------------------------------------===//

/// Slices, pads and concatenations keep the order of dims.
bool CopyOp::canWriteBlocks() {
  return llvm::all_of(getPieces().getAsRange<PieceAttr>(), [](PieceAttr piece) {
    return llvm::all_of(llvm::enumerate(piece.getSrcDims()),
                        [](auto dim) { return dim.value() == static_cast<int64_t>(dim.index()); });
  });
}
bool CopyOp::carriesLayout(OpOperand &) { return true; }
OperandLayout CopyOp::getOperandLayout(OpOperand &, bool) { return OperandLayout::Any; }
