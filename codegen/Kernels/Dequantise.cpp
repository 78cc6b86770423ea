//===- Dequantise.cpp - From 8- and 16-bit integers to f32 ----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Kernels/Dequantise.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;

namespace tessera::kernels {

/// A widened integer of at most 16 bits and the constant that is added to it.
struct ShiftedInteger {
  Value wide;
  int64_t shift = 0;
};

static ShiftedInteger matchShifted(Value integer) {
  Operation *op = integer.getDefiningOp();
  APInt number;
  if (!isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op) || !matchPattern(op->getOperand(1), m_ConstantInt(&number))) {
    return {};
  }
  Value wide = op->getOperand(0);
  Operation *extension = wide.getDefiningOp();
  bool isFew = isa_and_nonnull<arith::ExtSIOp, arith::ExtUIOp>(extension) &&
               extension->getOperand(0).getType().getIntOrFloatBitWidth() <= 16;
  int64_t shift = isa<arith::AddIOp>(op) ? number.getSExtValue() : -number.getSExtValue();
  return isFew ? ShiftedInteger{wide, shift} : ShiftedInteger();
}

Value emitDequantised(KernelBuilder &kb, arith::MulFOp op, const IRMapping &mapping) {
  auto real = op.getLhs().getDefiningOp<arith::SIToFPOp>();
  FloatAttr constant;
  if (!kb.target.hasFma() || !op.getType().isF32() || !real || !matchPattern(op.getRhs(), m_Constant(&constant))) {
    return {};
  }
  // Within these limits no result is subnormal, and a zero sum is positive, as the product would be.
  constexpr float kLeast = 0x1p-100f, kMost = 0x1p100f;
  float scale = constant.getValue().convertToFloat();
  ShiftedInteger integer = matchShifted(real.getIn());
  bool isExact = integer.wide && mapping.contains(integer.wide) && integer.shift &&
                 llvm::isPowerOf2_64(uint64_t(std::llabs(integer.shift))) && std::llabs(integer.shift) <= 1 << 15;
  if (!isExact || !(scale >= kLeast && scale <= kMost)) {
    return {};
  }
  Value factor = mapping.lookup(op.getRhs());
  Value number = arith::SIToFPOp::create(kb.b, factor.getType(), mapping.lookup(integer.wide));
  Value zero = kb.floatConstant(factor.getType(), double(integer.shift) * double(scale));
  return math::FmaOp::create(kb.b, number, factor, zero);
}

} // namespace tessera::kernels
