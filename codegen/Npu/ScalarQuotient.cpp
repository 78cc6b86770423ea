//===- ScalarQuotient.cpp - Divisions by constants on the vector unit -----===//
// SPDX-License-Identifier: Apache-2.0
//
// A division takes function_cycles, two products two.
//===----------------------------------------------------------------------===//
#include "codegen/Npu/ScalarTranslator.h"

#include "device_dialect/IR/Reciprocal.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

#include <limits>

using namespace mlir;

namespace tessera::npu {
using bmodel::npu::Op;
namespace {

/// Whether |value| is rounded, then moved and bounded by constants, and used as an integer alone: then subnormal
/// quotients do not matter, all of which are 0.
bool becomesInteger(Value value) {
  bool isRounded = false;
  for (; value.hasOneUse(); value = value.user_begin()->getResult(0)) {
    Operation *user = *value.user_begin();
    if (isa<arith::FPToSIOp>(user)) {
      return isRounded;
    }
    isRounded |= isa<math::RoundEvenOp>(user);
    if (!isRounded || !isa<math::RoundEvenOp, arith::AddFOp, arith::MinimumFOp, arith::MaximumFOp>(user)) {
      return false;
    }
  }
  return false;
}

} // namespace

/// x / constant without a division, where that has the same bits in the end.
std::optional<unsigned> ScalarTranslator::quotientOf(arith::DivFOp op) {
  FloatAttr constantAttr;
  if (keepsDivisions || !op || !op.getType().isF32() || !matchPattern(op.getRhs(), m_Constant(&constantAttr))) {
    return std::nullopt;
  }
  float divisor = constantAttr.getValue().convertToFloat();
  std::optional<device::ReciprocalPair> pair = device::exactReciprocal(divisor);
  if (!pair) {
    return std::nullopt;
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr Interval kAnything = {-kInfinity, kInfinity};
  unsigned x = places[op.getLhs()];
  unsigned factor = constant(pair->high);
  if (pair->low == 0) { // a power of two: rounded once, as the division is
    return add(Op::mul, {x, factor}, kAnything);
  }
  if (!becomesInteger(op)) {
    return std::nullopt;
  }
  unsigned rest = add(Op::mul, {x, constant(pair->low)}, kAnything);
  return add(Op::mulAdd, {x, factor, rest}, kAnything);
}

} // namespace tessera::npu
