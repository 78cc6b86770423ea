//===- FixedPoint.h - Fixed-point scaling as arith ops ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Emits the integer arithmetic of bmodel/numerics.h.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_TOP_DIALECT_IR_FIXEDPOINT_H
#define TESSERA_TOP_DIALECT_IR_FIXEDPOINT_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

namespace tessera::top::detail {

/// An i64 scalar or vector in a formula.
struct Long {
  mlir::OpBuilder *builder;
  mlir::Location loc;
  mlir::Value value;

  /// Returns |integer|, of at most 64 bits, sign-extended.
  static Long extend(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value integer);
  Long lit(int64_t number) const;
  template <typename Op>
  Long make(Long other) const {
    return {builder, loc, Op::create(*builder, loc, value, other.value)};
  }
  Long operator+(Long other) const { return make<mlir::arith::AddIOp>(other); }
  Long operator-(Long other) const { return make<mlir::arith::SubIOp>(other); }
  Long operator*(Long other) const { return make<mlir::arith::MulIOp>(other); }
  Long operator&(Long other) const { return make<mlir::arith::AndIOp>(other); }
  Long operator<<(Long other) const { return make<mlir::arith::ShLIOp>(other); }
  Long operator>>(Long other) const { return make<mlir::arith::ShRSIOp>(other); }
  Long clamp(int64_t low, int64_t high) const {
    return make<mlir::arith::MaxSIOp>(lit(low)).make<mlir::arith::MinSIOp>(lit(high));
  }
  /// Returns 1 or 0.
  Long isGreater(Long other) const;
  /// Truncates to the signless integer type |element|.
  mlir::Value narrow(mlir::Type element) const;
};

/// Computes numerics::requantiseFixed() without zero point and bounds: one rounding.
Long scaleOnce(Long sum, Long mantissa, Long shift);
/// Computes numerics::requantiseTflite() without zero point and bounds: two roundings.
Long scaleTwice(Long sum, Long mantissa, Long shift);

} // namespace tessera::top::detail

#endif // TESSERA_TOP_DIALECT_IR_FIXEDPOINT_H
