//===- WinogradTransforms.cpp - Transforms of F(m x m, 3 x 3) -------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/WinogradTransforms.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace tessera::x86 {
namespace {

/// Vector arithmetic with constants for the transforms.
class VectorMath {
public:
  /// Computes with vectors of the type of |like|.
  VectorMath(KernelBuilder &kb, Value like) : kb(kb), type(cast<VectorType>(like.getType())) {}
  Value add(Value x, Value y) { return arith::AddFOp::create(kb.b, x, y); }
  Value sub(Value x, Value y) { return arith::SubFOp::create(kb.b, x, y); }
  Value scale(double factor, Value x) { return arith::MulFOp::create(kb.b, constant(factor), x); }
  /// Returns factor * x + y.
  Value addScaled(Value y, double factor, Value x) {
    return targetOf(kb).hasFma() ? Value(vector::FMAOp::create(kb.b, constant(factor), x, y))
                                 : add(y, scale(factor, x));
  }

private:
  Value constant(double value) { return kb.floatConstant(type, value); }
  KernelBuilder &kb;
  VectorType type;
};

} // namespace

Line inputTransform(KernelBuilder &kb, int64_t m, ArrayRef<Value> d) {
  VectorMath v(kb, d[0]);
  if (m == 2) {
    return {v.sub(d[0], d[2]), v.add(d[1], d[2]), v.sub(d[2], d[1]), v.sub(d[1], d[3])};
  }
  Value even = v.addScaled(d[4], -4, d[2]), odd = v.addScaled(d[3], -4, d[1]);
  Value high = v.sub(d[4], d[2]), low = v.sub(d[3], d[1]);
  return {v.addScaled(v.addScaled(d[4], -5, d[2]), 4, d[0]),
          v.add(even, odd),
          v.sub(even, odd),
          v.addScaled(high, 2, low),
          v.addScaled(high, -2, low),
          v.addScaled(v.addScaled(d[5], -5, d[3]), 4, d[1])};
}

Line outputTransform(KernelBuilder &kb, int64_t m, ArrayRef<Value> p) {
  VectorMath v(kb, p[0]);
  if (m == 2) {
    return {v.add(v.add(p[0], p[1]), p[2]), v.sub(v.sub(p[1], p[2]), p[3])};
  }
  Value sum = v.add(p[1], p[2]), difference = v.sub(p[1], p[2]);
  Value farSum = v.add(p[3], p[4]), farDifference = v.sub(p[3], p[4]);
  return {v.add(v.add(p[0], sum), farSum), v.addScaled(difference, 2, farDifference), v.addScaled(sum, 4, farSum),
          v.add(v.addScaled(difference, 8, farDifference), p[5])};
}

} // namespace tessera::x86
