//===- VerifyPhases.cpp - What holds between the phases on x86 ------------===//
// SPDX-License-Identifier: Apache-2.0
//
// One pass per phase, each the contract that the later ones and the kernels rely on, stated again as simply as
// possible.
//===----------------------------------------------------------------------===//
#include "codegen/X86/Transforms/ConvAlgorithm.h"
#include "codegen/X86/Transforms/Passes.h"
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Layout.h"
#include "top_dialect/IR/Constants.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::x86 {
#define GEN_PASS_DEF_VERIFYKERNELLAYOUTSPASS
#define GEN_PASS_DEF_VERIFYPACKINGPASS
#include "codegen/X86/Transforms/Passes.h.inc"
} // namespace tessera::x86

using namespace mlir;

namespace tessera::x86 {
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
// After x86-assign-layouts
//===----------------------------------------------------------------------===//

LogicalResult checkConvLayout(device::ConvOp conv) {
  device::ConvAlgorithm algorithm = conv.getAlgorithm();
  bool fast = algorithm != device::ConvAlgorithm::generic;
  if (fast != device::isBlocked(conv.getY().getType())) {
    return conv.emitError() << "algorithm '" << stringifyConvAlgorithm(algorithm) << "' and result "
                            << conv.getY().getType()
                            << ": exactly the algorithms other than generic write channel blocks";
  }
  bool readsRows = algorithm == device::ConvAlgorithm::direct || !fast;
  if (!device::isBlocked(conv.getX().getType()) && !readsRows) {
    return conv.emitError() << "algorithm '" << stringifyConvAlgorithm(algorithm)
                            << "' reads channel blocks, the operand is " << conv.getX().getType();
  }
  return success();
}

LogicalResult checkKernelLayout(Operation &op) {
  for (Value value : op.getResults()) {
    device::BlockedAttr layout = device::getBlockedLayout(value.getType());
    if (layout && layout.getBlock() != kChannelBlock) {
      return op.emitError() << "channel blocks of " << layout.getBlock() << ", allowed " << kChannelBlock;
    }
  }
  auto conv = dyn_cast<device::ConvOp>(op);
  return conv ? checkConvLayout(conv) : success();
}

struct VerifyKernelLayouts : impl::VerifyKernelLayoutsPassBase<VerifyKernelLayouts> {
  void runOnOperation() override {
    if (!getOperation().isExternal() && failed(checkOps(getOperation(), checkKernelLayout))) {
      signalPassFailure();
    }
  }
};

//===----------------------------------------------------------------------===//
// After x86-pack-weights
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
  if (auto conv = dyn_cast<device::ConvOp>(op)) {
    bool fast = conv.getAlgorithm() != device::ConvAlgorithm::generic;
    if (fast != conv.getPacked()) {
      return op.emitError() << "algorithm '" << device::stringifyConvAlgorithm(conv.getAlgorithm())
                            << "' needs weights that are " << (fast ? "packed" : "not packed");
    }
    return fast ? checkPackedWeights(op, conv.getW(), conv.getPanelBlocks(), packedWeightElements(conv)) : success();
  }
  auto matmul = dyn_cast<device::MatMulOp>(op);
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
} // namespace tessera::x86
