//===- ScalarEmitter.h - Scalar arithmetic on arith and math ops ---===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IR_SCALAREMITTER_H
#define TESSERA_TOP_DIALECT_IR_SCALAREMITTER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"

namespace tessera::top::detail {

/// Emits arithmetic on scalars or vectors of one type, choosing the float, signed or unsigned op. `isUnsigned` follows
/// from the tensor's element type, as scalars are signless.
class ScalarEmitter {
public:
  ScalarEmitter(mlir::OpBuilder &builder, mlir::Location loc, bool isUnsigned = false)
      : builder(builder), loc(loc), isUnsigned(isUnsigned) {}

  /// Creates a constant of the type of `like`.
  mlir::Value constant(mlir::Value like, double value) { return constantOf(like.getType(), value); }
  mlir::Value constantOf(mlir::Type type, double value);

  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value sub(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, mlir::Value b);
  mlir::Value div(mlir::Value a, mlir::Value b);
  /// max and min return NaN if either operand is NaN.
  mlir::Value max(mlir::Value a, mlir::Value b);
  mlir::Value min(mlir::Value a, mlir::Value b);
  mlir::Value neg(mlir::Value x);
  mlir::Value abs(mlir::Value x);
  mlir::Value select(mlir::Value cond, mlir::Value a, mlir::Value b);
  /// Comparisons are ordered, but `notEqual` is true for NaN.
  mlir::Value less(mlir::Value a, mlir::Value b);
  mlir::Value lessEqual(mlir::Value a, mlir::Value b);
  mlir::Value equal(mlir::Value a, mlir::Value b);
  mlir::Value notEqual(mlir::Value a, mlir::Value b);

  /// Emits ln(1 + e^x) without overflow.
  mlir::Value softplus(mlir::Value x);
  /// Emits 1 / (1 + e^-x).
  mlir::Value sigmoid(mlir::Value x);
  mlir::Value clamp(mlir::Value x, double lo, double hi);

  template <typename Op>
  mlir::Value math(mlir::Value x) {
    return Op::create(builder, loc, x);
  }

  /// Converts to `element`, a float or signless integer type or i1.
  mlir::Value cast(mlir::Value x, mlir::Type element, bool toUnsigned);

private:
  mlir::Value castToUnsigned64(mlir::Value x);
  mlir::Value compare(mlir::arith::CmpFPredicate onFloat, mlir::arith::CmpIPredicate onSigned,
                      mlir::arith::CmpIPredicate onUnsigned, mlir::Value a, mlir::Value b);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  bool isUnsigned;
};

/// Returns true for integers that are compared, divided and widened as unsigned: `ui*` and i1.
bool isUnsignedElement(mlir::Type element);

} // namespace tessera::top::detail

#endif // TESSERA_TOP_DIALECT_IR_SCALAREMITTER_H
