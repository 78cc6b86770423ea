//===- QuantisedTables.cpp - Handlers that look results up ----------------===//
// SPDX-License-Identifier: Apache-2.0
//
// A function of one integer is computed here for each of its arguments, with the arithmetic of LiteRT's kernels.
#include "top_dialect/Import/Tflite/QuantisedImporter.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>

namespace tessera::top::tflite_import {
namespace {

/// Sets the result to function(x) for each integer x of input 0.
void setTable(QuantisedImporter &q, llvm::function_ref<int64_t(int64_t)> function) {
  OperatorImporter &n = q.n;
  Value x = n.input(0);
  if (!n.failed() && n.elementType(x) != q.outputType()) {
    n.unsupported("its operand and its result have different types");
  }
  if (n.failed()) {
    return;
  }
  auto [low, high] = limitsOf(q.outputType());
  Ints table;
  for (int64_t value = low; value <= high; ++value) {
    table.push_back(function(value));
  }
  n.setOutput(0, q.lookUp(x, table, q.outputType()));
}

/// Sets the result to that of a function of real numbers in single precision.
void setRealTable(OperatorImporter &n, llvm::function_ref<float(float)> function) {
  QuantisedImporter q(n);
  Quantisation x = q.input(0), y = q.output();
  Range range = q.outputRange();
  if (!n.failed() && q.outputType().getIntOrFloatBitWidth() != 8) {
    n.unsupported("only INT8 and UINT8 are supported");
  }
  float inverse = 1.0f / y.scale();
  setTable(q, [&](int64_t value) {
    float result = function(x.scale() * float(value - x.zero()));
    float steps = std::clamp(std::round(result * inverse), -1e9f, 1e9f);
    return std::clamp(int64_t(steps) + range.zero, range.low, range.high);
  });
}

bool requireOutput(QuantisedImporter &q, float scale, int64_t zero) {
  Quantisation y = q.output();
  if (!q.n.failed() && (y.scale() != scale || y.zero() != zero)) {
    q.n.unsupported(llvm::formatv("its result has scale {0:e} and zero point {1}; LiteRT needs {2:e} and {3}",
                                  y.scale(), y.zero(), scale, zero));
  }
  return !q.n.failed();
}

//===----------------------------------------------------------------------===//
// Logistic function and tanh
//===----------------------------------------------------------------------===//

/// Returns the logistic function at multiples of 1/24 in units of 2^-16. Each is raised by half the largest error of
/// the interpolation between them, as in LiteRT's table.
llvm::SmallVector<int64_t> sigmoidSteps() {
  llvm::SmallVector<int64_t> steps;
  for (int i = 0; i < 255; ++i) {
    double y = 1 / (1 + std::exp(-i / 24.0)), curvature = y * (1 - y) * (2 * y - 1);
    steps.push_back(std::llround(65536 * (y + curvature / (24.0 * 24.0 * 16.0))));
  }
  steps.push_back(65535);
  return steps;
}

/// Scaling of i16 to arguments of sigmoidSteps(); a multiplier of 0 means that the scale is a power of two.
struct ArgumentScale {
  int64_t multiplier = 0;
  int shift = 0;
};

ArgumentScale argumentScale(float scale, int maxShift) {
  float exponent = std::log(scale) * (1.0f / std::log(2.0f)), rounded = std::round(exponent);
  int shift = 12 + int(rounded);
  if (std::abs(exponent - rounded) < 1e-3f && shift >= 0 && shift <= maxShift) {
    return {0, shift};
  }
  double multiplier = double(scale) * 4096.0 * 3.0;
  for (shift = 0; multiplier <= 32767.0 / 2.0 && shift <= 30; ++shift) {
    multiplier *= 2;
  }
  return {int64_t(std::min(multiplier, 2147483647.0)), shift};
}

/// Interpolates sigmoidSteps() at |position|, which has |bits| fractional bits.
int64_t interpolate(llvm::ArrayRef<int64_t> steps, int64_t position, int bits, int64_t saturated) {
  int64_t at = position >> bits, rest = position & ((int64_t(1) << bits) - 1);
  return at >= 255 ? saturated : (steps[at] << bits) + rest * (steps[at + 1] - steps[at]);
}

/// Returns the argument of sigmoidSteps() for an i16.
int64_t argumentOf(int64_t value, const ArgumentScale &scale) {
  return scale.multiplier
             ? (value * scale.multiplier + (scale.shift > 0 ? int64_t(1) << (scale.shift - 1) : 0)) >> scale.shift
             : value * 3 << scale.shift;
}

void wideLogistic(QuantisedImporter &q) {
  ArgumentScale scale = argumentScale(q.input(0).scale(), 0);
  llvm::SmallVector<int64_t> steps = sigmoidSteps();
  setTable(q, [&](int64_t value) {
    int64_t x = argumentOf(value, scale), y = interpolate(steps, std::abs(x), 9, int64_t(0x7FFF) << 10);
    return (x >= 0 ? y + (1 << 9) : (int64_t(1) << 25) - y + (1 << 9) - 1) >> 10;
  });
}

void logistic(OperatorImporter &n) {
  QuantisedImporter q(n);
  mlir::Type type = q.outputType();
  bool isWide = type.isInteger(16);
  if (!requireOutput(q, isWide ? 1.0f / 32768 : 1.0f / 256, isWide ? 0 : q.output().zero())) {
    return;
  }
  isWide ? wideLogistic(q) : setRealTable(n, [](float x) { return 1.0f / (1.0f + std::exp(-x)); });
}

void wideTanh(QuantisedImporter &q) {
  ArgumentScale scale = argumentScale(q.input(0).scale(), 1);
  llvm::SmallVector<int64_t> steps = sigmoidSteps();
  setTable(q, [&](int64_t value) {
    int64_t x = argumentOf(value, scale), y = interpolate(steps, std::abs(x), 8, int64_t(0xFFFF) << 8);
    return (x >= 0 ? y - (1 << 23) + (1 << 7) : -y + (1 << 23) + (1 << 7) - 1) >> 8;
  });
}

void tanh(OperatorImporter &n) {
  QuantisedImporter q(n);
  if (!q.outputType().isInteger(16)) {
    return setRealTable(n, [](float x) { return std::tanh(x); });
  }
  if (requireOutput(q, 1.0f / 32768, 0)) {
    wideTanh(q);
  }
}

//===----------------------------------------------------------------------===//
// Hard swish, in fixed-point arithmetic of 16 bits
//===----------------------------------------------------------------------===//

int64_t saturated16(int64_t value) { return std::clamp<int64_t>(value, INT16_MIN, INT16_MAX); }

/// Returns a b / 2^15, with halves away from zero.
int64_t roundedProduct16(int64_t a, int64_t b) {
  int64_t product = a * b;
  return saturated16((product + (product >= 0 ? 1 << 14 : 1 - (1 << 14))) / (1 << 15));
}

/// Returns x / 2^shift, with halves away from zero.
int64_t roundedShift(int64_t x, int shift) {
  int64_t mask = (int64_t(1) << shift) - 1;
  return (x >> shift) + ((x & mask) > (mask >> 1) + (x < 0));
}

/// A factor as mantissa / 2^15 times 2^exponent.
struct Factor16 {
  int64_t mantissa;
  int exponent;

  explicit Factor16(float factor) {
    FixedFactor fixed = toFixedFactor(factor);
    mantissa = fixed.mantissa >= INT32_MAX - (1 << 15) ? INT16_MAX : (fixed.mantissa + (1 << 15)) >> 16;
    exponent = 31 - fixed.shift;
  }
};

/// Returns x (min(max(x + 3, 0), 6)) / 6 in units of 2^-15 of the result before its final shift.
int64_t hardSwishOf(int64_t x, const Factor16 &result, const Factor16 &relu) {
  int64_t fine = x * 128, gate = fine;
  if (relu.exponent > 0) {
    gate = saturated16(gate << (relu.exponent - 1));
  }
  gate = roundedProduct16(gate, relu.mantissa);
  if (relu.exponent > 0) {
    gate = saturated16(gate << 1);
  } else if (relu.exponent < 0) {
    gate = roundedShift(gate, -relu.exponent);
  }
  gate = (gate + (1 << 15)) >> 1;
  return saturated16(gate * roundedProduct16(fine, result.mantissa) / (1 << 15));
}

void hardSwish(OperatorImporter &n) {
  QuantisedImporter q(n);
  Quantisation x = q.input(0), y = q.output();
  Range range = q.outputRange();
  float fine = (1.0f / 128.0f) * x.scale();
  Factor16 result(fine / y.scale()), relu(fine / (3.0f / 32768.0f));
  if (!n.failed() && (q.outputType().getIntOrFloatBitWidth() != 8 || result.exponent > 0 || relu.exponent > 15)) {
    return n.unsupported("only INT8 and UINT8 with scales that LiteRT accepts are supported");
  }
  setTable(q, [&](int64_t value) {
    int64_t steps = roundedShift(hardSwishOf(value - x.zero(), result, relu), -result.exponent);
    return std::clamp(steps + range.zero, range.low, range.high);
  });
}

} // namespace

llvm::ArrayRef<HandlerEntry> quantisedTableHandlers() {
  using Code = tflite::BuiltinOperator;
  static const HandlerEntry entries[] = {{Code::LOGISTIC, logistic}, {Code::TANH, tanh}, {Code::HARD_SWISH, hardSwish}};
  return entries;
}

} // namespace tessera::top::tflite_import
