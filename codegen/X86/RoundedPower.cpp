//===- RoundedPower.cpp - Byte-valued powers by a polynomial --------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/RoundedPower.h"

#include "codegen/Kernels/Requantise.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <cmath>

using namespace mlir;

namespace tessera::x86 {
namespace {

constexpr float kLog2E = 1.44269504088896341f;
/// Lower bound of the exponent: 255 * 2^kLeast is far below one half.
constexpr float kLeast = -24;

/// Coefficients of 2^r for r in [0, 1), the highest power first, with the least relative error (7.5e-8).
constexpr double kPolynomial[] = {0.001877576608199208, 0.008989340252573697, 0.05582631791733735,
                                  0.24015361709027766,  0.6931530731948625,   0.9999999250636211};

/// Emits the unmasked form of a masked AVX-512 intrinsic with |operands|, a pass-through value |kept|, and the current
/// rounding mode.
Value ofAllLanes(KernelBuilder &kb, StringRef name, SmallVector<Value> operands, Value kept) {
  auto integer = [&](int64_t value, unsigned bits) -> Value {
    return arith::ConstantOp::create(kb.b, kb.b.getIntegerAttr(kb.b.getIntegerType(bits), value));
  };
  operands.append({kept, integer(-1, 16), integer(4, 32)});
  return emitIntrinsic(kb, name, operands.front().getType(), operands);
}

Value byte(KernelBuilder &kb, int64_t value) {
  return arith::ConstantOp::create(kb.b, kb.b.getI32IntegerAttr(int32_t(value)));
}

/// Returns |x| minus |x| rounded: to nearest even with |mode| 0, downwards with |mode| 1.
Value emitReduce(KernelBuilder &kb, Value x, int64_t mode) {
  return ofAllLanes(kb, "llvm.x86.avx512.mask.reduce.ps.512", {x, byte(kb, mode)}, kb.zero(x.getType()));
}

} // namespace

float nearPower(float x, int64_t levels) {
  float y = std::max(x * kLog2E, kLeast), rest = y - std::floor(y), sum = float(kPolynomial[0] * double(levels));
  for (double coefficient : llvm::drop_begin(kPolynomial)) {
    sum = std::fma(sum, rest, float(coefficient * double(levels)));
  }
  return std::ldexp(sum, int(std::floor(y)));
}

Value emitNearPower(KernelBuilder &kb, Value x, int64_t levels) {
  auto number = [&](double value) { return kb.floatConstant(x.getType(), value); };
  Value y = arith::MulFOp::create(kb.b, x, number(kLog2E)), least = number(kLeast);
  y = arith::SelectOp::create(kb.b, arith::CmpFOp::create(kb.b, arith::CmpFPredicate::OGT, y, least), y, least);
  Value rest = emitReduce(kb, y, 1), sum = number(kPolynomial[0] * double(levels));
  for (double coefficient : llvm::drop_begin(kPolynomial)) {
    sum = math::FmaOp::create(kb.b, sum, rest, number(coefficient * double(levels)));
  }
  return ofAllLanes(kb, "llvm.x86.avx512.mask.scalef.ps.512", {sum, y}, kb.zero(x.getType()));
}

Value emitDistance(KernelBuilder &kb, Value value, Value worst) {
  Value distance = emitReduce(kb, value, 0);
  // Computes the larger of two magnitudes.
  return ofAllLanes(kb, "llvm.x86.avx512.mask.range.ps.512", {distance, worst ? worst : distance, byte(kb, 0b1011)},
                    kb.zero(value.getType()));
}

Value emitUnsure(KernelBuilder &kb, Value worst, float error) {
  Value limit = kb.floatConstant(worst.getType(), 0.5f - error);
  Value unsure = arith::CmpFOp::create(kb.b, arith::CmpFPredicate::OGT, worst, limit);
  return LLVM::BitcastOp::create(kb.b, kb.b.getI16Type(), unsure);
}

} // namespace tessera::x86
