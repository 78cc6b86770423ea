//===- ReferenceMath.cpp - Unary mathematics and activations ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/Reference/Support.h"

#include <cmath>
#include <numbers>

using namespace tessera::top;
using namespace tessera::top::reference;
using llvm::LogicalResult;
using llvm::success;

namespace {

/// Computes y[i] = f(x[i]) in double.
template <typename F>
LogicalResult evaluateUnary(Inputs inputs, Outputs outputs, F f) {
  std::vector<double> x = read<double>(*inputs[0]);
  for (double &v : x) {
    v = f(v);
  }
  write(x, outputs[0]);
  return success();
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// Returns ln(1 + e^x) without overflow.
double softplus(double x) { return std::log1p(std::exp(-std::fabs(x))) + (x < 0 ? 0 : x); }

double clamp01(double x) { return x < 0 ? 0 : x > 1 ? 1 : x; }

} // namespace

// --- Unary mathematics ---------------------------------------------------------

LogicalResult CeilOp::evaluate(Inputs inputs, Outputs outputs) {
  return evaluateUnary(inputs, outputs, [](double x) { return std::ceil(x); });
}

LogicalResult FloorOp::evaluate(Inputs inputs, Outputs outputs) {
  return evaluateUnary(inputs, outputs, [](double x) { return std::floor(x); });
}

LogicalResult RoundOp::evaluate(Inputs inputs, Outputs outputs) {
  return evaluateUnary(inputs, outputs, [](double x) { return std::nearbyint(x); });
}

LogicalResult ReciprocalOp::evaluate(Inputs inputs, Outputs outputs) {
  return evaluateUnary(inputs, outputs, [](double x) { return 1 / x; });
}

LogicalResult SqrtOp::evaluate(Inputs inputs, Outputs outputs) {
  return evaluateUnary(inputs, outputs, [](double x) { return std::sqrt(x); });
}

LogicalResult RsqrtOp::evaluate(Inputs inputs, Outputs outputs) {
  return evaluateUnary(inputs, outputs, [](double x) { return 1 / std::sqrt(x); });
}

LogicalResult ExpOp::evaluate(Inputs inputs, Outputs outputs) {
  return evaluateUnary(inputs, outputs, [](double x) { return std::exp(x); });
}

LogicalResult LogOp::evaluate(Inputs inputs, Outputs outputs) {
  return evaluateUnary(inputs, outputs, [](double x) { return std::log(x); });
}

LogicalResult SinOp::evaluate(Inputs inputs, Outputs outputs) {
  return evaluateUnary(inputs, outputs, [](double x) { return std::sin(x); });
}

LogicalResult CosOp::evaluate(Inputs inputs, Outputs outputs) {
  return evaluateUnary(inputs, outputs, [](double x) { return std::cos(x); });
}

LogicalResult TanOp::evaluate(Inputs inputs, Outputs outputs) {
  return evaluateUnary(inputs, outputs, [](double x) { return std::tan(x); });
}

LogicalResult AsinOp::evaluate(Inputs inputs, Outputs outputs) {
  return evaluateUnary(inputs, outputs, [](double x) { return std::asin(x); });
}

LogicalResult AcosOp::evaluate(Inputs inputs, Outputs outputs) {
  return evaluateUnary(inputs, outputs, [](double x) { return std::acos(x); });
}

LogicalResult AtanOp::evaluate(Inputs inputs, Outputs outputs) {
  return evaluateUnary(inputs, outputs, [](double x) { return std::atan(x); });
}

LogicalResult SinhOp::evaluate(Inputs inputs, Outputs outputs) {
  return evaluateUnary(inputs, outputs, [](double x) { return std::sinh(x); });
}

LogicalResult CoshOp::evaluate(Inputs inputs, Outputs outputs) {
  return evaluateUnary(inputs, outputs, [](double x) { return std::cosh(x); });
}

LogicalResult TanhOp::evaluate(Inputs inputs, Outputs outputs) {
  return evaluateUnary(inputs, outputs, [](double x) { return std::tanh(x); });
}

LogicalResult AsinhOp::evaluate(Inputs inputs, Outputs outputs) {
  return evaluateUnary(inputs, outputs, [](double x) { return std::asinh(x); });
}

LogicalResult AcoshOp::evaluate(Inputs inputs, Outputs outputs) {
  return evaluateUnary(inputs, outputs, [](double x) { return std::acosh(x); });
}

LogicalResult AtanhOp::evaluate(Inputs inputs, Outputs outputs) {
  return evaluateUnary(inputs, outputs, [](double x) { return std::atanh(x); });
}

LogicalResult ErfOp::evaluate(Inputs inputs, Outputs outputs) {
  return evaluateUnary(inputs, outputs, [](double x) { return std::erf(x); });
}

// --- Activations ---------------------------------------------------------------

LogicalResult SigmoidOp::evaluate(Inputs inputs, Outputs outputs) { return evaluateUnary(inputs, outputs, sigmoid); }

LogicalResult SiluOp::evaluate(Inputs inputs, Outputs outputs) {
  return evaluateUnary(inputs, outputs, [](double x) { return x * sigmoid(x); });
}

LogicalResult HardSwishOp::evaluate(Inputs inputs, Outputs outputs) {
  return evaluateUnary(inputs, outputs, [](double x) { return x * clamp01(x / 6 + 0.5); });
}

LogicalResult MishOp::evaluate(Inputs inputs, Outputs outputs) {
  return evaluateUnary(inputs, outputs, [](double x) { return x * std::tanh(softplus(x)); });
}

LogicalResult SoftplusOp::evaluate(Inputs inputs, Outputs outputs) { return evaluateUnary(inputs, outputs, softplus); }

LogicalResult SoftsignOp::evaluate(Inputs inputs, Outputs outputs) {
  return evaluateUnary(inputs, outputs, [](double x) { return x / (1 + std::fabs(x)); });
}

LogicalResult GeluOp::evaluate(Inputs inputs, Outputs outputs) {
  if (getTanh()) {
    double c = std::sqrt(2 / std::numbers::pi);
    return evaluateUnary(inputs, outputs,
                         [=](double x) { return 0.5 * x * (1 + std::tanh(c * (x + 0.044715 * x * x * x))); });
  }
  return evaluateUnary(inputs, outputs, [](double x) { return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2)); });
}

LogicalResult LeakyReluOp::evaluate(Inputs inputs, Outputs outputs) {
  double alpha = getAlpha().convertToFloat();
  return evaluateUnary(inputs, outputs, [=](double x) { return x < 0 ? alpha * x : x; });
}

LogicalResult EluOp::evaluate(Inputs inputs, Outputs outputs) {
  double alpha = getAlpha().convertToFloat();
  return evaluateUnary(inputs, outputs, [=](double x) { return x < 0 ? alpha * std::expm1(x) : x; });
}

LogicalResult CeluOp::evaluate(Inputs inputs, Outputs outputs) {
  double alpha = getAlpha().convertToFloat();
  return evaluateUnary(inputs, outputs, [=](double x) {
    double negative = alpha * std::expm1(x / alpha);
    return (x < 0 ? 0 : x) + (negative > 0 ? 0 : negative);
  });
}

LogicalResult ThresholdedReluOp::evaluate(Inputs inputs, Outputs outputs) {
  double alpha = getAlpha().convertToFloat();
  return evaluateUnary(inputs, outputs, [=](double x) { return x > alpha ? x : 0; });
}

LogicalResult SeluOp::evaluate(Inputs inputs, Outputs outputs) {
  double alpha = getAlpha().convertToFloat(), gamma = getGamma().convertToFloat();
  return evaluateUnary(inputs, outputs, [=](double x) { return gamma * (x > 0 ? x : alpha * std::expm1(x)); });
}

LogicalResult HardSigmoidOp::evaluate(Inputs inputs, Outputs outputs) {
  double alpha = getAlpha().convertToFloat(), beta = getBeta().convertToFloat();
  return evaluateUnary(inputs, outputs, [=](double x) { return clamp01(alpha * x + beta); });
}

LogicalResult ShrinkOp::evaluate(Inputs inputs, Outputs outputs) {
  double bias = getBias().convertToFloat(), lambd = getLambd().convertToFloat();
  return evaluateUnary(inputs, outputs, [=](double x) { return x < -lambd ? x + bias : x > lambd ? x - bias : 0; });
}
