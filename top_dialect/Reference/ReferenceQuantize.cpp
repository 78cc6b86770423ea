//===- ReferenceQuantize.cpp - Quantisation ops, as defined -----------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/TopFixedPointOps.h"
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/Reference/Support.h"

#include <algorithm>
#include <cmath>

using namespace tessera::top;
using namespace tessera::top::reference;
using llvm::LogicalResult;
using llvm::success;

LogicalResult QuantizeOp::evaluate(Inputs inputs, Outputs outputs) {
  DimsRef shape = outputs[0].getShape();
  mlir::Type type = outputs[0].getElementType();
  double low = type.isUnsignedInteger() ? 0 : -std::exp2(type.getIntOrFloatBitWidth() - 1);
  double high = low + std::exp2(type.getIntOrFloatBitWidth()) - 1;
  if (auto levels = static_cast<double>(getLevels()); levels != 0) {
    low = -levels, high = levels;
  }
  std::vector<double> x = read<double>(*inputs[0]);
  std::vector<double> scale = readBroadcast<double>(*inputs[1], shape);
  std::vector<double> zeroPoint = readBroadcast<double>(*inputs[2], shape);
  for (size_t i = 0; i < x.size(); ++i) {
    float quotient = static_cast<float>(x[i]) / static_cast<float>(scale[i]);
    float shifted = std::nearbyint(quotient) + static_cast<float>(zeroPoint[i]);
    x[i] = std::isnan(shifted) ? 0.0 : std::clamp<double>(shifted, low, high);
  }
  write(x, outputs[0]);
  return success();
}

LogicalResult DequantizeOp::evaluate(Inputs inputs, Outputs outputs) {
  DimsRef shape = outputs[0].getShape();
  std::vector<int64_t> x = read<int64_t>(*inputs[0]);
  std::vector<double> scale = readBroadcast<double>(*inputs[1], shape);
  std::vector<int64_t> zeroPoint = readBroadcast<int64_t>(*inputs[2], shape);
  std::vector<double> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    auto centred = static_cast<int32_t>(x[i] - zeroPoint[i]);
    y[i] = static_cast<float>(centred) * static_cast<float>(scale[i]);
  }
  write(y, outputs[0]);
  return success();
}

/// Returns x * multiplier / 2^shift, rounded to an integer once, halves upwards.
static int64_t scaledOnce(int64_t x, int64_t multiplier, int64_t shift) {
  return (x * multiplier + (int64_t(1) << (shift - 1))) >> shift;
}

/// Rounds to x * multiplier / 2^31 first, and then to the result, halves away from zero.
static int64_t scaledTwice(int64_t x, int64_t multiplier, int64_t shift) {
  int64_t left = std::max<int64_t>(31 - shift, 0), right = std::max<int64_t>(shift - 31, 0);
  int64_t moved = std::clamp<int64_t>(x << left, INT32_MIN, INT32_MAX), high = scaledOnce(moved, multiplier, 31);
  if (right == 0) {
    return high;
  }
  int64_t half = int64_t(1) << (right - 1);
  return high >= 0 ? (high + half) >> right : -((-high + half) >> right);
}

LogicalResult RequantizeOp::evaluate(Inputs inputs, Outputs outputs) {
  DimsRef shape = outputs[0].getShape();
  std::vector<int64_t> x = read<int64_t>(*inputs[0]);
  std::vector<int64_t> multiplier = readBroadcast<int64_t>(*inputs[1], shape);
  std::vector<int64_t> shift = readBroadcast<int64_t>(*inputs[2], shape);
  auto zero = static_cast<int64_t>(getZero()), low = static_cast<int64_t>(getLow());
  auto high = static_cast<int64_t>(getHigh());
  bool isWide = inputs[0]->getElementType().isInteger(64);
  for (size_t i = 0; i < x.size(); ++i) {
    int64_t by = std::clamp<int64_t>(shift[i], 1, 62);
    x[i] = isWide ? scaledOnce(x[i], multiplier[i], by) : scaledTwice(x[i], multiplier[i], by);
    x[i] = std::clamp(x[i] + zero, low, high);
  }
  write(x, outputs[0]);
  return success();
}
