//===- LowerReduce.cpp - Reductions, order, running sums ------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/Conversion/TopToDevice/ElementCount.h"
#include "device_dialect/IR/Layout.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "top_dialect/IR/TopReduceOps.h"

using namespace mlir;

namespace tessera::device {
namespace {

using Kind = top::ReduceKind;

Value emitSquare(OpBuilder &b, Location loc, ValueRange values) {
  return isa<FloatType>(values[0].getType()) ? arith::MulFOp::create(b, loc, values[0], values[0]).getResult()
                                             : arith::MulIOp::create(b, loc, values[0], values[0]).getResult();
}

Value emitAbs(OpBuilder &b, Location loc, ValueRange values) {
  return isa<FloatType>(values[0].getType()) ? math::AbsFOp::create(b, loc, values[0]).getResult()
                                             : math::AbsIOp::create(b, loc, values[0]).getResult();
}

/// Applies a float function; integers are converted to f64 for it.
template <typename MathOp>
Value emitFloat(OpBuilder &b, Location loc, ValueRange values) {
  Type type = values[0].getType();
  if (isa<FloatType>(type)) {
    return MathOp::create(b, loc, values[0]);
  }
  Value wide = arith::SIToFPOp::create(b, loc, b.getF64Type(), values[0]);
  return arith::FPToSIOp::create(b, loc, type, MathOp::create(b, loc, wide));
}

struct LowerReduceOp : OpRewritePattern<top::ReduceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(top::ReduceOp op, PatternRewriter &rewriter) const override {
    Lowering lower(rewriter, op);
    Value y = op.getAxes().empty() ? op.getX() : lowerKind(lower, op);
    return lower.replace(lower.reshape(y, Lowering::shape(op.getY())));
  }

private:
  /// Lowers the reduction, keeping the reduced axes with size 1.
  static Value lowerKind(Lowering &lower, top::ReduceOp op) {
    Value x = op.getX();
    ArrayRef<int64_t> axes = op.getAxes();
    Type element = Lowering::element(op.getY());
    auto reduce = [&](ReduceKind kind, Lowering::Body before = nullptr, Lowering::Body after = nullptr) {
      return lower.reduce(x, kind, axes, element, before, after);
    };
    switch (op.getKind()) {
    case Kind::sum:
      return reduce(ReduceKind::sum);
    case Kind::max:
      return reduce(ReduceKind::max);
    case Kind::min:
      return reduce(ReduceKind::min);
    case Kind::prod:
      return reduce(ReduceKind::prod);
    case Kind::l1:
      return reduce(ReduceKind::sum, emitAbs);
    case Kind::l2:
      return reduce(ReduceKind::sum, emitSquare, emitFloat<math::SqrtOp>);
    case Kind::sum_square:
      return reduce(ReduceKind::sum, emitSquare);
    case Kind::log_sum:
      return reduce(ReduceKind::sum, nullptr, emitFloat<math::LogOp>);
    case Kind::mean:
      return lowerMean(lower, op);
    case Kind::log_sum_exp:
      return lowerLogSumExp(lower, op);
    }
    llvm_unreachable("all kinds are handled");
  }

  static Value lowerMean(Lowering &lower, top::ReduceOp op) {
    const ElementCount count(lower, op.getX(), op.getAxes());
    return lower.reduce(
        op.getX(), ReduceKind::sum, op.getAxes(), Lowering::element(op.getY()), nullptr,
        [&](OpBuilder &b, Location loc, ValueRange values) -> Value {
          Value n = count.emit(b, loc, values[0].getType(), values.drop_front());
          if (isa<FloatType>(n.getType())) {
            return arith::DivFOp::create(b, loc, values[0], n);
          }
          return arith::DivSIOp::create(b, loc, values[0], n);
        },
        count.operands());
  }

  /// Lowers to log(sum(e^(x - m))) + m with m the maximum, which cannot overflow.
  static Value lowerLogSumExp(Lowering &lower, top::ReduceOp op) {
    Value x = op.getX();
    Type element = Lowering::element(x);
    Value largest = lower.reduce(x, ReduceKind::max, op.getAxes(), element);
    // With an infinite maximum, x - m would be inf - inf; use 0 instead.
    largest = lower.map(largest, Lowering::type(largest), [](OpBuilder &b, Location loc, ValueRange values) {
      Value size = math::AbsFOp::create(b, loc, values[0]);
      Value infinity = arith::ConstantOp::create(
          b, loc, b.getFloatAttr(size.getType(), APFloat::getInf(cast<FloatType>(size.getType()).getFloatSemantics())));
      Value finite = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, size, infinity);
      Value zero = scalarConstant(b, loc, size.getType(), 0);
      return arith::SelectOp::create(b, loc, finite, values[0], zero).getResult();
    });
    Value powers = lower.map({x, largest}, Lowering::type(x), [](OpBuilder &b, Location loc, ValueRange values) {
      return math::ExpOp::create(b, loc, arith::SubFOp::create(b, loc, values[0], values[1])).getResult();
    });
    return lower.reduce(
        powers, ReduceKind::sum, op.getAxes(), element, nullptr,
        [](OpBuilder &b, Location loc, ValueRange values) -> Value {
          Value log = math::LogOp::create(b, loc, values[0]);
          Value shift = castFloat(b, loc, values[1], log.getType());
          return arith::AddFOp::create(b, loc, log, shift);
        },
        largest);
  }
};

struct LowerArgReduceOp : OpRewritePattern<top::ArgReduceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(top::ArgReduceOp op, PatternRewriter &rewriter) const override {
    Lowering lower(rewriter, op);
    SmallVector<Dim> dims = Lowering::shape(op.getX()).dims();
    dims[op.getAxis()] = 1;
    RankedTensorType type = tensorType(dims, rewriter.getI64Type());
    Value y = ArgReduceOp::create(rewriter, lower.loc, type, op.getX(), op.getAxis(), op.getMin(), op.getSelectLast());
    return lower.replace(lower.reshape(y, Lowering::shape(op.getY())));
  }
};

struct LowerTopKOp : OpRewritePattern<top::TopKOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(top::TopKOp op, PatternRewriter &rewriter) const override {
    Lowering lower(rewriter, op);
    auto topk = TopKOp::create(rewriter, lower.loc, op.getValues().getType(), op.getIndices().getType(), op.getX(),
                               op.getK(), op.getAxis(), op.getLargest());
    return lower.replace(topk.getResults());
  }
};

struct LowerNonMaxSuppressionOp : OpRewritePattern<top::NonMaxSuppressionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(top::NonMaxSuppressionOp op, PatternRewriter &rewriter) const override {
    Lowering lower(rewriter, op);
    return lower.replace(NonMaxSuppressionOp::create(rewriter, lower.loc, op.getY().getType(), op.getBoxes(),
                                                     op.getScores(), op.getMaxBoxes(), op.getIouThreshold(),
                                                     op.getScoreThreshold(), op.getK(), op.getCenter())
                             .getY());
  }
};

struct LowerCumSumOp : OpRewritePattern<top::CumSumOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(top::CumSumOp op, PatternRewriter &rewriter) const override {
    Lowering lower(rewriter, op);
    return lower.replace(CumSumOp::create(rewriter, lower.loc, op.getY().getType(), op.getX(), op.getAxis(),
                                          op.getExclusive(), op.getReverse())
                             .getY());
  }
};

} // namespace

void populateReducePatterns(RewritePatternSet &patterns) {
  patterns.add<LowerReduceOp, LowerArgReduceOp, LowerTopKOp, LowerNonMaxSuppressionOp, LowerCumSumOp>(
      patterns.getContext());
}

} // namespace tessera::device
