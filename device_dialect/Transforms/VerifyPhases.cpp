//===- VerifyPhases.cpp - Contracts between the phases --------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// Each pass states, as simply as possible, the contract of one phase on which later phases rely.
//===----------------------------------------------------------------------===//
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Layout.h"
#include "device_dialect/Transforms/Passes.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/TopShapeOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::device {
#define GEN_PASS_DEF_VERIFYLOWEREDPASS
#define GEN_PASS_DEF_VERIFYLAYOUTSPASS
#include "device_dialect/Transforms/Passes.h.inc"
} // namespace tessera::device

using namespace mlir;

namespace tessera::device {
namespace {

/// Calls |check| on the ops of |function| outside of scalar regions; succeeds if all pass.
LogicalResult checkOps(func::FuncOp function, function_ref<LogicalResult(Operation &)> check) {
  bool good = true;
  for (Operation &op : function.getBody().getOps()) {
    good &= succeeded(check(op));
  }
  return success(good);
}

//===----------------------------------------------------------------------===//
// After the conversion from Top
//===----------------------------------------------------------------------===//

LogicalResult checkLowered(Operation &op) {
  bool constant = op.getNumResults() == 1 && top::isConstant(op.getResult(0));
  if (!constant && !isa<func::ReturnOp, top::BindOp>(op) && !isa_and_present<DeviceDialect>(op.getDialect())) {
    return op.emitError() << "'" << op.getName() << "' is neither a device op nor a constant";
  }
  for (Type type : op.getResultTypes()) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !Shape(tensor).isDetermined()) {
      return op.emitError() << "result of type " << type << " is not a tensor of known shape";
    }
  }
  return success();
}

struct VerifyLowered : impl::VerifyLoweredPassBase<VerifyLowered> {
  void runOnOperation() override {
    if (!getOperation().isExternal() && failed(checkOps(getOperation(), checkLowered))) {
      signalPassFailure();
    }
  }
};

//===----------------------------------------------------------------------===//
// After the choice of layouts
//===----------------------------------------------------------------------===//

LogicalResult checkRowMajor(Operation &op) {
  for (Value value : op.getOperands()) {
    if (isBlocked(value.getType())) {
      return op.emitError() << "reads " << value.getType() << ", but supports only row-major tensors";
    }
  }
  for (Value value : op.getResults()) {
    if (isBlocked(value.getType())) {
      return op.emitError() << "writes " << value.getType() << ", but supports only row-major tensors";
    }
  }
  return success();
}

LogicalResult checkOperand(Operation &op, OpOperand &operand, OperandLayout layout) {
  Type type = operand.get().getType(), result = op.getResult(0).getType();
  if (layout == OperandLayout::AsResult && !hasSameLayout(type, result)) {
    return op.emitError() << "reads " << type << " beside a result " << result << " in another layout";
  }
  if (layout == OperandLayout::RowMajor && isBlocked(type)) {
    return op.emitError() << "reads " << type << " beside a result " << result << ", but supports only row-major there";
  }
  return success();
}

LogicalResult checkLayout(Operation &op) {
  if (isa<ReshapeOp>(op)) {
    return success(); // a view of the same bytes in any layout, which its verifier checks
  }
  auto layouts = dyn_cast<LayoutInterface>(op);
  bool blockedResult = op.getNumResults() == 1 && isBlocked(op.getResult(0).getType());
  if (!layouts || (blockedResult && !layouts.canWriteBlocks())) {
    return checkRowMajor(op); // includes the return: results are row-major
  }
  for (OpOperand &operand : op.getOpOperands()) {
    if (failed(checkOperand(op, operand, layouts.getOperandLayout(operand, blockedResult)))) {
      return failure();
    }
  }
  return success();
}

struct VerifyLayouts : impl::VerifyLayoutsPassBase<VerifyLayouts> {
  void runOnOperation() override {
    for (Type type : getOperation().getArgumentTypes()) {
      if (isBlocked(type)) {
        getOperation().emitError() << "an argument is " << type << ", allowed row-major";
        return signalPassFailure();
      }
    }
    if (!getOperation().isExternal() && failed(checkOps(getOperation(), checkLayout))) {
      signalPassFailure();
    }
  }
};

} // namespace
} // namespace tessera::device
