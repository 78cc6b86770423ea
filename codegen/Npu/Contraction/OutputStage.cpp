//===- OutputStage.cpp - Epilogues that the output stage computes ---------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Contraction/OutputStage.h"

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

/// Matches an epilogue from its end.
class Matcher {
public:
  Matcher(Block &block, mlir::Type result) : block(block), result(result) {}

  std::optional<StageForm> run() {
    Value value = block.getTerminator()->getOperand(0);
    if (auto narrow = value.getDefiningOp<arith::TruncFOp>()) {
      value = narrow.getIn(); // storing rounds
    }
    if (isa<IntegerType>(result) ? !takeRequantise(value) : !value.getType().isF32()) {
      return std::nullopt;
    }
    takeClamp(value);
    takeResidual(value);
    takeGain(value);
    takeFunction(value);
    if (form.output.function != Function::none || form.gainExtra >= 0) {
      if (form.residualExtra >= 0) {
        form.output.flags |= Output::late;
      } else {
        takeResidual(value);
      }
    }
    return takeFactor(value) ? std::optional(form) : std::nullopt;
  }

  /// Matches an integer-only requantisation of the sum.
  std::optional<StageForm> runIntegral(bmodel::numerics::Requantisation mode) {
    auto end = device::matchIntegerRequantise(block.getTerminator()->getOperand(0));
    if (!end || end->mode != mode || end->sum != block.getArgument(0)) {
      return std::nullopt;
    }
    form.output.flags = Output::integral | Output::clamps;
    form.output.zeroPoint = float(end->zero);
    form.output.lower = float(end->low), form.output.upper = float(end->high);
    if (end->mantissa) {
      form.output.flags |= Output::perChannel;
      form.factorExtra = extraOf(end->mantissa), form.gainExtra = extraOf(end->shift);
      return form.factorExtra >= 0 && form.gainExtra >= 0 ? std::optional(form) : std::nullopt;
    }
    form.output.factor = llvm::bit_cast<float>(end->factor.mantissa);
    form.output.divisor = llvm::bit_cast<float>(end->factor.shift);
    return form;
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
      return true; // storing saturates at these bounds
    }
    if (double(end->low) < least || double(end->high) > most) {
      return false;
    }
    if (divisor) {
      form.output.flags |= Output::clamps | Output::stored;
      form.output.lower = float(end->low), form.output.upper = float(end->high);
      return true;
    }
    // Integral bounds may be applied before rounding.
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

  /// Matches clamps, except if a later bound lies beyond an earlier one and would be lost.
  void takeClamp(Value &value) {
    while (!(form.output.flags & Output::stored)) {
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

  bool isSum(Value value) const {
    if (auto convert = value.getDefiningOp<arith::SIToFPOp>()) {
      value = convert.getIn();
    }
    return value == block.getArgument(0);
  }

  /// Matches a factor per channel that is not applied to the sum itself.
  void takeGain(Value &value) {
    auto contraction = value.getDefiningOp<arith::MulFOp>();
    int extra = contraction ? extraOf(contraction.getRhs()) : -1;
    if (extra >= 0 && contraction.getRhs().getType().isF32() && extra != form.residualExtra &&
        !isSum(contraction.getLhs())) {
      form.gainExtra = extra, form.output.flags |= Output::gains;
      value = contraction.getLhs();
    }
  }

  /// Returns the other operand of |value|, which is defined by Op, if one operand is |number|.
  template <typename Op>
  static Value besides(Value value, float number) {
    auto op = value.getDefiningOp<Op>();
    for (int side = 0; op && side < 2; ++side) {
      if (constantOf(op->getOperand(side)) == number) {
        return op->getOperand(1 - side);
      }
    }
    return {};
  }

  /// Returns x if |value| is x * slope + 0.5.
  static Value lineOf(Value value, std::optional<float> &slope) {
    Value line = besides<arith::AddFOp>(value, 0.5f);
    auto contraction = line ? line.getDefiningOp<arith::MulFOp>() : arith::MulFOp();
    slope = contraction ? constantOf(contraction.getRhs()) : std::nullopt;
    return slope ? contraction.getLhs() : Value();
  }

  /// Returns true if |gate| * x is the hard swish of x or, with |gate| = 1 + erf(x / sqrt(2)), twice its GELU.
  bool isGate(Value gate, Value x, Function function) {
    if (function == Function::hardSwish) {
      Value upper = besides<arith::MinimumFOp>(gate, 1), lower = upper ? besides<arith::MaximumFOp>(upper, 0) : Value();
      std::optional<float> slope;
      return lower && lineOf(lower, slope) == x && *slope == float(1.0 / 6);
    }
    Value curve = besides<arith::AddFOp>(gate, 1);
    auto erf = curve ? curve.getDefiningOp<math::ErfOp>() : math::ErfOp();
    return erf && besides<arith::MulFOp>(erf.getOperand(), float(0.70710678118654752440)) == x;
  }

  /// Matches x < 0 ? x * alpha : x.
  bool takeLeaky(Value &value) {
    auto select = value.getDefiningOp<arith::SelectOp>();
    auto compare = select ? select.getCondition().getDefiningOp<arith::CmpFOp>() : arith::CmpFOp();
    auto scaled = select ? select.getTrueValue().getDefiningOp<arith::MulFOp>() : arith::MulFOp();
    Value x = select ? select.getFalseValue() : Value();
    std::optional<float> alpha = scaled ? constantOf(scaled.getRhs()) : std::nullopt;
    if (!compare || !alpha || compare.getPredicate() != arith::CmpFPredicate::OLT || compare.getLhs() != x ||
        constantOf(compare.getRhs()) != 0.0f || scaled.getLhs() != x) {
      return false;
    }
    form.output.function = Function::leakyRelu, form.output.alpha = *alpha, value = x;
    return true;
  }

  /// Matches a hard sigmoid whose clamps to [0, 1] have already been matched.
  bool takeHardSigmoid(Value &value) {
    std::optional<float> slope;
    Value x = lineOf(value, slope);
    bool isStored = form.output.flags & Output::stored;
    if (!x || isStored || form.residualExtra >= 0 || form.gainExtra >= 0 || !(form.output.flags & Output::clamps) ||
        form.output.lower < 0 || form.output.upper > 1) {
      return false;
    }
    form.output.function = Function::hardSigmoid, form.output.alpha = *slope, value = x;
    return true;
  }

  void takeFunction(Value &value) {
    if (takeLeaky(value) || takeHardSigmoid(value)) {
      return;
    }
    // Matches relu as a function; clamps at the end have already been matched.
    auto rectify = value.getDefiningOp<arith::MaximumFOp>();
    if (rectify && matchPattern(rectify.getRhs(), m_PosZeroFloat())) {
      form.output.function = Function::relu, value = rectify.getLhs();
      return;
    }
    if (Value x = device::matchSigmoid(value.getDefiningOp<arith::DivFOp>())) {
      form.output.function = Function::sigmoid, value = x;
      return;
    }
    if (auto tanh = value.getDefiningOp<math::TanhOp>()) {
      form.output.function = Function::tanh, value = tanh.getOperand();
      return;
    }
    auto contraction = value.getDefiningOp<arith::MulFOp>();
    for (int side = 0; contraction && side < 2; ++side) {
      Value x = contraction->getOperand(side);
      Value gate = contraction->getOperand(1 - side), twice = besides<arith::MulFOp>(x, 0.5f);
      if (device::matchSigmoid(gate.getDefiningOp<arith::DivFOp>()) == x) {
        form.output.function = Function::silu, value = x;
        return;
      }
      if (isGate(gate, x, Function::hardSwish)) {
        form.output.function = Function::hardSwish, value = x;
        return;
      }
      if (twice && isGate(gate, twice, Function::gelu)) {
        form.output.function = Function::gelu, value = twice;
        return;
      }
    }
  }

  /// Returns the index of an extra, or -1.
  int extraOf(Value value) const {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument && argument.getOwner() == &block ? int(argument.getArgNumber()) - 1 : -1;
  }

  /// Matches r, or (r - zero) * scale with an integer r.
  bool isResidual(Value value) {
    if (auto widen = value.getDefiningOp<arith::ExtFOp>()) {
      value = widen.getIn();
    }
    if (int extra = extraOf(value); extra >= 0 && isa<FloatType>(value.getType())) {
      form.residualExtra = extra, form.output.residualScale = 1;
      return true;
    }
    auto contraction = value.getDefiningOp<arith::MulFOp>();
    std::optional<float> scale = contraction ? constantOf(contraction.getRhs()) : std::nullopt;
    auto convert = scale ? contraction.getLhs().getDefiningOp<arith::SIToFPOp>() : arith::SIToFPOp();
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
    if (isSum(value)) {
      return true;
    }
    if (auto contraction = value.getDefiningOp<arith::MulFOp>()) {
      int extra = extraOf(contraction.getRhs());
      if (std::optional<float> factor = constantOf(contraction.getRhs())) {
        form.output.factor = *factor;
      } else if (extra >= 0 && contraction.getRhs().getType().isF32() && extra != form.residualExtra &&
                 extra != form.gainExtra) {
        form.factorExtra = extra, form.output.flags |= Output::perChannel;
      } else {
        return false;
      }
      value = contraction.getLhs();
    }
    return isSum(value);
  }

  Block &block;
  mlir::Type result;
  StageForm form;
};

} // namespace

Output keepIntegers(bmodel::npu::Type type, llvm::StringRef requantise) {
  if (requantise == "float" || bmodel::npu::isFloat(type)) {
    return {};
  }
  // Multiplies by 2^30 / 2^30 and clamps to the range of the type.
  Output output{.flags = Output::integral | Output::clamps, .factor = llvm::bit_cast<float>(int32_t(1) << 30)};
  bool isUnsigned = type == bmodel::npu::Type::u8;
  float half = bmodel::npu::sizeOf(type) == 1 ? 128 : 32768;
  output.divisor = llvm::bit_cast<float>(int32_t(30));
  output.lower = isUnsigned ? 0 : -half, output.upper = isUnsigned ? 2 * half - 1 : half - 1;
  return output;
}

std::optional<StageForm> matchStage(Region &epilogue, mlir::Type result, llvm::StringRef requantise) {
  if (epilogue.empty()) {
    return std::nullopt;
  }
  Matcher matcher(epilogue.front(), result);
  bool betweenIntegers = isa<IntegerType>(result) && epilogue.front().getArgument(0).getType().isInteger(32);
  auto mode = bmodel::numerics::parseRequantisation(requantise);
  return betweenIntegers && mode != bmodel::numerics::Requantisation::Float ? matcher.runIntegral(*mode)
                                                                            : matcher.run();
}

} // namespace tessera::npu
