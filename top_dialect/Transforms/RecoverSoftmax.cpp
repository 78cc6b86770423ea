//===- RecoverSoftmax.cpp - Recovers softmax from exponentials and sums ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/Transforms/Passes.h"
#include "top_dialect/Transforms/Rewrite.h"
#include "top_dialect/Transforms/Values.h"

namespace tessera::top {
#define GEN_PASS_DEF_RECOVERSOFTMAXPASS
#include "top_dialect/Transforms/Passes.h.inc"

namespace {
using namespace mlir;

/// Returns the axis if `v` is a reduction of `x` along one axis with dims kept; else nothing.
std::optional<int64_t> matchReduce(Value v, Value x, ReduceKind kind) {
  auto reduce = v.getDefiningOp<ReduceOp>();
  bool fits =
      reduce && reduce.getX() == x && reduce.getKind() == kind && reduce.getKeepDims() && reduce.getAxes().size() == 1;
  return fits ? std::optional(reduce.getAxes().front()) : std::nullopt;
}

/// Returns x if `v` = x - max(x) along `axis`; else v. Both have the same softmax.
Value withoutShift(Value v, int64_t axis) {
  auto sub = v.getDefiningOp<SubOp>();
  bool isShift = sub && matchReduce(sub.getB(), sub.getA(), ReduceKind::max) == axis;
  return isShift ? Value(sub.getA()) : v;
}

Operation *recoverSoftmax(DivOp div, RewriterBase &rewriter) {
  auto exp = Value(div.getA()).getDefiningOp<ExpOp>();
  std::optional<int64_t> axis = exp ? matchReduce(div.getB(), div.getA(), ReduceKind::sum) : std::nullopt;
  if (!axis) {
    return nullptr;
  }
  return SoftmaxOp::create(rewriter, div.getLoc(), div.getType(), withoutShift(exp.getX(), *axis), *axis);
}

/// Matches the logarithm of a softmax that does not have other users.
Operation *recoverLogSoftmax(LogOp log, RewriterBase &rewriter) {
  auto softmax = Value(log.getX()).getDefiningOp<SoftmaxOp>();
  if (!softmax || softmax.getLog() || !softmax->hasOneUse()) {
    return nullptr;
  }
  return SoftmaxOp::create(rewriter, log.getLoc(), log.getType(), softmax.getX(), softmax.getAxis(), true);
}

/// Matches x - max(x) - log(sum e^(x - max(x))).
Operation *recoverShiftedLogSoftmax(SubOp sub, RewriterBase &rewriter) {
  auto log = Value(sub.getB()).getDefiningOp<LogOp>();
  auto sum = log ? Value(log.getX()).getDefiningOp<ReduceOp>() : ReduceOp();
  auto exp = sum ? Value(sum.getX()).getDefiningOp<ExpOp>() : ExpOp();
  if (!exp || exp.getX() != sub.getA()) {
    return nullptr;
  }
  std::optional<int64_t> axis = matchReduce(log.getX(), exp.getY(), ReduceKind::sum);
  if (!axis) {
    return nullptr;
  }
  return SoftmaxOp::create(rewriter, sub.getLoc(), sub.getType(), withoutShift(sub.getA(), *axis), *axis, true);
}

Operation *recover(Operation *op, RewriterBase &rewriter) {
  if (auto div = dyn_cast<DivOp>(op)) {
    return recoverSoftmax(div, rewriter);
  }
  if (auto log = dyn_cast<LogOp>(op)) {
    return recoverLogSoftmax(log, rewriter);
  }
  auto sub = dyn_cast<SubOp>(op);
  return sub ? recoverShiftedLogSoftmax(sub, rewriter) : nullptr;
}

class RecoverSoftmaxPass : public impl::RecoverSoftmaxPassBase<RecoverSoftmaxPass> {
  void runOnOperation() override {
    recovered += rewriteForward(getOperation(), [](Operation *op, RewriterBase &rewriter) {
      Operation *softmax = recover(op, rewriter);
      if (softmax) {
        replaceFused(rewriter, op, softmax);
      }
      return softmax != nullptr;
    });
  }
};
} // namespace
} // namespace tessera::top
