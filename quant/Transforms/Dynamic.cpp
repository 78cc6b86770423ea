//===- Dynamic.cpp - Matmuls whose activations are quantised at run time --===//
// SPDX-License-Identifier: Apache-2.0
#include "quant/Transforms/Dynamic.h"

#include "quant/Transforms/Precision/OpKinds.h"
#include "quant/Transforms/Precision/PrecisionAttributes.h"
#include "quant/Transforms/Weights/BlockMatMuls.h"
#include "quant/Transforms/Weights/Weights.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/Sizes.h"
#include "top_dialect/IR/TopOps.h"
#include <cmath>

using namespace mlir;

namespace tessera::quant {
namespace {

using Dims = SmallVector<Dim>;

Dims dimsOf(Value value) { return Shape(value).dims(); }

class DynamicQuantizer {
public:
  explicit DynamicQuantizer(func::FuncOp function) : builder(function.getContext()), loc(function.getLoc()) {}

  /// Replaces `op` by an integer matmul, which it returns. `op` is removed from the function but not destroyed.
  Operation *rewrite(top::MatMulOp op) {
    loc = op.getLoc();
    Rows rows = quantizeRows(op.getA());
    quantizeWeight(builder, op, HUGE_VAL); // the bias stays f32
    auto weight = op.getB().getDefiningOp<top::DequantizeOp>();
    builder.setInsertionPoint(op);
    Type i32 = builder.getI32Type(), f32 = builder.getF32Type();
    Dims dims = dimsOf(op.getY());
    Value left = make<top::SubOp>(i32, dimsOf(rows.bytes), to(rows.bytes, i32), to(rows.zero, i32));
    Value sums = make<top::MatMulOp>(i32, dims, left, to(weight.getX(), i32), Value(), builder.getBoolAttr(false),
                                     op.getTransBAttr(), builder.getBoolAttr(false), builder.getF64FloatAttr(-1));
    std::optional<top::TensorData> scales = top::getConstantData(weight.getScale());
    auto columns = tensorType({dims.back()}, f32);
    Value perColumn = top::createConstant(builder, loc, columns, scales->bytes, "weight_scales");
    Value value = make<top::MulOp>(f32, dims, make<top::MulOp>(f32, dims, to(sums, f32), perColumn), rows.scale);
    if (op.getBias()) {
      value = make<top::AddOp>(f32, dims, value, op.getBias());
    }
    value = rectified(builder, op, value);
    top::copyNames(op, value.getDefiningOp());
    op.getY().replaceAllUsesWith(value);
    op->remove();
    op->dropAllReferences();
    weight.erase();
    return sums.getDefiningOp();
  }

private:
  /// A matrix quantised row by row: u8 values, and a scale and zero point per row, [.., M, 1].
  struct Rows {
    Value bytes, scale, zero;
  };

  template <typename Op, typename... Operands>
  Value make(Type element, ArrayRef<Dim> dims, Operands... operands) {
    return Op::create(builder, loc, tensorType(dims, element), operands...);
  }
  Value to(Value value, Type element) {
    return make<top::CastOp>(element, dimsOf(value), value, TypeAttr::get(element));
  }

  /// Quantises each row of `x` as ONNX's DynamicQuantizeLinear quantises a tensor.
  Rows quantizeRows(Value x) {
    Rows &known = rows[x];
    if (known.bytes) {
      return known;
    }
    if (Operation *op = x.getDefiningOp()) {
      builder.setInsertionPointAfter(op);
    } else {
      builder.setInsertionPointToStart(x.getParentBlock());
    }
    Type f32 = builder.getF32Type(), u8 = builder.getIntegerType(8, /*isSigned=*/false);
    Dims dims = dimsOf(x);
    auto axes = builder.getDenseI64ArrayAttr({static_cast<int64_t>(dims.size()) - 1});
    dims.back() = 1;
    auto scalar = [&](double value) { return top::createScalar(builder, loc, f32, value); };
    auto extreme = [&](top::ReduceKind kind) {
      return make<top::ReduceOp>(f32, dims, x, top::ReduceKindAttr::get(builder.getContext(), kind), axes,
                                 builder.getBoolAttr(true));
    };
    Value zero = scalar(0);
    Value low = make<top::MinOp>(f32, dims, extreme(top::ReduceKind::min), zero);
    Value high = make<top::MaxOp>(f32, dims, extreme(top::ReduceKind::max), zero);
    Value step = make<top::DivOp>(f32, dims, make<top::SubOp>(f32, dims, high, low), scalar(255));
    Value zeros = make<top::CompareOp>(builder.getI1Type(), dims, high, low,
                                       top::CompareKindAttr::get(builder.getContext(), top::CompareKind::eq));
    Value scale = make<top::WhereOp>(f32, dims, zeros, scalar(1), step);
    Value point = make<top::DivOp>(f32, dims, make<top::SubOp>(f32, dims, zero, low), scale);
    point = make<top::ClipOp>(f32, dims, point, builder.getF64FloatAttr(0), builder.getF64FloatAttr(255));
    Value zeroPoint = to(make<top::RoundOp>(f32, dims, point), u8);
    known = {make<top::QuantizeOp>(u8, dimsOf(x), x, scale, zeroPoint), scale, zeroPoint};
    return known;
  }

  OpBuilder builder;
  Location loc;
  llvm::DenseMap<Value, Rows> rows;
};

} // namespace

DynamicContractions quantizeDynamically(func::FuncOp function, int64_t groupSize) {
  DynamicContractions result;
  DynamicQuantizer quantizer(function);
  for (Operation &op : llvm::make_early_inc_range(function.getBody().front().without_terminator())) {
    const Precision precision = op.hasAttr(kPrecisionAttr) ? precisionOf(&op) : Precision::F32;
    if (precision == Precision::DYNAMIC_INT8) {
      result.ops.insert(quantizer.rewrite(cast<top::MatMulOp>(op)));
      result.removed.emplace_back(&op);
    } else if (quantizesBlocks(precision)) {
      result.ops.insert(rewriteToBlockMatMul(cast<top::MatMulOp>(op), groupSize));
      op.remove();
      op.dropAllReferences();
      result.removed.emplace_back(&op);
    }
  }
  return result;
}

} // namespace tessera::quant
