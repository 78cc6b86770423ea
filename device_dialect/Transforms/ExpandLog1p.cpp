//===- ExpandLog1p.cpp - log1p by logarithm and division ------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/IR/DeviceDialect.h"
#include "device_dialect/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace tessera::device {

#define GEN_PASS_DEF_EXPANDLOG1PPASS
#include "device_dialect/Transforms/Passes.h.inc"

namespace {

void expand(math::Log1pOp op) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  auto number = [&](double value) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(float(value)));
  };
  auto isEqual = [&](Value a, Value b) -> Value {
    return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ, a, b);
  };
  Value x = op.getOperand(), one = number(1);
  Value sum = arith::AddFOp::create(builder, loc, x, one), kept = arith::SubFOp::create(builder, loc, sum, one);
  Value ratio = arith::DivFOp::create(builder, loc, x, kept), log = math::LogOp::create(builder, loc, sum);
  Value mended = arith::MulFOp::create(builder, loc, log, ratio);
  // The quotient is 0 / 0 if x vanishes in the sum, and infinity / infinity if the sum equals x.
  Value small = arith::SelectOp::create(builder, loc, isEqual(kept, number(0)), x, mended);
  Value any = arith::SelectOp::create(builder, loc, isEqual(sum, x), log, small);
  op.replaceAllUsesWith(any);
  op.erase();
}

struct ExpandLog1pPass : impl::ExpandLog1pPassBase<ExpandLog1pPass> {
  void runOnOperation() override {
    getOperation().walk([](math::Log1pOp op) {
      if (op.getType().isF32()) {
        expand(op);
      }
    });
  }
};

} // namespace

} // namespace tessera::device
