//===- NarrowFloats.cpp - Ops that read and write f16 and bf16 ------------===//
// SPDX-License-Identifier: Apache-2.0
//
// A Top model of 16-bit floats stores values as f16 or bf16 between pairs of casts around f32 ops. Device ops that sum
// in f32 read such values and round their results themselves, so their casts are removed here. The remaining casts
// become maps, which fuse with others.
//===----------------------------------------------------------------------===//
#include "device_dialect/Conversion/TopToDevice/Quantized.h"
#include "device_dialect/IR/Layout.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/TopOps.h"

using namespace mlir;

namespace tessera::device {

bool isWidening(top::CastOp op) {
  return op && isNarrowFloat(Lowering::element(op.getX())) && Lowering::element(op.getY()).isF32();
}

bool isRounding(top::CastOp op) {
  return op && Lowering::element(op.getX()).isF32() && isNarrowFloat(Lowering::element(op.getY()));
}

/// Returns true for ops whose device form sums floats of either width in f32 and rounds the stored result.
static bool sumsFloats(Operation *op) {
  if (auto reduce = dyn_cast<top::ReduceOp>(op)) {
    using Kind = top::ReduceKind;
    return !reduce.getAxes().empty() &&
           llvm::is_contained({Kind::sum, Kind::mean, Kind::l1, Kind::l2, Kind::sum_square}, reduce.getKind());
  }
  if (auto resize = dyn_cast<top::ResizeOp>(op)) {
    return !sameSizes(resize.getX(), resize.getY());
  }
  return isa<top::ConvOp, top::ConvTransposeOp, top::MatMulOp, top::AvgPoolOp, top::LayerNormOp>(op);
}

/// Returns the operands that the device form of |op| reads as 16-bit floats.
static SmallVector<unsigned> narrowOperands(Operation *op) {
  if (isa<top::RnnOp>(op)) {
    return {1, 2}; // the weights
  }
  if (!sumsFloats(op)) {
    return {};
  }
  return isa<top::ConvOp, top::ConvTransposeOp, top::MatMulOp>(op) ? SmallVector<unsigned>{0, 1}
                                                                   : SmallVector<unsigned>{0};
}

void absorbCasts(PatternRewriter &rewriter, Operation *function) {
  SmallVector<Operation *> ops;
  function->walk([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : ops) {
    for (unsigned index : narrowOperands(op)) {
      auto widen = op->getOperand(index).getDefiningOp<top::CastOp>();
      if (isWidening(widen)) {
        op->setOperand(index, widen.getX());
      }
    }
    if (!sumsFloats(op) || !op->getResult(0).hasOneUse()) {
      continue;
    }
    auto round = dyn_cast<top::CastOp>(*op->user_begin());
    if (isRounding(round)) {
      op->getResult(0).setType(round.getY().getType());
      top::copyNames({op, round}, op);
      rewriter.replaceOp(round, op->getResult(0));
    }
  }
}

} // namespace tessera::device
