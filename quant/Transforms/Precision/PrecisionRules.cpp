//===- PrecisionRules.cpp - Precisions that an op can have ----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "quant/Transforms/Precision/PrecisionRules.h"

#include "quant/Transforms/Precision/OpKinds.h"
#include "quant/Transforms/Weights/BlockMatMuls.h"
#include "quant/Transforms/Weights/WeightOnly.h"
#include "quant/Transforms/Weights/Weights.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/Sizes.h"
#include "top_dialect/IR/State.h"
#include "top_dialect/IR/TensorTypes.h"
#include "top_dialect/IR/TopBlockOps.h"
#include "top_dialect/IR/TopCustomOps.h"
#include "top_dialect/IR/TopOps.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace mlir;

namespace tessera::quant {
namespace {

constexpr float kLargestF16 = 65504;

/// Returns why f16 cannot hold a constant or a result of `op`; empty if it can. Infinities are allowed.
std::string beyondF16(Operation *op, const CalibrationTable &table) {
  for (Value operand : op->getOperands()) {
    std::optional<top::TensorData> data = isF32(operand) ? top::getConstantData(operand) : std::nullopt;
    float largest = 0;
    for (float value : data ? data->data<float>() : ArrayRef<float>()) {
      largest = std::isfinite(value) ? std::max(largest, std::fabs(value)) : largest;
    }
    if (largest > kLargestF16) {
      return llvm::formatv("a constant reaches {0:e3}, the largest f16 is {1}", largest, int64_t(kLargestF16));
    }
  }
  for (Value value : op->getResults()) {
    const Range *range = table.find(top::getTensorName(value));
    if (float largest = range ? range->magnitude() : 0; largest > kLargestF16) {
      return llvm::formatv("its result reaches {0:e3}, the largest f16 is {1}", largest, int64_t(kLargestF16));
    }
  }
  return "";
}

/// Checks that `value` is a finite f32 constant of at least two dims.
bool isWeight(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() >= 2 && isFinite(value) && numElements(type) > 0;
}

/// Returns why `op` cannot have integer weights and compute in float; empty if it can.
std::string reasonAgainstWeights(Operation *op, bool fourBits) {
  if (auto gather = dyn_cast<top::GatherOp>(op)) {
    if (gather.getAxis() != 0 || !isWeight(op->getOperand(0))) {
      return "it does not gather rows of a constant f32 table";
    }
    return fourBits ? "tables keep 8 bits" : "";
  }
  if (!isa<top::ConvOp, top::ConvTransposeOp, top::MatMulOp>(op)) {
    return op->getName().getStringRef().str() + " does not have weights";
  }
  Value weight = op->getOperand(1);
  if (!top::isConstant(weight)) {
    return "its weight is computed at run time";
  }
  if (isa<top::ConvTransposeOp>(op)) {
    return "weights of top.conv_transpose stay f32";
  }
  if (isa<top::MatMulOp>(op) && typeOf(weight).getRank() != 2) {
    return "its weight is not a single matrix";
  }
  if (!isWeight(weight)) {
    return "its weight is not f32, or contains NaN or infinity";
  }
  return fourBits && !hasGroups(op) ? "it has fewer than 16 input channels, the size of a group of 4-bit weights" : "";
}

/// Returns why `op` cannot multiply blocks of rows that are quantised at run time; empty if it can.
std::string reasonAgainstBlocks(Operation *op) {
  auto matmul = dyn_cast<top::MatMulOp>(op);
  if (!matmul) {
    return op->getName().getStringRef().str() + " cannot quantise blocks of its input; only top.matmul can";
  }
  if (matmul.getTransA() || !isF32(matmul.getA())) {
    return "its first operand is transposed or not f32";
  }
  return hasBlockWeights(op) ? "" : reasonAgainstWeights(op, /*fourBits=*/false);
}

/// Returns why `op` cannot multiply rows that are quantised at run time; empty if it can. `op` may be of any kind.
std::string reasonAgainstDynamic(Operation *op) {
  auto matmul = dyn_cast<top::MatMulOp>(op);
  if (!matmul || kindOf(op) != OpKind::contraction) {
    return op->getName().getStringRef().str() + " cannot be quantised at run time; only top.matmul can";
  }
  if (multipliesActivations(op)) {
    return "neither of its operands is a constant";
  }
  if (std::optional<std::string> reason = reasonAgainst(op)) {
    return *reason;
  }
  return matmul.getTransA() || typeOf(matmul.getA()).getRank() < 2 ? "its first operand is transposed or a vector" : "";
}

} // namespace

std::string reasonAgainst(Operation *op, Precision precision, const CalibrationTable &table) {
  switch (precision) {
  case Precision::BF16:
  case Precision::F16:
    if (!isNarrowable(op)) {
      return op->getName().getStringRef().str() + " does not compute f32";
    }
    return precision == Precision::F16 ? beyondF16(op, table) : "";
  case Precision::W8:
  case Precision::W4:
    return reasonAgainstWeights(op, precision == Precision::W4);
  case Precision::W8A8:
  case Precision::W4A8:
    return reasonAgainstBlocks(op);
  case Precision::DYNAMIC_INT8:
    return reasonAgainstDynamic(op);
  default:
    return "";
  }
}

bool isNarrowable(Operation *op) {
  return isa_and_present<top::TopDialect>(op->getDialect()) && !top::appendsToState(op) &&
         !isa<top::QuantizeOp, top::DequantizeOp, top::CastOp, top::CustomOp, top::BlockMatMulOp>(op) &&
         llvm::any_of(op->getResults(), isF32) && !top::isConstant(op->getResult(0));
}

bool sumsFew(Operation *op, Precision precision) {
  // f16's rounding errors are an eighth of bf16's.
  const int64_t few = precision == Precision::BF16 ? 63 : 32;
  return isNarrow(precision) && kindOf(op) == OpKind::contraction && !isa<top::MatMulOp>(op) &&
         top::isConstant(weightOf(op).operand->get()) && reductionLength(op) <= few;
}

bool isQuantizedByModel(Operation *op) {
  if (kindOf(op) != OpKind::contraction || !weightOf(op).operand->get().getDefiningOp<top::DequantizeOp>()) {
    return false;
  }
  Operation *origin = op->getOperand(0).getDefiningOp();
  while (origin && kindOf(origin) == OpKind::move) {
    origin = origin->getOperand(0).getDefiningOp();
  }
  return isa_and_present<top::DequantizeOp>(origin);
}

} // namespace tessera::quant
