//===- ReferenceQuantize.cpp - quantize and dequantize, in f32 as defined --===//
// SPDX-License-Identifier: Apache-2.0
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
