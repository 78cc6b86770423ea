//===- VerifyPhases.cpp - What holds between the phases -------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// One pass per phase, each the contract that the later ones and the kernels rely on, stated again as simply as
// possible.
//===----------------------------------------------------------------------===//
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Layout.h"
#include "device_dialect/Transforms/ConvAlgorithm.h"
#include "device_dialect/Transforms/Passes.h"
#include "top_dialect/IR/Constants.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::device {
#define GEN_PASS_DEF_VERIFYLOWEREDPASS
#define GEN_PASS_DEF_VERIFYLAYOUTSPASS
#define GEN_PASS_DEF_VERIFYPACKINGPASS
#include "device_dialect/Transforms/Passes.h.inc"
} // namespace tessera::device

using namespace mlir;

namespace tessera::device {
namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Calls |check| on the ops of |function| outside of scalar regions; whether all pass.
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
  if (!constant && !isa<func::ReturnOp>(op) && !isa_and_present<DeviceDialect>(op.getDialect())) {
    return op.emitError() << "'" << op.getName() << "' is neither a device op nor a constant";
  }
  for (Type type : op.getResultTypes()) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape()) {
      return op.emitError() << "result of type " << type << " is no tensor of static shape";
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

LogicalResult sameLayout(Operation &op, Value a, Value b) {
  if (getBlockedLayout(a.getType()) == getBlockedLayout(b.getType())) {
    return success();
  }
  return op.emitError() << "reads " << a.getType() << " beside a result " << b.getType() << " in another layout";
}

/// Operands with an element for each of the result's lie as it does. Constants may stay as they are.
LogicalResult sameLayoutAsResult(Operation &op, OperandRange operands) {
  for (Value operand : operands) {
    bool full =
        typeOf(operand).getShape() == typeOf(op.getResult(0)).getShape() && typeOf(operand).getNumElements() > 1;
    if (full && !top::isConstant(operand) && failed(sameLayout(op, operand, op.getResult(0)))) {
      return failure();
    }
  }
  return success();
}

LogicalResult checkConvLayout(ConvOp conv) {
  bool fast = conv.getAlgorithm() != ConvAlgorithm::generic;
  if (fast != isBlocked(conv.getY().getType())) {
    return conv.emitError() << "algorithm '" << stringifyConvAlgorithm(conv.getAlgorithm()) << "' and result "
                            << conv.getY().getType()
                            << ": exactly the algorithms other than generic write channel blocks";
  }
  bool readsRows = conv.getAlgorithm() == ConvAlgorithm::direct || !fast;
  if (!isBlocked(conv.getX().getType()) && !readsRows) {
    return conv.emitError() << "algorithm '" << stringifyConvAlgorithm(conv.getAlgorithm())
                            << "' reads channel blocks, the operand is " << conv.getX().getType();
  }
  return sameLayoutAsResult(*conv, conv.getExtras());
}

LogicalResult checkRowMajor(Operation &op) {
  for (Value value : op.getOperands()) {
    if (isBlocked(value.getType())) {
      return op.emitError() << "reads " << value.getType() << ", which it can only row-major";
    }
  }
  for (Value value : op.getResults()) {
    if (isBlocked(value.getType())) {
      return op.emitError() << "writes " << value.getType() << ", which it can only row-major";
    }
  }
  return success();
}

LogicalResult checkLayout(Operation &op) {
  for (Value value : op.getResults()) {
    BlockedAttr layout = getBlockedLayout(value.getType());
    if (layout && layout.getBlock() != kChannelBlock) {
      return op.emitError() << "channel blocks of " << layout.getBlock() << ", allowed " << kChannelBlock;
    }
  }
  if (auto conv = dyn_cast<ConvOp>(op)) {
    return checkConvLayout(conv);
  }
  if (auto pool = dyn_cast<PoolOp>(op)) {
    return success(succeeded(sameLayout(op, pool.getX(), pool.getY())) &&
                   succeeded(sameLayoutAsResult(op, pool.getExtras())));
  }
  if (auto lut = dyn_cast<LutOp>(op)) {
    return sameLayout(op, lut.getX(), lut.getY());
  }
  if (auto resize = dyn_cast<ResizeOp>(op)) {
    return sameLayout(op, resize.getX(), resize.getY());
  }
  if (auto reduce = dyn_cast<ReduceOp>(op)) {
    return sameLayoutAsResult(op, reduce.getExtras());
  }
  if (auto map = dyn_cast<MapOp>(op)) {
    return sameLayoutAsResult(op, map.getInputs());
  }
  return isa<CopyOp, ReshapeOp>(op) ? success() : checkRowMajor(op); // the return too: results are row-major
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

//===----------------------------------------------------------------------===//
// After packing
//===----------------------------------------------------------------------===//

LogicalResult checkPackedWeights(Operation &op, Value weights, std::optional<int64_t> panelBlocks,
                                 ArrayRef<int64_t> allowed) {
  if (!top::isConstant(weights) || !panelBlocks || *panelBlocks < 1) {
    return op.emitError("packed weights are constants and come with panelBlocks");
  }
  if (!llvm::is_contained(allowed, typeOf(weights).getNumElements())) {
    return op.emitError() << "packed weights have " << typeOf(weights).getNumElements()
                          << " elements, their order needs " << allowed.front();
  }
  return success();
}

LogicalResult checkPacking(Operation &op) {
  if (auto conv = dyn_cast<ConvOp>(op)) {
    bool fast = conv.getAlgorithm() != ConvAlgorithm::generic;
    if (fast != conv.getPacked()) {
      return op.emitError() << "algorithm '" << stringifyConvAlgorithm(conv.getAlgorithm())
                            << "' needs weights that are " << (fast ? "packed" : "not packed");
    }
    return fast ? checkPackedWeights(op, conv.getW(), conv.getPanelBlocks(), packedWeightElements(conv)) : success();
  }
  auto matmul = dyn_cast<MatMulOp>(op);
  if (!matmul || !matmul.getPacked()) {
    return success();
  }
  ArrayRef<int64_t> dims = *matmul.getWeightShape();
  int64_t k = dims[dims.size() - 2], n = dims.back();
  if (matmul.getTransB()) {
    std::swap(k, n);
  }
  if (hasIntegerWeights(matmul)) {
    return checkPackedWeights(op, matmul.getB(), matmul.getPanelBlocks(), {integerPanels(matmul).bytes()});
  }
  return checkPackedWeights(op, matmul.getB(), matmul.getPanelBlocks(),
                            packedMatMulCounts(typeOf(matmul.getA()).getElementType(), k, n));
}

struct VerifyPacking : impl::VerifyPackingPassBase<VerifyPacking> {
  void runOnOperation() override {
    if (!getOperation().isExternal() && failed(checkOps(getOperation(), checkPacking))) {
      signalPassFailure();
    }
  }
};

} // namespace
} // namespace tessera::device
