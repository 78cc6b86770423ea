//===- TopToDevice.cpp - The conversion pass ------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/Conversion/TopToDevice/TopToDevice.h"
#include "device_dialect/Conversion/TopToDevice/Constraints.h"
#include "device_dialect/Conversion/TopToDevice/LowerCustom.h"
#include "device_dialect/Conversion/TopToDevice/Quantized.h"
#include "device_dialect/IR/Exact.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Rewrite/FrozenRewritePatternSet.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/Sizes.h"
#include "top_dialect/IR/TopOps.h"

using namespace mlir;

namespace tessera::device {

#define GEN_PASS_DEF_CONVERTTOPTODEVICEPASS
#include "device_dialect/Conversion/TopToDevice/Passes.h.inc"

namespace {

/// Replaces ops whose results are empty by empty constants.
struct EmptyResults : RewritePattern {
  explicit EmptyResults(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), 10, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!isa_and_present<top::TopDialect>(op->getDialect()) || isa<top::ConstantOp, top::WeightOp>(op) ||
        op->getNumResults() == 0) {
      return failure();
    }
    SmallVector<Value> constants;
    for (Type type : op->getResultTypes()) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      if (!tensor || knownNumElements(tensor) != 0) {
        return failure();
      }
      constants.push_back(top::createConstant(rewriter, op->getLoc(), tensor, ArrayRef<char>(), "empty"));
    }
    rewriter.replaceOp(op, constants);
    return success();
  }
};

struct ConvertTopToDevice : impl::ConvertTopToDevicePassBase<ConvertTopToDevice> {
  using ConvertTopToDevicePassBase::ConvertTopToDevicePassBase;

  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet set(context);
    set.add<EmptyResults>(context);
    populateElementwisePatterns(set);
    populateConvPatterns(set);
    populateCustomPatterns(set);
    populatePoolPatterns(set);
    populateMatMulPatterns(set);
    populateReducePatterns(set);
    populateNormPatterns(set);
    populateMovePatterns(set);
    populateIndexPatterns(set);
    populateScatterPatterns(set);
    populateResizePatterns(set);
    populateSequencePatterns(set);
    patterns = FrozenRewritePatternSet(std::move(set));
    return success();
  }

  void runOnOperation() override {
    if (failed(checkLowerable(getOperation()))) {
      return signalPassFailure();
    }
    getOperation()->walk([&](Operation *op) { numLowered += needsLowering(op); });
    std::optional<Requantisation> how = bmodel::numerics::parseRequantisation(requantisation);
    if (!how) {
      getOperation()->emitError() << "requantise is '" << requantisation << "', allowed: float, fixed, tflite";
      return signalPassFailure();
    }
    if (failed(lowerQuantised(getOperation(), *how))) {
      return signalPassFailure();
    }
    walkAndApplyPatterns(getOperation(), patterns);
    recordExceptions(getOperation());
    getOperation()->walk([&](Operation *op) {
      if (needsLowering(op)) {
        op->emitError() << "'" << op->getName() << "' of node '" << top::getDisplayName(op->getLoc())
                        << "' met every constraint but cannot be lowered; this is a bug of the compiler, "
                           "please report it with the model";
        signalPassFailure();
      }
    });
  }

private:
  static bool needsLowering(Operation *op) {
    return isa_and_present<top::TopDialect>(op->getDialect()) && !isa<top::ConstantOp, top::WeightOp, top::BindOp>(op);
  }

  FrozenRewritePatternSet patterns;
};

} // namespace
} // namespace tessera::device
