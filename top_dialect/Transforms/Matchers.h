//===- Matchers.h - Algebraic helpers of the recovery passes ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Exporters write the same formula with different associations. These helpers normalise them, so that each pattern is
// written once, as mathematics.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_TOP_DIALECT_TRANSFORMS_MATCHERS_H
#define TESSERA_TOP_DIALECT_TRANSFORMS_MATCHERS_H

#include "mlir/IR/Value.h"
#include "top_dialect/Transforms/Values.h"
#include <array>
#include <cmath>
#include <optional>
#include <utility>

namespace tessera::top {

/// Compares constants that were rounded to single precision.
inline bool isClose(double a, double b) { return std::abs(a - b) <= 2e-6 * std::abs(b) + 1e-12; }

/// Matches v = Op(other, c), or also Op(c, other) if `anyOrder`, where c is a constant with equal elements.
template <typename Op>
std::optional<std::pair<mlir::Value, double>> matchScalar(mlir::Value v, bool anyOrder) {
  auto op = v.getDefiningOp<Op>();
  if (!op) {
    return std::nullopt;
  }
  if (std::optional<double> c = getScalar(op.getB())) {
    return std::pair<mlir::Value, double>(op.getA(), *c);
  }
  if (anyOrder) {
    if (std::optional<double> c = getScalar(op.getA())) {
      return std::pair<mlir::Value, double>(op.getB(), *c);
    }
  }
  return std::nullopt;
}

/// scale * f1 * f2 * ..., where f1, f2, ... are `factors`.
struct Product {
  double scale = 1;
  llvm::SmallVector<mlir::Value, 4> factors;
};

/// Decomposes `root` through mul, neg, and div by constants. Inner values are decomposed only if they have a single
/// use.
Product flattenProduct(mlir::Value root);

/// Coefficients of c0 + c1 x + c2 x^2 + c3 x^3.
using Cubic = std::array<double, 4>;

/// Matches `v` as a polynomial in `x` of degree at most 3, composed of add, sub, mul, neg, div by constants, and
/// integer powers.
std::optional<Cubic> matchCubic(mlir::Value v, mlir::Value x);

/// Checks that two cubics agree within single precision.
bool isClose(const Cubic &a, const Cubic &b);

/// Returns the variable of a tree of polynomial ops over constants, found by following the non-constant operands. It is
/// a candidate for matchCubic.
mlir::Value polynomialVariable(mlir::Value v);

/// Returns a value x such that v = 1 / sqrt(x), in any form that exporters write, or null.
mlir::Value matchRsqrt(mlir::Value v);

/// Returns a value of the type of `v` whose square is `v`: x for x * x and pow(x, 2), or null.
mlir::Value matchSquare(mlir::Value v);

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_TRANSFORMS_MATCHERS_H
