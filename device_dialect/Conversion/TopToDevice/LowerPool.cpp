//===- LowerPool.cpp - Pooling --------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/Conversion/TopToDevice/Lowering.h"
#include "top_dialect/IR/TopConvOps.h"

using namespace mlir;

namespace tessera::device {
namespace {

using Ints = SmallVector<int64_t>;

/// Lowers max and average pooling; the result dims already reflect the ceil mode.
template <typename TopOp>
struct LowerPoolOp : OpRewritePattern<TopOp> {
  using OpRewritePattern<TopOp>::OpRewritePattern;

  LogicalResult matchAndRewrite(TopOp op, PatternRewriter &rewriter) const override {
    Lowering lower(rewriter, op);
    Ints kernel(op.getKernel()), strides(op.getStrides()), dilations(op.getDilations()), pads(op.getPads());
    SmallVector<Dim> xDims = Lowering::shape(op.getX()).dims(), yDims = Lowering::shape(op.getY()).dims();
    if (kernel.size() == 1) {
      // Treat 1-D pooling as 2-D pooling over rows of height 1.
      for (Ints *list : {&kernel, &strides, &dilations}) {
        list->insert(list->begin(), 1);
      }
      pads = {0, pads[0], 0, pads[1]};
      xDims.insert(xDims.begin() + 2, 1);
      yDims.insert(yDims.begin() + 2, 1);
    }
    bool countIncludePad = false;
    if constexpr (std::is_same_v<TopOp, top::AvgPoolOp>) {
      countIncludePad = op.getCountIncludePad();
    }
    constexpr PoolKind kind = std::is_same_v<TopOp, top::MaxPoolOp> ? PoolKind::max : PoolKind::avg;
    auto pool = PoolOp::create(
        rewriter, lower.loc, tensorType(yDims, Lowering::element(op.getY())), lower.reshape(op.getX(), xDims),
        ValueRange(), kind, rewriter.getDenseI64ArrayAttr(kernel), rewriter.getDenseI64ArrayAttr(strides),
        rewriter.getDenseI64ArrayAttr(pads), rewriter.getDenseI64ArrayAttr(dilations), countIncludePad);
    lower.setEpilogue(pool, nullptr);
    return lower.replace(lower.reshape(pool.getY(), Lowering::shape(op.getY())));
  }
};

} // namespace

void populatePoolPatterns(RewritePatternSet &patterns) {
  patterns.add<LowerPoolOp<top::MaxPoolOp>, LowerPoolOp<top::AvgPoolOp>>(patterns.getContext());
}

} // namespace tessera::device
