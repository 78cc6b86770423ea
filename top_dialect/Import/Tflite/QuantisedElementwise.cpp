//===- QuantisedElementwise.cpp - Handlers of elementwise integers --------===//
// SPDX-License-Identifier: Apache-2.0
//
// LiteRT computes some factors in single precision and others in double precision; so do these handlers.
#include "top_dialect/Import/Tflite/QuantisedImporter.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <limits>

namespace tessera::top::tflite_import {
namespace {

/// Checks that all operands and the result have one integer type; returns false after an error.
bool requireOneType(QuantisedImporter &q) {
  OperatorImporter &n = q.n;
  mlir::Type type = q.outputType();
  for (unsigned i = 0; i < n.numInputs() && !n.failed(); ++i) {
    if (n.elementType(n.input(i)) != type) {
      n.unsupported("its operands and its result have different types");
    }
  }
  return !n.failed();
}

/// Returns the exponent of a scale that is nearly a power of two, as LiteRT judges it.
std::optional<int> exponentOf(float scale) {
  float exponent = std::log(scale) * (1.0f / std::log(2.0f)), rounded = std::round(exponent);
  return std::abs(exponent - rounded) < 1e-3f ? std::optional(int(rounded)) : std::nullopt;
}

/// Adds or subtracts i16 whose scales are powers of two; one operand has the scale of the result.
template <typename Op>
Value combineByShifts(QuantisedImporter &q, llvm::ArrayRef<int> exponents, const Range &range) {
  OperatorImporter &n = q.n;
  Value operands[2];
  for (int i : {0, 1}) {
    int shift = exponents[2] - exponents[i];
    if (shift < 0 || shift > 15 || exponents[2] != std::max(exponents[0], exponents[1])) {
      n.unsupported("its scales are powers of two that LiteRT does not accept");
      return n.input(0);
    }
    operands[i] = q.centredInput(i);
    if (shift > 0) {
      operands[i] = q.roundedQuotient(operands[i], q.number(int64_t(1) << shift), q.number(int64_t(1) << (shift - 1)));
    }
  }
  return q.saturate(n.create<Op>(operands[0], operands[1]), range, q.outputType());
}

/// Scales both operands to a common scale, and their sum or difference to that of the result.
template <typename Op, typename Options>
void combine(OperatorImporter &n) {
  const auto &options = n.options<Options>();
  QuantisedImporter q(n);
  Quantisation a = q.input(0), c = q.input(1), y = q.output();
  Range range = q.outputRange(options.fused_activation_function());
  if (!requireOneType(q)) {
    return;
  }
  bool isWide = q.outputType().isInteger(16);
  auto ea = exponentOf(a.scale()), ec = exponentOf(c.scale()), ey = exponentOf(y.scale());
  if (isWide && options.pot_scale_int16() && ea && ec && ey) {
    return n.setOutput(0, combineByShifts<Op>(q, {*ea, *ec, *ey}, range));
  }
  int64_t unit = int64_t(1) << (isWide ? 15 : 20);
  double common = 2 * double(std::max(a.scale(), c.scale()));
  auto operand = [&](unsigned i, const Quantisation &x) {
    return q.scaled(n.create<MulOp>(q.centredInput(i), q.number(unit)), double(x.scale()) / common);
  };
  Value sum = n.create<Op>(operand(0, a), operand(1, c));
  n.setOutput(0, q.requantise(sum, common / (double(unit) * double(y.scale())), range, q.outputType()));
}

void multiply(OperatorImporter &n) {
  QuantisedImporter q(n);
  Quantisation a = q.input(0), c = q.input(1), y = q.output();
  Range range = q.outputRange(n.options<tflite::MulOptions>().fused_activation_function());
  if (requireOneType(q)) {
    Value product = n.create<MulOp>(q.centredInput(0), q.centredInput(1));
    n.setOutput(0, q.requantise(product, a.scale() * c.scale() / y.scale(), range, q.outputType()));
  }
}

template <tflite::ActivationFunctionType activation>
void relu(OperatorImporter &n) {
  QuantisedImporter q(n);
  Range range = q.outputRange(activation);
  double factor = q.input(0).scale() / q.output().scale();
  if (requireOneType(q)) {
    n.setOutput(0, q.requantise(q.centredInput(0), factor, range, q.outputType()));
  }
}

/// Selects |negative| where |x| is below 0.
Value selectNegative(QuantisedImporter &q, Value x, Value negative, Value other) {
  return q.n.create<WhereOp>(q.isNegative(x), negative, other);
}

void leakyRelu(OperatorImporter &n) {
  float alpha = n.options<tflite::LeakyReluOptions>().alpha();
  QuantisedImporter q(n);
  Quantisation a = q.input(0), y = q.output();
  Range range = q.outputRange();
  if (!requireOneType(q)) {
    return;
  }
  if (!(alpha >= 0) || std::isinf(alpha)) {
    return n.unsupported(llvm::formatv("its alpha is {0}; supported are positive numbers and 0", alpha));
  }
  Value x = q.centredInput(0);
  Value slope = q.requantise(x, a.scale() * alpha / y.scale(), range, q.outputType());
  n.setOutput(0, selectNegative(q, x, slope, q.requantise(x, a.scale() / y.scale(), range, q.outputType())));
}

void prelu(OperatorImporter &n) {
  QuantisedImporter q(n);
  Quantisation a = q.input(0), alpha = q.input(1), y = q.output();
  Range range = q.outputRange();
  if (!requireOneType(q)) {
    return;
  }
  Value x = q.centredInput(0), product = n.create<MulOp>(x, q.centredInput(1));
  Value slope = q.requantise(product, a.scale() * alpha.scale() / y.scale(), range, q.outputType());
  n.setOutput(0, selectNegative(q, x, slope, q.requantise(x, a.scale() / y.scale(), range, q.outputType())));
}

/// Quantises floats, or scales integers.
void quantize(OperatorImporter &n) {
  QuantisedImporter q(n);
  Quantisation y = q.output();
  Range range = q.outputRange();
  if (y.isPerChannel()) {
    n.unsupported("a result with scales per channel is not supported");
  }
  Value x = n.input(0);
  if (n.failed()) {
    return;
  }
  if (!n.isFloat(x)) {
    double factor = double(q.input(0).scale()) / double(y.scale());
    return n.setOutput(0, q.requantise(q.centredInput(0), factor, range, q.outputType()));
  }
  Value steps = q.roundedAway(n.create<DivOp>(n.cast(x, n.b.f32()), n.b.scalar(n.b.f32(), y.scale())));
  Value shifted = n.create<AddOp>(steps, n.b.scalar(n.b.f32(), double(range.zero)));
  n.setOutput(0, n.cast(n.clip(shifted, double(range.low), double(range.high)), q.outputType()));
}

void dequantize(OperatorImporter &n) { n.setOutput(0, n.dequantise(n.input(0), 0)); }

} // namespace

llvm::ArrayRef<HandlerEntry> quantisedElementwiseHandlers() {
  using Code = tflite::BuiltinOperator;
  using Kind = tflite::ActivationFunctionType;
  static const HandlerEntry entries[] = {
      {Code::ADD, combine<AddOp, tflite::AddOptions>},
      {Code::SUB, combine<SubOp, tflite::SubOptions>},
      {Code::MUL, multiply},
      {Code::RELU, relu<Kind::RELU>},
      {Code::RELU6, relu<Kind::RELU6>},
      {Code::RELU_N1_TO_1, relu<Kind::RELU_N1_TO_1>},
      {Code::LEAKY_RELU, leakyRelu},
      {Code::PRELU, prelu},
      {Code::QUANTIZE, quantize},
      {Code::DEQUANTIZE, dequantize},
  };
  return entries;
}

} // namespace tessera::top::tflite_import
