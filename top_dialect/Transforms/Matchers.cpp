//===- Matchers.cpp - Algebraic helpers of the recovery passes ------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Transforms/Matchers.h"
#include "top_dialect/IR/TopOps.h"

namespace tessera::top {
using namespace mlir;

/// Formulas in real graphs are shallow. The limit bounds the search per op.
static constexpr int kMaxDepth = 7;

static void flattenInto(Value v, bool isRoot, int depth, Product &product) {
  if (depth < kMaxDepth && (isRoot || v.hasOneUse())) {
    if (auto scaled = matchScalar<MulOp>(v, /*anyOrder=*/true)) {
      product.scale *= scaled->second;
      return flattenInto(scaled->first, false, depth + 1, product);
    }
    if (auto scaled = matchScalar<DivOp>(v, /*anyOrder=*/false)) {
      product.scale /= scaled->second;
      return flattenInto(scaled->first, false, depth + 1, product);
    }
    if (auto neg = v.getDefiningOp<NegOp>()) {
      product.scale = -product.scale;
      return flattenInto(neg.getX(), false, depth + 1, product);
    }
    if (auto mul = v.getDefiningOp<MulOp>()) {
      flattenInto(mul.getA(), false, depth + 1, product);
      return flattenInto(mul.getB(), false, depth + 1, product);
    }
  }
  product.factors.push_back(v);
}

Product flattenProduct(Value root) {
  Product product;
  flattenInto(root, true, 0, product);
  return product;
}

static std::optional<Cubic> multiply(const Cubic &a, const Cubic &b) {
  Cubic result = {0, 0, 0, 0};
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) {
      if (a[i] == 0 || b[j] == 0) {
        continue;
      }
      if (i + j > 3) {
        return std::nullopt;
      }
      result[i + j] += a[i] * b[j];
    }
  }
  return result;
}

static std::optional<Cubic> cubic(Value v, Value x, int depth);

template <typename Combine>
static std::optional<Cubic> combine(Value a, Value b, Value x, int depth, Combine &&with) {
  std::optional<Cubic> left = cubic(a, x, depth + 1);
  std::optional<Cubic> right = left ? cubic(b, x, depth + 1) : std::nullopt;
  if (!right) {
    return std::nullopt;
  }
  return with(*left, *right);
}

static Cubic addScaled(const Cubic &a, const Cubic &b, double scale) {
  Cubic result;
  for (int i = 0; i < 4; ++i) {
    result[i] = a[i] + scale * b[i];
  }
  return result;
}

static std::optional<Cubic> power(const Cubic &base, double exponent) {
  if (exponent != 1 && exponent != 2 && exponent != 3) {
    return std::nullopt;
  }
  std::optional<Cubic> result = base;
  for (int i = 1; result && i < exponent; ++i) {
    result = multiply(*result, base);
  }
  return result;
}

static std::optional<Cubic> cubic(Value v, Value x, int depth) {
  if (v == x) {
    return Cubic{0, 1, 0, 0};
  }
  if (std::optional<double> c = getScalar(v)) {
    return Cubic{*c, 0, 0, 0};
  }
  Operation *def = v.getDefiningOp();
  if (!def || depth == kMaxDepth) {
    return std::nullopt;
  }
  if (auto add = dyn_cast<AddOp>(def)) {
    return combine(add.getA(), add.getB(), x, depth, [](const Cubic &a, const Cubic &b) { return addScaled(a, b, 1); });
  }
  if (auto sub = dyn_cast<SubOp>(def)) {
    return combine(sub.getA(), sub.getB(), x, depth,
                   [](const Cubic &a, const Cubic &b) { return addScaled(a, b, -1); });
  }
  if (auto mul = dyn_cast<MulOp>(def)) {
    return combine(mul.getA(), mul.getB(), x, depth, multiply);
  }
  if (auto neg = dyn_cast<NegOp>(def)) {
    std::optional<Cubic> inner = cubic(neg.getX(), x, depth + 1);
    return inner ? std::optional(addScaled({0, 0, 0, 0}, *inner, -1)) : std::nullopt;
  }
  if (auto divided = matchScalar<DivOp>(v, false)) {
    std::optional<Cubic> inner = cubic(divided->first, x, depth + 1);
    return inner ? std::optional(addScaled({0, 0, 0, 0}, *inner, 1 / divided->second)) : std::nullopt;
  }
  if (auto raised = matchScalar<PowOp>(v, false)) {
    std::optional<Cubic> inner = cubic(raised->first, x, depth + 1);
    return inner ? power(*inner, raised->second) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<Cubic> matchCubic(Value v, Value x) { return cubic(v, x, 0); }

bool isClose(const Cubic &a, const Cubic &b) {
  return llvm::all_of(llvm::seq(4), [&](int i) { return isClose(a[i], b[i]); });
}

Value polynomialVariable(Value v) {
  for (int depth = 0; depth < kMaxDepth; ++depth) {
    Operation *def = v.getDefiningOp();
    if (!def || !isa<AddOp, SubOp, MulOp, DivOp, NegOp, PowOp>(def)) {
      return v;
    }
    Value inner;
    for (Value operand : def->getOperands()) {
      if (isConstant(operand)) {
        continue;
      }
      if (inner && inner != operand) {
        return v; // With two different inputs, `v` itself is the variable.
      }
      inner = operand;
    }
    if (!inner) {
      return v;
    }
    v = inner;
  }
  return v;
}

Value matchRsqrt(Value v) {
  if (auto rsqrt = v.getDefiningOp<RsqrtOp>()) {
    return rsqrt.getX();
  }
  if (auto raised = matchScalar<PowOp>(v, false); raised && raised->second == -0.5) {
    return raised->first;
  }
  Value root;
  if (auto reciprocal = v.getDefiningOp<ReciprocalOp>()) {
    root = reciprocal.getX();
  } else if (auto div = v.getDefiningOp<DivOp>(); div && getScalar(div.getA()) == 1.0) {
    root = div.getB();
  }
  if (!root) {
    return {};
  }
  if (auto sqrt = root.getDefiningOp<SqrtOp>()) {
    return sqrt.getX();
  }
  auto raised = matchScalar<PowOp>(root, false);
  return raised && raised->second == 0.5 ? raised->first : Value();
}

Value matchSquare(Value v) {
  if (auto mul = v.getDefiningOp<MulOp>(); mul && mul.getA() == mul.getB()) {
    return mul.getA();
  }
  auto raised = matchScalar<PowOp>(v, false);
  bool isSquare = raised && raised->second == 2 && raised->first.getType() == v.getType();
  return isSquare ? raised->first : Value();
}

} // namespace tessera::top
