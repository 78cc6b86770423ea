//===- Requantise.cpp - The end of regions that make few bits -------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/IR/Requantise.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include <cmath>

using namespace mlir;

namespace tessera::device {

/// The other operand of |op| and the small integer that one of them is.
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
  // The two bounds come in either order.
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

} // namespace tessera::device
