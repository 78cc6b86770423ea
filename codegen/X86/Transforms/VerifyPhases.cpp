//===- VerifyPhases.cpp - Verifies the IR between phases on x86 -----------===//
// SPDX-License-Identifier: Apache-2.0
//
// There is one pass per phase. Each verifies the contract that later phases and the kernels rely on, as simply as
// possible and independently of the pass that establishes it.
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

/// Calls |check| on the ops of |function| outside scalar regions; succeeds if all calls do.
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
  AlgorithmAttr algorithm = algorithmOf(conv);
  if (static_cast<bool>(algorithm) != device::isBlocked(conv.getY().getType())) {
    return conv.emitError() << (algorithm ? "has" : "does not have") << " an algorithm, but its result is "
                            << conv.getY().getType()
                            << "; convolutions write channel blocks if and only if they have an algorithm";
  }
  bool readsRows = !algorithm || algorithm.getValue() == ConvAlgorithm::direct;
  if (!device::isBlocked(conv.getX().getType()) && !readsRows) {
    return conv.emitError() << "algorithm '" << stringifyConvAlgorithm(algorithm.getValue())
                            << "' reads channel blocks, but the operand is " << conv.getX().getType();
  }
  return success();
}

LogicalResult checkKernelLayout(Operation &op) {
  for (Value value : op.getResults()) {
    device::BlockedAttr layout = device::getBlockedLayout(value.getType());
    if (layout && layout.getBlock() != kBlock) {
      return op.emitError() << "channel blocks of " << layout.getBlock() << ", allowed " << kBlock;
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

LogicalResult checkPacking(Operation &op) {
  PackingAttr packing = packingOf(&op);
  if (packing && !top::isConstant(op.getOperand(1))) {
    return op.emitError("packed weights are not a constant");
  }
  auto conv = dyn_cast<device::ConvOp>(op);
  if (!conv) {
    return success();
  }
  if (algorithmOf(conv)) {
    return op.emitError("has an algorithm, but its weights are not packed");
  }
  if (static_cast<bool>(packing) != device::isBlocked(conv.getY().getType())) {
    return op.emitError() << "weights are " << (packing ? "packed" : "not packed") << ", but the result is "
                          << conv.getY().getType()
                          << "; convolutions write channel blocks if and only if their weights are packed";
  }
  return success();
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
