//===- LowerCustom.cpp - Lowering of custom operators ---------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/Conversion/TopToDevice/LowerCustom.h"
#include "device_dialect/Conversion/TopToDevice/Lowering.h"
#include "device_dialect/IR/DeviceCustomOps.h"
#include "top_dialect/IR/TopCustomOps.h"

using namespace mlir;

namespace tessera::device {
namespace {

struct LowerCustomOp : OpRewritePattern<top::CustomOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(top::CustomOp op, PatternRewriter &rewriter) const override {
    Lowering lower(rewriter, op);
    auto custom = CustomOp::create(rewriter, lower.loc, op.getResultTypes(), op.getInputs(), op.getOpDomainAttr(),
                                   op.getOpNameAttr(), op.getOpVersionAttr(), op.getOpAttributesAttr());
    return lower.replace(custom.getResults());
  }
};

} // namespace

void populateCustomPatterns(RewritePatternSet &patterns) { patterns.add<LowerCustomOp>(patterns.getContext()); }

} // namespace tessera::device
