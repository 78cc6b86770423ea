//===- RecoverActivations.cpp - Recovers activations from their formulas --===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/Sizes.h"
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/Transforms/Matchers.h"
#include "top_dialect/Transforms/Passes.h"
#include "top_dialect/Transforms/Rewrite.h"
#include "llvm/Support/MathExtras.h"

namespace tessera::top {
#define GEN_PASS_DEF_RECOVERACTIVATIONSPASS
#include "top_dialect/Transforms/Passes.h.inc"

namespace {
using namespace mlir;

constexpr double kSqrtHalf = 0.70710678118654752;    // 1 / sqrt 2
constexpr double kSqrt2OverPi = 0.79788456080286536; // sqrt(2 / pi)
constexpr double kGeluCubic = 0.044715;

template <typename Op>
Value inputOf(Value v) {
  auto op = v.getDefiningOp<Op>();
  return op ? Value(op.getX()) : Value();
}

/// Returns f if v = f + 1, or null.
Value minusOne(Value v) {
  auto sum = matchScalar<AddOp>(v, /*anyOrder=*/true);
  return sum && sum->second == 1 ? sum->first : Value();
}

// --- Parts: sigmoid, softplus, hard_sigmoid -------------------------------------

/// Returns x if `op` is 1 / (1 + e^-x), or null.
Value matchSigmoid(Operation *op) {
  Value denominator;
  if (auto reciprocal = dyn_cast<ReciprocalOp>(op)) {
    denominator = reciprocal.getX();
  } else if (auto div = dyn_cast<DivOp>(op); div && getScalar(div.getA()) == 1.0) {
    denominator = div.getB();
  }
  Value exponential = denominator ? minusOne(denominator) : Value();
  Value exponent = exponential ? inputOf<ExpOp>(exponential) : Value();
  return exponent ? inputOf<NegOp>(exponent) : Value();
}

/// Returns x if `op` is ln(1 + e^x), or null.
Value matchSoftplus(Operation *op) {
  auto log = dyn_cast<LogOp>(op);
  Value exponential = log ? minusOne(log.getX()) : Value();
  return exponential ? inputOf<ExpOp>(exponential) : Value();
}

/// clip(slope x + offset, 0, limit).
struct Ramp {
  Value x;
  double slope, offset, limit;
};

std::optional<Ramp> matchRamp(Value v) {
  Value inner;
  double limit = 0;
  if (auto clip = v.getDefiningOp<ClipOp>()) {
    if (clip.getLo().convertToDouble() != 0) {
      return std::nullopt;
    }
    inner = clip.getX();
    limit = clip.getHi().convertToDouble();
  } else if (auto min = matchScalar<MinOp>(v, true)) {
    Value relu = min->first;
    auto max = matchScalar<MaxOp>(relu, true);
    inner = max && max->second == 0 ? max->first : inputOf<ReluOp>(relu);
    limit = min->second;
  }
  if (!inner || !std::isfinite(limit) || limit <= 0) {
    return std::nullopt;
  }
  Value x = polynomialVariable(inner);
  std::optional<Cubic> line = matchCubic(inner, x);
  if (!line || (*line)[2] != 0 || (*line)[3] != 0) {
    return std::nullopt;
  }
  return Ramp{x, (*line)[1], (*line)[0], limit};
}

struct HardSigmoid {
  Value x;
  double alpha, beta;
};

/// Matches clip(a x + b, 0, c) scaled by 1 / c.
std::optional<HardSigmoid> hardSigmoidOfRamp(Value v, double scale) {
  std::optional<Ramp> ramp = matchRamp(v);
  // A bare clip(x, 0, 1) stays a clip, which fuses into its producer.
  bool isBare = ramp && ramp->slope == 1 && ramp->offset == 0;
  if (!ramp || isBare || !isClose(scale * ramp->limit, 1)) {
    return std::nullopt;
  }
  return HardSigmoid{ramp->x, ramp->slope * scale, ramp->offset * scale};
}

std::optional<HardSigmoid> matchHardSigmoid(Operation *op) {
  Value v = op->getResult(0);
  if (isa<ClipOp, MinOp>(op)) {
    return hardSigmoidOfRamp(v, 1);
  }
  if (!isa<MulOp, DivOp>(op)) {
    return std::nullopt;
  }
  Product product = flattenProduct(v);
  return product.factors.size() == 1 ? hardSigmoidOfRamp(product.factors[0], product.scale) : std::nullopt;
}

// --- Products of x and a gate ------------------------------------------------------

/// The activation of x that scale * x * gate computes.
enum class Gated { none, silu, hardSwish, mish, gelu, geluTanh };

Gated matchErfGate(Value gate, Value x) {
  Value sum = minusOne(gate);
  Value argument = sum ? inputOf<ErfOp>(sum) : Value();
  std::optional<Cubic> cubic = argument ? matchCubic(argument, x) : std::nullopt;
  return cubic && isClose(*cubic, {0, kSqrtHalf, 0, 0}) ? Gated::gelu : Gated::none;
}

Gated matchTanhGate(Value gate, Value x) {
  Value sum = minusOne(gate);
  Value argument = sum ? inputOf<TanhOp>(sum) : Value();
  std::optional<Cubic> cubic = argument ? matchCubic(argument, x) : std::nullopt;
  bool fits = cubic && isClose(*cubic, {0, kSqrt2OverPi, 0, kSqrt2OverPi * kGeluCubic});
  return fits ? Gated::geluTanh : Gated::none;
}

Gated matchGate(Value gate, Value x, double scale) {
  if (isClose(scale, 0.5)) {
    Gated erf = matchErfGate(gate, x);
    return erf != Gated::none ? erf : matchTanhGate(gate, x);
  }
  // hard_swish whose gate was not recovered separately: x clip(x + 3, 0, 6) / 6.
  if (auto ramp = hardSigmoidOfRamp(gate, scale)) {
    bool fits = ramp->x == x && isClose(ramp->alpha, 1.0 / 6) && isClose(ramp->beta, 0.5);
    return fits ? Gated::hardSwish : Gated::none;
  }
  if (!isClose(scale, 1)) {
    return Gated::none;
  }
  if (inputOf<SigmoidOp>(gate) == x) {
    return Gated::silu;
  }
  if (auto hard = gate.getDefiningOp<HardSigmoidOp>()) {
    bool fits = hard.getX() == x && isClose(hard.getAlpha().convertToDouble(), 1.0 / 6) &&
                hard.getBeta().convertToDouble() == 0.5;
    return fits ? Gated::hardSwish : Gated::none;
  }
  Value argument = inputOf<TanhOp>(gate);
  return argument && inputOf<SoftplusOp>(argument) == x ? Gated::mish : Gated::none;
}

Operation *createGated(RewriterBase &rewriter, Operation *root, Gated kind, Value x) {
  Location loc = root->getLoc();
  Type type = root->getResult(0).getType();
  switch (kind) {
  case Gated::silu:
    return SiluOp::create(rewriter, loc, type, x);
  case Gated::hardSwish:
    return HardSwishOp::create(rewriter, loc, type, x);
  case Gated::mish:
    return MishOp::create(rewriter, loc, type, x);
  case Gated::gelu:
  case Gated::geluTanh:
    return GeluOp::create(rewriter, loc, type, x, kind == Gated::geluTanh);
  case Gated::none:
    break;
  }
  return nullptr;
}

/// Matches one factor, gated by the other, as an activation.
Operation *matchGated(Operation *root, RewriterBase &rewriter) {
  Product product = flattenProduct(root->getResult(0));
  if (product.factors.size() != 2) {
    return nullptr;
  }
  for (auto [x, gate] :
       {std::pair(product.factors[0], product.factors[1]), std::pair(product.factors[1], product.factors[0])}) {
    if (!sameType(x, root->getResult(0))) {
      continue;
    }
    if (Gated kind = matchGate(gate, x, product.scale); kind != Gated::none) {
      return createGated(rewriter, root, kind, x);
    }
  }
  return nullptr;
}

/// Matches x / (1 + e^-x), the only common form of silu that is not a product.
Operation *matchDividedSilu(DivOp root, RewriterBase &rewriter) {
  Value exponential = minusOne(root.getB());
  Value exponent = exponential ? inputOf<ExpOp>(exponential) : Value();
  bool fits = exponent && inputOf<NegOp>(exponent) == root.getA() && sameType(root.getA(), root);
  return fits ? SiluOp::create(rewriter, root.getLoc(), root.getType(), root.getA()) : nullptr;
}

/// Creates the op that computes the same as `root`, or returns null.
Operation *recover(Operation *root, RewriterBase &rewriter) {
  if (root->getNumResults() != 1 || !isa<MulOp, DivOp, ReciprocalOp, LogOp, ClipOp, MinOp>(root) ||
      !isa<FloatType>(typeOf(root->getResult(0)).getElementType())) {
    return nullptr;
  }
  Location loc = root->getLoc();
  Type type = root->getResult(0).getType();
  if (Value x = matchSigmoid(root)) {
    return x.getType() == type ? SigmoidOp::create(rewriter, loc, type, x) : nullptr;
  }
  if (Value x = matchSoftplus(root)) {
    return x.getType() == type ? SoftplusOp::create(rewriter, loc, type, x) : nullptr;
  }
  if (std::optional<HardSigmoid> hard = matchHardSigmoid(root); hard && hard->x.getType() == type) {
    return HardSigmoidOp::create(rewriter, loc, type, hard->x, llvm::APFloat(float(hard->alpha)),
                                 llvm::APFloat(float(hard->beta)));
  }
  if (isa<MulOp, DivOp>(root)) {
    if (Operation *gated = matchGated(root, rewriter)) {
      return gated;
    }
  }
  auto div = dyn_cast<DivOp>(root);
  return div ? matchDividedSilu(div, rewriter) : nullptr;
}

class RecoverActivationsPass : public impl::RecoverActivationsPassBase<RecoverActivationsPass> {
  void runOnOperation() override {
    recovered += rewriteForward(getOperation(), [](Operation *op, RewriterBase &rewriter) {
      Operation *activation = recover(op, rewriter);
      if (activation) {
        replaceFused(rewriter, op, activation);
      }
      return activation != nullptr;
    });
  }
};
} // namespace
} // namespace tessera::top
