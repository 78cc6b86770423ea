//===- Matchers.h - Algebra the recovery passes match with -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Exporters write one formula in many associations. These helpers normalise them, so that a
// pattern is written once, as mathematics.
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

/// Equality of constants that went through single precision.
inline bool isClose(double a, double b) { return std::abs(a - b) <= 2e-6 * std::abs(b) + 1e-12; }

/// v = Op(other, c) (or Op(c, other) for `anyOrder`) with a constant c of equal elements.
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

/// scale * product of factors.
struct Product {
  double scale = 1;
  llvm::SmallVector<mlir::Value, 4> factors;
};

/// Takes `root` apart through mul, neg and div by constants. Inner products are taken apart only
/// where `root` is their single user.
Product flattenProduct(mlir::Value root);

/// Coefficients c0 + c1 x + c2 x^2 + c3 x^3.
using Cubic = std::array<double, 4>;

/// `v` as a polynomial in `x` of degree at most 3, over add, sub, mul, neg, div by constants and
/// whole powers.
std::optional<Cubic> matchCubic(mlir::Value v, mlir::Value x);

/// Whether two cubics agree within single precision.
bool isClose(const Cubic &a, const Cubic &b);

/// The one input that a tree of polynomial ops over constants is made of (found by following the
/// operands that are no constants), or null. A candidate for matchCubic.
mlir::Value polynomialVariable(mlir::Value v);

/// A value that equals 1 / sqrt(result), in any of the forms exporters write, or null.
mlir::Value matchRsqrt(mlir::Value v);

/// A value of the type of v whose square is v: x for x * x and pow(x, 2), or null.
mlir::Value matchSquare(mlir::Value v);

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_TRANSFORMS_MATCHERS_H
