//===- LowerElementwise.cpp - Lowering elementwise ops to maps ------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/Conversion/TopToDevice/Lowering.h"
#include "top_dialect/IR/TopInterfaces.h"

using namespace mlir;

namespace tessera::device {
namespace {

/// Lowers every elementwise op: ScalarInterface emits the computation of each.
struct LowerScalarOp : OpInterfaceRewritePattern<top::ScalarInterface> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;

  LogicalResult matchAndRewrite(top::ScalarInterface op, PatternRewriter &rewriter) const override {
    Lowering lower(rewriter, op);
    auto result = cast<RankedTensorType>(op->getResult(0).getType());
    return lower.replace(
        lower.map(op->getOperands(), result, [&](OpBuilder &builder, Location loc, ValueRange scalars) {
          return op.emitScalar(builder, loc, scalars);
        }));
  }
};

} // namespace

void populateElementwisePatterns(RewritePatternSet &patterns) { patterns.add<LowerScalarOp>(patterns.getContext()); }

} // namespace tessera::device
