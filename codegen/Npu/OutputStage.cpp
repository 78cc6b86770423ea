//===- OutputStage.cpp - Epilogues that the output stage computes ---------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/OutputStage.h"

#include "device_dialect/IR/Requantise.h"
#include "device_dialect/IR/ScalarPatterns.h"

#include <limits>

using namespace mlir;

namespace tessera::npu {
using bmodel::npu::Function;
using bmodel::npu::Output;
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::optional<float> constantOf(Value value) {
  FloatAttr attribute;
  if (!value.getType().isF32() || !matchPattern(value, m_Constant(&attribute))) {
    return std::nullopt;
  }
  return attribute.getValue().convertToFloat();
}

/// Takes the epilogue apart from its end.
class Matcher {
public:
  Matcher(Block &block, mlir::Type result) : block(block), result(result) {}

  std::optional<StageForm> run() {
    Value value = block.getTerminator()->getOperand(0);
    if (isa<IntegerType>(result) ? !takeRequantise(value) : !value.getType().isF32()) {
      return std::nullopt;
    }
    takeClamp(value);
    takeFunction(value);
    takeResidual(value);
    return takeFactor(value) ? std::optional(form) : std::nullopt;
  }

private:
  bool takeRequantise(Value &value) {
    std::optional<device::Requantise> end = device::matchRequantise(value);
    if (!end) {
      return false;
    }
    bool isUnsigned = result.isUnsignedInteger();
    double half = double(uint64_t(1) << (result.getIntOrFloatBitWidth() - 1));
    double least = isUnsigned ? 0 : -half, most = isUnsigned ? 2 * half - 1 : half - 1;
    value = end->value;
    form.output.zeroPoint = float(end->zero);
    auto division = value.getDefiningOp<arith::DivFOp>();
    std::optional<float> divisor = division ? constantOf(division.getRhs()) : std::nullopt;
    if (divisor) {
      form.output.divisor = *divisor, value = division.getLhs();
    }
    if (double(end->low) == least && double(end->high) == most) {
      return true; // storing saturates there
    }
    if (divisor || double(end->low) < least || double(end->high) > most) {
      return false;
    }
    // Whole bounds may come before rounding.
    clampTo(float(end->low - end->zero), float(end->high - end->zero));
    return true;
  }

  void clampTo(float lower, float upper) {
    if (!(form.output.flags & Output::clamps)) {
      form.output.lower = -kInfinity, form.output.upper = kInfinity;
    }
    form.output.flags |= Output::clamps;
    form.output.lower = std::max(form.output.lower, lower), form.output.upper = std::min(form.output.upper, upper);
  }

  /// What clamps stand there, unless a later bound would hide that an earlier one is beyond it.
  void takeClamp(Value &value) {
    while (true) {
      auto lower = value.getDefiningOp<arith::MaximumFOp>();
      auto upper = value.getDefiningOp<arith::MinimumFOp>();
      Operation *op = lower ? lower.getOperation() : upper.getOperation();
      if (!op) {
        return;
      }
      unsigned side = constantOf(op->getOperand(1)) ? 1 : 0;
      std::optional<float> bound = constantOf(op->getOperand(side));
      bool clamps = form.output.flags & Output::clamps;
      if (!bound || (clamps && (lower ? *bound > form.output.upper : *bound < form.output.lower))) {
        return;
      }
      clampTo(lower ? *bound : -kInfinity, lower ? kInfinity : *bound);
      value = op->getOperand(1 - side);
    }
  }

  void takeFunction(Value &value) {
    if (Value x = device::matchSigmoid(value.getDefiningOp<arith::DivFOp>())) {
      form.output.function = Function::sigmoid, value = x;
      return;
    }
    if (auto tanh = value.getDefiningOp<math::TanhOp>()) {
      form.output.function = Function::tanh, value = tanh.getOperand();
      return;
    }
    auto product = value.getDefiningOp<arith::MulFOp>();
    for (int side = 0; product && side < 2; ++side) {
      Value x = product->getOperand(side);
      if (device::matchSigmoid(product->getOperand(1 - side).getDefiningOp<arith::DivFOp>()) == x) {
        form.output.function = Function::silu, value = x;
        return;
      }
    }
  }

  /// The index of an extra, or -1.
  int extraOf(Value value) const {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument && argument.getOwner() == &block ? int(argument.getArgNumber()) - 1 : -1;
  }

  /// r, or (r - zero) * scale with r an integer.
  bool isResidual(Value value) {
    if (int extra = extraOf(value); extra >= 0 && value.getType().isF32()) {
      form.residualExtra = extra, form.output.residualScale = 1;
      return true;
    }
    auto product = value.getDefiningOp<arith::MulFOp>();
    std::optional<float> scale = product ? constantOf(product.getRhs()) : std::nullopt;
    auto convert = scale ? product.getLhs().getDefiningOp<arith::SIToFPOp>() : arith::SIToFPOp();
    Value integer = convert ? convert.getIn() : Value();
    APInt zero(32, 0);
    if (auto difference = integer ? integer.getDefiningOp<arith::SubIOp>() : arith::SubIOp()) {
      if (!matchPattern(difference.getRhs(), m_ConstantInt(&zero)) || !zero.isSignedIntN(16)) {
        return false;
      }
      integer = difference.getLhs();
    }
    Operation *widen = integer ? integer.getDefiningOp() : nullptr;
    if (!widen || !isa<arith::ExtSIOp, arith::ExtUIOp>(widen) || extraOf(widen->getOperand(0)) < 0) {
      return false;
    }
    form.residualExtra = extraOf(widen->getOperand(0)), form.output.residualScale = *scale;
    form.output.residualZero = int16_t(zero.getSExtValue());
    return true;
  }

  void takeResidual(Value &value) {
    auto sum = value.getDefiningOp<arith::AddFOp>();
    for (int side = 0; sum && side < 2; ++side) {
      if (isResidual(sum->getOperand(side))) {
        value = sum->getOperand(1 - side);
        return;
      }
    }
  }

  bool takeFactor(Value value) {
    if (auto product = value.getDefiningOp<arith::MulFOp>()) {
      int extra = extraOf(product.getRhs());
      if (std::optional<float> factor = constantOf(product.getRhs())) {
        form.output.factor = *factor;
      } else if (extra >= 0 && product.getRhs().getType().isF32() && extra != form.residualExtra) {
        form.factorExtra = extra, form.output.flags |= Output::perChannel;
      } else {
        return false;
      }
      value = product.getLhs();
    }
    auto convert = value.getDefiningOp<arith::SIToFPOp>();
    return convert && convert.getIn() == block.getArgument(0);
  }

  Block &block;
  mlir::Type result;
  StageForm form;
};

} // namespace

std::optional<StageForm> matchStage(Region &epilogue, mlir::Type result) {
  if (epilogue.empty()) {
    return std::nullopt;
  }
  return Matcher(epilogue.front(), result).run();
}

} // namespace tessera::npu
