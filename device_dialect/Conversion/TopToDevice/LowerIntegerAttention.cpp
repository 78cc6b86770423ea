//===- LowerIntegerAttention.cpp - Attention of integers ------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/Conversion/TopToDevice/Quantized.h"
#include "top_dialect/IR/MaskedRows.h"
#include "top_dialect/IR/TopReduceOps.h"

using namespace mlir;

namespace tessera::device {

void lowerIntegerAttention(PatternRewriter &rewriter, Operation *attention) {
  auto op = cast<top::AttentionOp>(attention);
  if (!op.getLevels()) {
    return;
  }
  SmallVector<QuantizedTensor> factors;
  for (Value operand : {op.getQ(), op.getK(), op.getV()}) {
    std::optional<QuantizedTensor> found = matchQuantized(operand);
    if (!found || found->scaling.zero != 0 || !found->scaling.element.isSignlessInteger(8)) {
      return;
    }
    factors.push_back(*found);
  }
  Shape q = op.getQ(), k = op.getK();
  bool fits =
      maxOf(q.back()) <= AttentionOp::mostDepth() && maxOf(k[k.rank() - 2]) <= AttentionOp::mostKeys(*op.getLevels());
  if (!fits || !Lowering::element(op.getY()).isF32() || (op.getMask() && !Lowering::element(op.getMask()).isF32())) {
    return;
  }
  Lowering lower(rewriter, op);
  rewriter.setInsertionPoint(op);
  double scale = factors[0].scaling.scale * factors[1].scaling.scale * op.getScale().convertToDouble();
  auto lowered =
      AttentionOp::create(rewriter, lower.loc, op.getY().getType(), factors[0].values, factors[1].values,
                          factors[2].values, op.getMask(), APFloat(scale), /*views=*/nullptr, op.getLevelsAttr(),
                          rewriter.getF64FloatAttr(factors[2].scaling.scale), /*keys=*/nullptr);
  top::setZeroMaskedRows(lowered, top::zeroesMaskedRows(op));
  (void)lower.replace(lowered.getY());
}

} // namespace tessera::device
