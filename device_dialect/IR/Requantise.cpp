//===- Requantise.cpp - Matching requantisations --------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/IR/Requantise.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include <cmath>

using namespace mlir;

namespace tessera::device {

/// Matches an op with one small integer constant as operand; returns the other operand and the constant.
template <typename Op>
static std::optional<std::pair<Value, int64_t>> withInteger(Value value) {
  auto op = value.getDefiningOp<Op>();
  for (int side = 0; op && side < 2; ++side) {
    FloatAttr attribute;
    if (!matchPattern(op->getOperand(side), m_Constant(&attribute))) {
      continue;
    }
    double number = attribute.getValueAsDouble();
    if (std::trunc(number) == number && std::fabs(number) <= 1 << 16) {
      return std::pair(op->getOperand(1 - side), int64_t(number));
    }
  }
  return std::nullopt;
}

std::optional<Requantise> matchRequantise(Value result) {
  auto narrow = result.getDefiningOp<arith::TruncIOp>();
  auto convert = narrow ? narrow.getIn().getDefiningOp<arith::FPToSIOp>() : arith::FPToSIOp();
  if (!convert || !(narrow.getType().isInteger(8) || narrow.getType().isInteger(16)) ||
      !convert.getType().isInteger(32) || !convert.getIn().getType().isF32()) {
    return std::nullopt;
  }
  Requantise end;
  Value value = convert.getIn();
  // The two bounds may be in either order.
  bool upper = false, lower = false;
  for (int i = 0; i < 2; ++i) {
    if (auto bound = withInteger<arith::MinimumFOp>(value); bound && !upper) {
      std::tie(value, end.high) = *bound, upper = true;
    } else if (auto bound = withInteger<arith::MaximumFOp>(value); bound && !lower) {
      std::tie(value, end.low) = *bound, lower = true;
    }
  }
  if (auto sum = withInteger<arith::AddFOp>(value)) {
    std::tie(value, end.zero) = *sum;
  }
  auto round = value.getDefiningOp<math::RoundEvenOp>();
  unsigned bits = narrow.getType().getIntOrFloatBitWidth();
  int64_t half = int64_t(1) << (bits - 1);
  if (!round || !upper || !lower || end.low > end.high || end.low < -half || end.high >= 2 * half) {
    return std::nullopt;
  }
  end.type = narrow.getType();
  end.value = round.getOperand();
  return end;
}

// Requantisation in integers

namespace {

std::optional<int64_t> integerOf(Value value) {
  APInt number;
  return matchPattern(value, m_ConstantInt(&number)) ? std::optional(number.getSExtValue()) : std::nullopt;
}

bool isInteger(Value value, int64_t wanted) { return integerOf(value) == wanted; }

/// Returns the operands of |value| if Op computes it.
template <typename Op>
std::optional<std::pair<Value, Value>> operandsOf(Value value) {
  auto op = value.getDefiningOp<Op>();
  return op ? std::optional(std::pair<Value, Value>(op.getLhs(), op.getRhs())) : std::nullopt;
}

/// Returns the first operand and the constant that is the second operand, if Op computes |value|.
template <typename Op>
std::optional<std::pair<Value, int64_t>> withConstant(Value value) {
  auto operands = operandsOf<Op>(value);
  std::optional<int64_t> number = operands ? integerOf(operands->second) : std::nullopt;
  return number ? std::optional(std::pair<Value, int64_t>(operands->first, *number)) : std::nullopt;
}

/// Returns the operand of the widening Op that computes |value|, or null.
template <typename Op>
Value widened(Value value) {
  auto widen = value.getDefiningOp<Op>();
  return widen ? widen.getIn() : Value();
}

/// Matches a requantisation in integers. All values are i64, except for the i32 sum before widening.
class IntegerMatcher {
public:
  std::optional<IntegerRequantise> run(Value result) {
    auto narrow = result.getDefiningOp<arith::TruncIOp>();
    if (!narrow || !narrow.getIn().getType().isInteger(64) || !takeBounds(narrow.getIn())) {
      return std::nullopt;
    }
    if (isFixed(rounded) || isTflite(rounded)) {
      return end;
    }
    auto sum = withConstant<arith::AddIOp>(rounded);
    if (!sum) {
      return std::nullopt;
    }
    end.zero = sum->second;
    return isFixed(sum->first) || isTflite(sum->first) ? std::optional(end) : std::nullopt;
  }

private:
  bool takeBounds(Value value) {
    bool upper = false, lower = false;
    for (int i = 0; i < 2; ++i) {
      if (auto bound = withConstant<arith::MinSIOp>(value); bound && !upper) {
        std::tie(value, end.high) = *bound, upper = true;
      } else if (auto bound = withConstant<arith::MaxSIOp>(value); bound && !lower) {
        std::tie(value, end.low) = *bound, lower = true;
      }
    }
    rounded = value;
    return upper && lower && end.low <= end.high;
  }

  /// Matches a mantissa, which is a constant or an i32.
  bool takeMantissa(Value value) {
    if (std::optional<int64_t> number = integerOf(value)) {
      end.factor.mantissa = int32_t(*number), end.mantissa = {};
      return *number >= 0 && *number <= INT32_MAX;
    }
    end.mantissa = widened<arith::ExtSIOp>(value);
    return end.mantissa && end.mantissa.getType().isInteger(32);
  }

  bool takeSum(Value value) {
    end.sum = widened<arith::ExtSIOp>(value);
    return end.sum && end.sum.getType().isInteger(32);
  }

  bool takeShift(Value value) {
    end.shift = widened<arith::ExtSIOp>(value);
    return end.shift && end.shift.getType().isInteger(32) && end.mantissa;
  }

  /// Matches (sum * mantissa + (1 << (shift - 1))) >> shift.
  bool isFixed(Value value) {
    end.mode = bmodel::numerics::Requantisation::Fixed;
    auto shifted = operandsOf<arith::ShRSIOp>(value);
    auto sum = shifted ? operandsOf<arith::AddIOp>(shifted->first) : std::nullopt;
    auto product = sum ? operandsOf<arith::MulIOp>(sum->first) : std::nullopt;
    if (!product || !takeSum(product->first) || !takeMantissa(product->second)) {
      return false;
    }
    if (std::optional<int64_t> shift = integerOf(shifted->second)) {
      end.factor.shift = int32_t(*shift), end.shift = {};
      return *shift >= 1 && *shift <= 62 && !end.mantissa && isInteger(sum->second, int64_t(1) << (*shift - 1));
    }
    auto half = operandsOf<arith::ShLIOp>(sum->second);
    auto less = half ? withConstant<arith::SubIOp>(half->second) : std::nullopt;
    return takeShift(shifted->second) && less && isInteger(half->first, 1) && less->second == 1 &&
           less->first == shifted->second;
  }

  /// Matches max(shift - 31, 0).
  bool isRight(Value value, Value shift) const {
    auto positive = withConstant<arith::MaxSIOp>(value);
    auto rest = positive && positive->second == 0 ? withConstant<arith::SubIOp>(positive->first) : std::nullopt;
    auto sum = positive && positive->second == 0 ? withConstant<arith::AddIOp>(positive->first) : std::nullopt;
    return (rest && rest->second == 31 && rest->first == shift) || (sum && sum->second == -31 && sum->first == shift);
  }

  /// Matches the sum shifted left by max(31 - shift, 0), saturated; sets |shift| to null if it is not shifted.
  bool isMoved(Value value, Value &shift) {
    auto upper = withConstant<arith::MinSIOp>(value);
    auto lower = upper && upper->second == INT32_MAX ? withConstant<arith::MaxSIOp>(upper->first) : std::nullopt;
    if (!lower || lower->second != INT32_MIN) {
      return false;
    }
    auto moved = operandsOf<arith::ShLIOp>(lower->first);
    if (!moved) {
      shift = {};
      return takeSum(lower->first);
    }
    auto positive = withConstant<arith::MaxSIOp>(moved->second);
    auto rest = positive && positive->second == 0 ? operandsOf<arith::SubIOp>(positive->first) : std::nullopt;
    if (!rest || !isInteger(rest->first, 31)) {
      return false;
    }
    shift = rest->second;
    return takeSum(moved->first);
  }

  /// Matches x < 0 as 0 or 1.
  static bool isSign(Value value, Value x) {
    auto compare = widened<arith::ExtUIOp>(value) ? widened<arith::ExtUIOp>(value).getDefiningOp<arith::CmpIOp>()
                                                  : arith::CmpIOp();
    return compare && compare.getPredicate() == arith::CmpIPredicate::slt && compare.getLhs() == x &&
           isInteger(compare.getRhs(), 0);
  }

  /// Matches (rounded >> right) + ((rounded & mask) > (mask >> 1) + (rounded < 0)) with rounded = (moved * mantissa +
  /// 2^30) >> 31.
  bool isTflite(Value value) {
    end.mode = bmodel::numerics::Requantisation::Tflite;
    auto sum = operandsOf<arith::AddIOp>(value);
    auto shifted = sum ? operandsOf<arith::ShRSIOp>(sum->first) : std::nullopt;
    Value isMore = sum ? widened<arith::ExtUIOp>(sum->second) : Value();
    auto compare = isMore ? isMore.getDefiningOp<arith::CmpIOp>() : arith::CmpIOp();
    auto rest = compare ? operandsOf<arith::AndIOp>(compare.getLhs()) : std::nullopt;
    auto high = shifted ? withConstant<arith::ShRSIOp>(shifted->first) : std::nullopt;
    auto half = high && high->second == 31 ? withConstant<arith::AddIOp>(high->first) : std::nullopt;
    auto product = half && half->second == 1 << 30 ? operandsOf<arith::MulIOp>(half->first) : std::nullopt;
    Value moved;
    if (!rest || !product || compare.getPredicate() != arith::CmpIPredicate::sgt || rest->first != shifted->first ||
        !isMoved(product->first, moved) || !takeMantissa(product->second)) {
      return false;
    }
    Value mask = rest->second, x = shifted->first;
    if (!moved) {
      return isConstantRight(shifted->second, mask, compare.getRhs(), x);
    }
    auto less = withConstant<arith::SubIOp>(mask);
    less = less ? less : withConstant<arith::AddIOp>(mask);
    auto power = less && std::abs(less->second) == 1 ? operandsOf<arith::ShLIOp>(less->first) : std::nullopt;
    auto threshold = operandsOf<arith::AddIOp>(compare.getRhs());
    auto middle = threshold ? withConstant<arith::ShRSIOp>(threshold->first) : std::nullopt;
    bool isMask = power && isInteger(power->first, 1) && power->second == shifted->second &&
                  less->second == (mask.getDefiningOp<arith::SubIOp>() ? 1 : -1);
    return takeShift(moved) && isRight(shifted->second, moved) && isMask && middle && middle->first == mask &&
           middle->second == 1 && isSign(threshold->second, x);
  }

  /// Matches the form of isTflite() with folded constants, for a shift beyond 31.
  bool isConstantRight(Value right, Value mask, Value threshold, Value x) {
    std::optional<int64_t> bits = integerOf(right);
    if (!bits || *bits < 1 || *bits > 31 || end.mantissa || !isInteger(mask, (int64_t(1) << *bits) - 1)) {
      return false;
    }
    end.factor.shift = int32_t(31 + *bits), end.shift = {};
    if (*bits == 1) {
      return isSign(threshold, x);
    }
    auto sum = withConstant<arith::AddIOp>(threshold);
    return sum && sum->second == ((int64_t(1) << *bits) - 1) >> 1 && isSign(sum->first, x);
  }

  IntegerRequantise end;
  Value rounded;
};

} // namespace

std::optional<IntegerRequantise> matchIntegerRequantise(Value result) { return IntegerMatcher().run(result); }

} // namespace tessera::device
