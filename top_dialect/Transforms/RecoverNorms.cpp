//===- RecoverNorms.cpp - Recovers normalisations from means and roots ----===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/Sizes.h"
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/Transforms/Matchers.h"
#include "top_dialect/Transforms/Passes.h"
#include "top_dialect/Transforms/Rewrite.h"

namespace tessera::top {
#define GEN_PASS_DEF_RECOVERNORMSPASS
#include "top_dialect/Transforms/Passes.h.inc"

namespace {
using namespace mlir;

/// Returns the first reduced dim if `v` is the mean of `x` over its trailing dims, with dims kept; else nothing.
std::optional<int64_t> matchTrailingMean(Value v, Value x) {
  auto mean = v.getDefiningOp<ReduceOp>();
  if (!mean || mean.getX() != x || mean.getKind() != ReduceKind::mean || !mean.getKeepDims()) {
    return std::nullopt;
  }
  int64_t rank = typeOf(x).getRank(), count = mean.getAxes().size();
  for (int64_t i = 0; i < count; ++i) {
    if (mean.getAxes()[i] != rank - count + i) {
      return std::nullopt;
    }
  }
  return count == 0 ? std::nullopt : std::optional(rank - count);
}

/// Returns the operand of a cast to its own type, which exporters insert before squaring.
Value throughIdentityCast(Value v) {
  auto cast = v.getDefiningOp<CastOp>();
  return cast && Value(cast.getX()).getType() == v.getType() ? Value(cast.getX()) : v;
}

/// variance + epsilon, where variance is the mean of the square of `x` over the trailing dims.
struct MeanSquare {
  int64_t axis;
  double epsilon;
};

std::optional<MeanSquare> matchMeanSquare(Value v, Value x) {
  auto sum = matchScalar<AddOp>(v, /*anyOrder=*/true);
  auto mean = sum ? sum->first.getDefiningOp<ReduceOp>() : ReduceOp();
  Value base = mean ? matchSquare(mean.getX()) : Value();
  if (!base || throughIdentityCast(base) != x) {
    return std::nullopt;
  }
  std::optional<int64_t> axis = matchTrailingMean(sum->first, mean.getX());
  return axis ? std::optional(MeanSquare{*axis, sum->second}) : std::nullopt;
}

/// value / sqrt(meanSquare(value)), in any form.
struct Normalised {
  Value value;
  MeanSquare meanSquare;
};

std::optional<Normalised> matchNormalised(Operation *op) {
  SmallVector<std::pair<Value, Value>, 2> candidates; // value, operand of the root
  if (auto div = dyn_cast<DivOp>(op)) {
    Value root = div.getB();
    auto sqrt = root.getDefiningOp<SqrtOp>();
    auto power = matchScalar<PowOp>(root, false);
    if (sqrt) {
      candidates.emplace_back(div.getA(), sqrt.getX());
    } else if (power && power->second == 0.5) {
      candidates.emplace_back(div.getA(), power->first);
    }
  } else if (auto mul = dyn_cast<MulOp>(op)) {
    for (auto [value, root] :
         {std::pair<Value, Value>(mul.getA(), mul.getB()), std::pair<Value, Value>(mul.getB(), mul.getA())}) {
      if (Value below = matchRsqrt(root)) {
        candidates.emplace_back(value, below);
      }
    }
  }
  for (auto [value, below] : candidates) {
    std::optional<MeanSquare> meanSquare = matchMeanSquare(below, value);
    if (meanSquare && sameType(value, op->getResult(0))) {
      return Normalised{value, *meanSquare};
    }
  }
  return std::nullopt;
}

/// Returns x if `v` is x - mean(x) over the dims from `axis` on, or null.
Value matchCentred(Value v, int64_t axis) {
  auto sub = v.getDefiningOp<SubOp>();
  bool fits = sub && matchTrailingMean(sub.getB(), sub.getA()) == axis;
  return fits ? Value(sub.getA()) : Value();
}

Operation *recoverNorm(Operation *op, RewriterBase &rewriter) {
  std::optional<Normalised> match = matchNormalised(op);
  if (!match) {
    return nullptr;
  }
  auto [axis, epsilon] = match->meanSquare;
  Value centred = matchCentred(match->value, axis);
  return LayerNormOp::create(rewriter, op->getLoc(), op->getResult(0).getType(), centred ? centred : match->value,
                             Value(), Value(), axis, llvm::APFloat(epsilon), /*rms=*/!centred);
}

/// Returns `v` with exactly the dims that `norm` normalises. A constant may have leading dims of size 1.
Value asNormOperand(Value v, LayerNormOp norm, RewriterBase &rewriter) {
  ArrayRef<int64_t> dims = dimsOf(norm.getY()).drop_front(norm.getAxis()), own = dimsOf(v);
  if (llvm::any_of(dims, ShapedType::isDynamic)) {
    return {};
  }
  while (isConstant(v) && own.size() > dims.size() && own.front() == 1) {
    own = own.drop_front();
  }
  bool fits = own == dims && typeOf(v).getElementType() == typeOf(norm.getY()).getElementType();
  return fits ? createReshape(rewriter, norm.getLoc(), v, dims) : Value();
}

/// Makes the scale of norm(x) * scale, or the bias of norm(x) + bias, an operand of the norm.
template <typename Op>
Operation *absorb(Op op, RewriterBase &rewriter) {
  constexpr bool isScale = std::is_same_v<Op, MulOp>;
  for (auto [value, other] :
       {std::pair<Value, Value>(op.getA(), op.getB()), std::pair<Value, Value>(op.getB(), op.getA())}) {
    auto norm = value.getDefiningOp<LayerNormOp>();
    // The scale comes before the bias, and each occurs once.
    if (!norm || !norm->hasOneUse() || norm.getBias() || (isScale && norm.getScale()) || (!isScale && norm.getRms()) ||
        !sameType(norm, op)) {
      continue;
    }
    if (Value operand = asNormOperand(other, norm, rewriter)) {
      Value scale = isScale ? operand : Value(norm.getScale());
      Value bias = isScale ? Value() : operand;
      return LayerNormOp::create(rewriter, op.getLoc(), op.getType(), norm.getX(), scale, bias, norm.getAxis(),
                                 norm.getEpsilon(), norm.getRms());
    }
  }
  return nullptr;
}

/// Matches sqrt(sum(x^2)).
Operation *recoverL2(SqrtOp op, RewriterBase &rewriter) {
  auto sum = Value(op.getX()).getDefiningOp<ReduceOp>();
  if (!sum) {
    return nullptr;
  }
  Value x;
  if (sum.getKind() == ReduceKind::sum_square) {
    x = sum.getX();
  } else if (sum.getKind() == ReduceKind::sum) {
    x = matchSquare(sum.getX());
  }
  return x ? ReduceOp::create(rewriter, op.getLoc(), op.getType(), x, ReduceKind::l2, sum.getAxes(), sum.getKeepDims())
           : nullptr;
}

/// scale * rsqrt(...), as in norms that multiply before they subtract the mean.
struct ScaledRsqrt {
  Value below, scale;
};

ScaledRsqrt matchScaledRsqrt(Value v) {
  if (Value below = matchRsqrt(v)) {
    return {below, Value()};
  }
  if (auto mul = v.getDefiningOp<MulOp>()) {
    if (Value below = matchRsqrt(mul.getA())) {
      return {below, mul.getB()};
    }
    if (Value below = matchRsqrt(mul.getB())) {
      return {below, mul.getA()};
    }
  }
  return {};
}

/// Returns the other operand if `v` = factor * other, or null.
Value otherFactor(Value v, Value factor) {
  auto mul = v.getDefiningOp<MulOp>();
  if (!mul) {
    return {};
  }
  return mul.getA() == factor ? Value(mul.getB()) : mul.getB() == factor ? Value(mul.getA()) : Value();
}

/// Matches x a + (bias - mean(x) a) with a = scale * rsqrt(...), given x and a.
Operation *recoverExpandedNorm(AddOp op, Value x, Value a, Value shift, RewriterBase &rewriter) {
  auto sub = shift.getDefiningOp<SubOp>();
  Value mean = sub ? otherFactor(sub.getB(), a) : Value();
  std::optional<int64_t> axis = mean ? matchTrailingMean(mean, x) : std::nullopt;
  ScaledRsqrt scaled = matchScaledRsqrt(a);
  if (!axis || !scaled.below || !sameType(x, op)) {
    return nullptr;
  }
  auto variance = matchScalar<AddOp>(scaled.below, /*anyOrder=*/true);
  auto meanSquare = variance ? variance->first.getDefiningOp<ReduceOp>() : ReduceOp();
  Value centred = meanSquare ? matchSquare(meanSquare.getX()) : Value();
  if (!centred || matchCentred(centred, *axis) != x) {
    return nullptr;
  }
  std::optional<MeanSquare> match = matchMeanSquare(scaled.below, centred);
  if (!match || match->axis != *axis) {
    return nullptr;
  }
  auto norm = LayerNormOp::create(rewriter, op.getLoc(), op.getType(), x, Value(), Value(), *axis,
                                  llvm::APFloat(variance->second), false);
  Value scale = scaled.scale ? asNormOperand(scaled.scale, norm, rewriter) : Value();
  Value bias = asNormOperand(sub.getA(), norm, rewriter);
  if (!bias || (scaled.scale && !scale)) {
    rewriter.eraseOp(norm);
    return nullptr;
  }
  auto full = LayerNormOp::create(rewriter, op.getLoc(), op.getType(), x, scale, bias, *axis, norm.getEpsilon(), false);
  rewriter.eraseOp(norm);
  return full;
}

Operation *recoverExpandedNorm(AddOp op, RewriterBase &rewriter) {
  for (auto [product, shift] :
       {std::pair<Value, Value>(op.getA(), op.getB()), std::pair<Value, Value>(op.getB(), op.getA())}) {
    auto mul = product.getDefiningOp<MulOp>();
    if (!mul) {
      continue;
    }
    for (auto [x, a] :
         {std::pair<Value, Value>(mul.getA(), mul.getB()), std::pair<Value, Value>(mul.getB(), mul.getA())}) {
      if (Operation *norm = recoverExpandedNorm(op, x, a, shift, rewriter)) {
        return norm;
      }
    }
  }
  return nullptr;
}

/// Recovers the norm whose last op is `op`, without a scale and bias that may follow.
Operation *recover(Operation *op, RewriterBase &rewriter) {
  if (Operation *norm = recoverNorm(op, rewriter)) {
    return norm;
  }
  if (auto add = dyn_cast<AddOp>(op)) {
    return recoverExpandedNorm(add, rewriter);
  }
  auto sqrt = dyn_cast<SqrtOp>(op);
  return sqrt ? recoverL2(sqrt, rewriter) : nullptr;
}

Operation *absorbInto(Operation *op, RewriterBase &rewriter) {
  if (auto mul = dyn_cast<MulOp>(op)) {
    return absorb(mul, rewriter);
  }
  auto add = dyn_cast<AddOp>(op);
  return add ? absorb(add, rewriter) : nullptr;
}

class RecoverNormsPass : public impl::RecoverNormsPassBase<RecoverNormsPass> {
  bool visit(Operation *op, RewriterBase &rewriter) {
    if (!isa<MulOp, DivOp, AddOp, SqrtOp>(op) || !isa<FloatType>(typeOf(op->getResult(0)).getElementType())) {
      return false;
    }
    Operation *norm = recover(op, rewriter);
    if (norm) {
      ++recovered;
    } else {
      norm = absorbInto(op, rewriter);
    }
    if (norm) {
      replaceFused(rewriter, op, norm);
    }
    return norm != nullptr;
  }

  void runOnOperation() override {
    rewriteForward(getOperation(), [&](Operation *op, RewriterBase &rewriter) { return visit(op, rewriter); });
  }
};
} // namespace
} // namespace tessera::top
