//===- ElementCount.cpp - Number of elements along some dims --------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/Conversion/TopToDevice/ElementCount.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tessera::device {

/// Returns |size| as an i64 tensor of dims [1, ..., 1]: the sum of that many ones.
static Value sizeAtRunTime(Lowering &lower, Dim size, size_t rank) {
  SmallVector<Dim> dims(rank, 1);
  Value one = lower.constant({1}, lower.rewriter.getI64Type(), {1}, "one");
  dims.back() = size;
  return lower.reduce(lower.expand(one, dims), ReduceKind::sum, {int64_t(rank) - 1}, lower.rewriter.getI64Type());
}

ElementCount::ElementCount(Lowering &lower, Shape shape, ArrayRef<int64_t> axes) {
  for (int64_t axis : axes) {
    if (shape[axis].isKnown()) {
      known *= shape[axis].value();
    } else {
      sizes.push_back(sizeAtRunTime(lower, shape[axis], shape.rank()));
    }
  }
}

Value ElementCount::emit(OpBuilder &b, Location loc, Type type, ValueRange values) const {
  if (values.empty()) {
    return scalarConstant(b, loc, type, static_cast<double>(known));
  }
  Value product = arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(known));
  for (Value size : values) {
    product = arith::MulIOp::create(b, loc, product, size);
  }
  if (isa<FloatType>(type)) {
    return arith::SIToFPOp::create(b, loc, type, product);
  }
  return type.isInteger(64) ? product : arith::TruncIOp::create(b, loc, type, product).getResult();
}

} // namespace tessera::device
