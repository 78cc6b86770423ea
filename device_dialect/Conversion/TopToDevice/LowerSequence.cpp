//===- LowerSequence.cpp - Recurrent ops ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/Conversion/TopToDevice/Lowering.h"
#include "top_dialect/IR/TopShapeOps.h"

using namespace mlir;

namespace tessera::device {
namespace {

struct LowerRnnOp : OpRewritePattern<top::RnnOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(top::RnnOp op, PatternRewriter &rewriter) const override {
    Lowering lower(rewriter, op);
    auto recurrent = RecurrentOp::create(
        rewriter, lower.loc, op.getY().getType(), op.getYH().getType(), op.getYC().getType(), op.getX(), op.getR(),
        op.getW(), op.getBias(), op.getSequenceLens(), op.getInitialH(), op.getInitialC(), op.getPeephole(),
        rewriter.getStringAttr(top::stringifyRnnKind(op.getKind())),
        rewriter.getStringAttr(top::stringifyRnnDirection(op.getDirection())), op.getHiddenSizeAttr(),
        op.getActivations(), op.getClipAttr(), op.getLinearBeforeResetAttr(), PackingInterface());
    return lower.replace(recurrent.getResults());
  }
};

} // namespace

void populateSequencePatterns(RewritePatternSet &patterns) { patterns.add<LowerRnnOp>(patterns.getContext()); }

} // namespace tessera::device
