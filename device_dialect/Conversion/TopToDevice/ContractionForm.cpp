//===- ContractionForm.cpp - Conversion of integer sums to results --------===//
// SPDX-License-Identifier: Apache-2.0
//
// Emits the arithmetic of bmodel/numerics.h as arith ops.
//===----------------------------------------------------------------------===//
#include "device_dialect/Conversion/TopToDevice/Quantized.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <cmath>
#include <limits>

using namespace mlir;
using bmodel::numerics::FixedFactor;

namespace tessera::device {

ContractionForm::ContractionForm(const ContractionTail &tail, ArrayRef<double> scales, Requantisation requantisation)
    : requantisation(requantisation) {
  for (double scale : scales) {
    double factor = tail.output ? scale / tail.output->scale : scale;
    factors.push_back(tail.output && requantisation != Requantisation::Float ? factor : static_cast<float>(factor));
  }
  if (tail.output) {
    quantised = true;
    resultElement = tail.output->element;
    zero = tail.output->zero;
    // Quantising is monotone: clamping to the quantised bounds equals quantising the clamped value.
    low = tail.output->quantize(tail.low), high = tail.output->quantize(tail.high);
    return;
  }
  resultElement = Float32Type::get(tail.last->getContext());
  low = tail.low, high = tail.high;
}

bool ContractionForm::oneFactor() const { return llvm::all_equal(factors); }

bool ContractionForm::inIntegers() const { return quantised && requantisation != Requantisation::Float; }

void ContractionForm::repeat(int64_t count, bool together) {
  SmallVector<double> repeated;
  for (size_t i = 0, channels = factors.size(); i < channels * size_t(count); ++i) {
    repeated.push_back(factors[together ? i / size_t(count) : i % channels]);
  }
  factors = repeated;
}

SmallVector<Value> ContractionForm::operands(Lowering &lower, ArrayRef<int64_t> dims) const {
  if (oneFactor()) {
    return {};
  }
  if (!inIntegers()) {
    return {lower.constant(factors, lower.rewriter.getF32Type(), dims, "factors")};
  }
  SmallVector<double> mantissas, shifts;
  for (double factor : factors) {
    FixedFactor fixed = bmodel::numerics::toFixed(factor);
    mantissas.push_back(fixed.mantissa), shifts.push_back(fixed.shift);
  }
  Type i32 = lower.rewriter.getI32Type();
  return {lower.constant(mantissas, i32, dims, "mantissas"), lower.constant(shifts, i32, dims, "shifts")};
}

namespace {
/// Helpers for formulas on an i64 scalar.
struct Long {
  OpBuilder *builder;
  Location loc;
  Value value;

  Long lit(int64_t number) const {
    return {builder, loc, arith::ConstantOp::create(*builder, loc, builder->getI64IntegerAttr(number))};
  }
  template <typename Op>
  Long make(Long other) const {
    return {builder, loc, Op::create(*builder, loc, value, other.value)};
  }
  Long operator+(Long other) const { return make<arith::AddIOp>(other); }
  Long operator-(Long other) const { return make<arith::SubIOp>(other); }
  Long operator*(Long other) const { return make<arith::MulIOp>(other); }
  Long operator&(Long other) const { return make<arith::AndIOp>(other); }
  Long operator<<(Long other) const { return make<arith::ShLIOp>(other); }
  Long operator>>(Long other) const { return make<arith::ShRSIOp>(other); }
  Long clamp(int64_t low, int64_t high) const { return make<arith::MaxSIOp>(lit(low)).make<arith::MinSIOp>(lit(high)); }
  Long isGreater(Long other) const {
    Value greater = arith::CmpIOp::create(*builder, loc, arith::CmpIPredicate::sgt, value, other.value);
    return {builder, loc, arith::ExtUIOp::create(*builder, loc, builder->getI64Type(), greater)};
  }
  static Long extend(OpBuilder &builder, Location loc, Value narrow) {
    return {&builder, loc, arith::ExtSIOp::create(builder, loc, builder.getI64Type(), narrow)};
  }
};
} // namespace

/// Emit numerics::requantiseFixed() and requantiseTflite() without zero point and bounds.
static Long emitFixed(Long sum, Long mantissa, Long shift) {
  return (sum * mantissa + (sum.lit(1) << (shift - sum.lit(1)))) >> shift;
}

static Long emitTflite(Long sum, Long mantissa, Long shift) {
  Long zero = sum.lit(0), one = sum.lit(1), rest = shift - sum.lit(31);
  Long right = rest.make<arith::MaxSIOp>(zero), left = (zero - rest).make<arith::MaxSIOp>(zero);
  Long shifted = (sum << left).clamp(std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max());
  Long rounded = (shifted * mantissa + sum.lit(int64_t(1) << 30)) >> sum.lit(31);
  Long mask = (one << right) - one, threshold = (mask >> one) + zero.isGreater(rounded);
  return (rounded >> right) + (rounded & mask).isGreater(threshold);
}

Value ContractionForm::emit(OpBuilder &builder, Location loc, Value sum, ValueRange operands) const {
  if (inIntegers()) {
    return emitInIntegers(builder, loc, sum, operands);
  }
  Value factor =
      operands.empty() ? scalarConstant(builder, loc, builder.getF32Type(), factors.front()) : operands.front();
  Value real = arith::SIToFPOp::create(builder, loc, builder.getF32Type(), sum);
  real = arith::MulFOp::create(builder, loc, real, factor);
  if (quantised) {
    real = math::RoundEvenOp::create(builder, loc, real);
    if (zero != 0) {
      real = arith::AddFOp::create(builder, loc, real, scalarConstant(builder, loc, real.getType(), zero));
    }
  }
  if (!std::isinf(low)) {
    real = arith::MaximumFOp::create(builder, loc, real, scalarConstant(builder, loc, real.getType(), low));
  }
  if (!std::isinf(high)) {
    real = arith::MinimumFOp::create(builder, loc, real, scalarConstant(builder, loc, real.getType(), high));
  }
  return quantised ? narrow(builder, loc, arith::FPToSIOp::create(builder, loc, builder.getI32Type(), real)) : real;
}

Value ContractionForm::emitInIntegers(OpBuilder &builder, Location loc, Value sum, ValueRange operands) const {
  Long wide = Long::extend(builder, loc, sum), mantissa = wide, shift = wide;
  if (operands.empty()) {
    FixedFactor fixed = bmodel::numerics::toFixed(factors.front());
    mantissa = wide.lit(fixed.mantissa), shift = wide.lit(fixed.shift);
  } else {
    mantissa = Long::extend(builder, loc, operands[0]), shift = Long::extend(builder, loc, operands[1]);
  }
  Long result =
      requantisation == Requantisation::Fixed ? emitFixed(wide, mantissa, shift) : emitTflite(wide, mantissa, shift);
  if (zero != 0) {
    result = result + wide.lit(static_cast<int64_t>(zero));
  }
  return narrow(builder, loc, result.clamp(static_cast<int64_t>(low), static_cast<int64_t>(high)).value);
}

Value ContractionForm::narrow(OpBuilder &builder, Location loc, Value integer) const {
  return arith::TruncIOp::create(builder, loc, builder.getIntegerType(resultElement.getIntOrFloatBitWidth()), integer);
}

} // namespace tessera::device
