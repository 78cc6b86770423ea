//===- Quotient.cpp - Constant division by multiplication -----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Kernels/Quotient.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

#include <cmath>

using namespace mlir;

namespace tessera::kernels {

/// Returns true if |value| is rounded to an integer, clamped, and has no other use.
static bool becomesInteger(Value value) {
  bool rounded = false;
  while (value.hasOneUse()) {
    Operation *user = *value.user_begin();
    if (isa<arith::FPToSIOp>(user)) {
      return rounded;
    }
    rounded |= isa<math::RoundEvenOp>(user);
    if (!rounded || !isa<math::RoundEvenOp, arith::AddFOp, arith::MinimumFOp, arith::MaximumFOp>(user)) {
      return false;
    }
    value = user->getResult(0);
  }
  return false;
}

Value emitQuantisedQuotient(KernelBuilder &kb, arith::DivFOp op, Value x, bool mayBeInfinite) {
  FloatAttr constant;
  if (!kb.target.hasFma() || !op.getType().isF32() || !matchPattern(op.getRhs(), m_Constant(&constant)) ||
      !becomesInteger(op)) {
    return {};
  }
  float divisor = constant.getValue().convertToFloat();
  std::optional<device::ReciprocalPair> pair = device::exactReciprocal(divisor);
  if (!pair) {
    return {};
  }
  if (mayBeInfinite) {
    // Infinity times the two factors may give NaN. Any quotient beyond 2^20 saturates anyway.
    auto clamp = [&](arith::CmpFPredicate beyond, double bound) {
      Value limit = kb.floatConstant(x.getType(), bound);
      x = arith::SelectOp::create(kb.b, arith::CmpFOp::create(kb.b, beyond, x, limit), limit, x);
    };
    double bound = std::fabs(double(divisor)) * 0x1p20;
    clamp(arith::CmpFPredicate::OGT, bound), clamp(arith::CmpFPredicate::OLT, -bound);
  }
  Value high = kb.floatConstant(x.getType(), pair->high);
  if (pair->low == 0) {
    return arith::MulFOp::create(kb.b, x, high);
  }
  Value low = arith::MulFOp::create(kb.b, x, kb.floatConstant(x.getType(), pair->low));
  return math::FmaOp::create(kb.b, x, high, low);
}

} // namespace tessera::kernels
