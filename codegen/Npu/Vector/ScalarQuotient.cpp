//===- ScalarQuotient.cpp - Divisions by constants on the vector unit -----===//
// SPDX-License-Identifier: Apache-2.0
//
// A division takes function_cycles per vector, two multiplications take two cycles.
//===----------------------------------------------------------------------===//
#include "codegen/Npu/Vector/ScalarTranslator.h"

#include "device_dialect/IR/Reciprocal.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

#include <limits>

using namespace mlir;

namespace tessera::npu {
using bmodel::npu::Op;
namespace {

/// Returns true if |value| is rounded, possibly offset and clamped by constants, and then only used as an integer.
/// Subnormal quotients, which all round to 0, then do not matter.
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

/// Returns x / constant computed without a division, if the final bits are the same.
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
  if (pair->low == 0) { // power of two: rounded once, like the division
    return add(Op::mul, {x, factor}, kAnything);
  }
  if (!becomesInteger(op)) {
    return std::nullopt;
  }
  unsigned rest = add(Op::mul, {x, constant(pair->low)}, kAnything);
  return add(Op::mulAdd, {x, factor, rest}, kAnything);
}

} // namespace tessera::npu
