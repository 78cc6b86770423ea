//===- ContractionForm.cpp - Conversion of integer sums to results --------===//
// SPDX-License-Identifier: Apache-2.0
//
// Emits the arithmetic of bmodel/numerics.h as arith ops.
//===----------------------------------------------------------------------===//
#include "device_dialect/Conversion/TopToDevice/Quantized.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "top_dialect/IR/FixedPoint.h"
#include <cmath>

using namespace mlir;
using bmodel::numerics::FixedFactor;
using tessera::top::detail::Long;

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
      requantisation == Requantisation::Fixed ? scaleOnce(wide, mantissa, shift) : scaleTwice(wide, mantissa, shift);
  if (zero != 0) {
    result = result + wide.lit(static_cast<int64_t>(zero));
  }
  return narrow(builder, loc, result.clamp(static_cast<int64_t>(low), static_cast<int64_t>(high)).value);
}

Value ContractionForm::narrow(OpBuilder &builder, Location loc, Value integer) const {
  return arith::TruncIOp::create(builder, loc, builder.getIntegerType(resultElement.getIntOrFloatBitWidth()), integer);
}

} // namespace tessera::device
