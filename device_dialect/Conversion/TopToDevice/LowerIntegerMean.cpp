//===- LowerIntegerMean.cpp - Means of integers ---------------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// The mean of n quantised elements is an i32 sum minus n zero points, times a factor that includes 1 / n. Means over
// whole dims are reductions; means over windows are depthwise convolutions with ones.
//===----------------------------------------------------------------------===//
#include "device_dialect/Conversion/TopToDevice/ElementCount.h"
#include "device_dialect/Conversion/TopToDevice/Quantized.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "top_dialect/IR/TopConvOps.h"
#include "top_dialect/IR/TopReduceOps.h"

using namespace mlir;

namespace tessera::device {
namespace {

using Dims = SmallVector<int64_t>;

/// Operands of the epilogue of a sum or mean whose number of elements is known only at run time.
class OpenReduction {
public:
  OpenReduction(Lowering &lower, Shape x, ArrayRef<int64_t> axes)
      : lower(lower), count(lower, x, axes), rank(x.rank()) {}

  /// Returns the factor of the sum: what ContractionForm computes for a known number, with the divisions in the same
  /// order and the quotient rounded to f32.
  Value factor(double scale, bool mean, const std::optional<Scaling> &output) {
    return map(lower.rewriter.getF32Type(), [&](OpBuilder &b, Location loc, ValueRange sizes) -> Value {
      Type f64 = b.getF64Type();
      Value factor = scalarConstant(b, loc, f64, scale);
      if (mean) {
        factor = arith::DivFOp::create(b, loc, factor, count.emit(b, loc, f64, sizes));
      }
      if (output) {
        factor = arith::DivFOp::create(b, loc, factor, scalarConstant(b, loc, f64, output->scale));
      }
      return arith::TruncFOp::create(b, loc, b.getF32Type(), factor);
    });
  }

  /// Returns the sum of the zero points.
  Value zeros(int64_t zero) {
    return map(lower.rewriter.getI32Type(), [&](OpBuilder &b, Location loc, ValueRange sizes) -> Value {
      Value one = scalarConstant(b, loc, b.getI32Type(), static_cast<double>(zero));
      return arith::MulIOp::create(b, loc, count.emit(b, loc, b.getI32Type(), sizes), one);
    });
  }

private:
  Value map(Type element, Lowering::Body body) {
    return lower.map(count.operands(), RankedTensorType::get(Dims(rank, 1), element), body);
  }

  Lowering &lower;
  ElementCount count;
  size_t rank;
};

/// Lowers a sum or mean over `axes`; returns false if it did not change anything.
bool lowerReduction(PatternRewriter &rewriter, Operation *op, ArrayRef<int64_t> axes, bool mean,
                    Requantisation requantisation) {
  std::optional<QuantizedTensor> x = matchQuantized(op->getOperand(0));
  Dim elements = 1;
  for (int64_t axis : axes) {
    elements *= Lowering::shape(op->getOperand(0))[axis];
  }
  const bool isOpen = !elements.isKnown();
  if (!x || elements.isUnknown() || axes.empty() || !sumFits(x->scaling, maxOf(elements), 1, {}) ||
      (isOpen && requantisation != Requantisation::Float)) {
    return false;
  }
  ContractionTail tail(op, false, 0);
  const double scale = x->scaling.scale;
  ContractionForm form(tail, {mean && !isOpen ? scale / static_cast<double>(elements.value()) : scale}, requantisation);
  rewriter.setInsertionPoint(tail.last);
  Lowering lower(rewriter, tail.last);
  lower.loc = op->getLoc();
  SmallVector<Value> extras;
  if (isOpen) {
    OpenReduction open(lower, Lowering::shape(op->getOperand(0)), axes);
    extras = {open.factor(scale, mean, tail.output), open.zeros(x->scaling.zero)};
  }
  bool isUnsigned = x->scaling.element.isUnsignedInteger();
  Value y = lower.reduce(
      x->values, ReduceKind::sum, axes, form.resultElement,
      [&](OpBuilder &b, Location loc, ValueRange values) -> Value {
        Type i32 = b.getI32Type();
        return isUnsigned ? arith::ExtUIOp::create(b, loc, i32, values[0]).getResult()
                          : arith::ExtSIOp::create(b, loc, i32, values[0]).getResult();
      },
      [&](OpBuilder &b, Location loc, ValueRange values) {
        Value sum = values[0];
        if (isOpen) {
          return form.emit(b, loc, arith::SubIOp::create(b, loc, sum, values[2]), values.slice(1, 1));
        }
        if (int64_t zeros = elements.value() * x->scaling.zero) {
          sum = arith::SubIOp::create(b, loc, sum, scalarConstant(b, loc, sum.getType(), static_cast<double>(zeros)));
        }
        return form.emit(b, loc, sum, {});
      },
      extras);
  replaceTail(lower, tail, lower.reshape(y, Lowering::shape(op->getResult(0))));
  return true;
}

/// Returns true if every window divides by the same number of positions, all of them inside x or its padding.
bool dividesAlike(top::AvgPoolOp op) {
  Shape x = op.getX(), y = op.getY();
  size_t spatial = op.getKernel().size();
  for (size_t d = 0; d < spatial; ++d) {
    int64_t begin = op.getPads()[d], end = op.getPads()[d + spatial];
    Dim reach = (y[d + 2] - 1) * op.getStrides()[d] + (op.getKernel()[d] - 1) * op.getDilations()[d] + 1;
    bool padded = begin || end;
    if ((padded && !op.getCountIncludePad()) || minOf(x[d + 2] + begin + end - reach) < 0) {
      return false;
    }
  }
  return true;
}

void lowerWindows(PatternRewriter &rewriter, top::AvgPoolOp op, Requantisation requantisation) {
  std::optional<QuantizedTensor> x = matchQuantized(op.getX());
  int64_t count = ShapedType::getNumElements(op.getKernel()), rank = Lowering::shape(op.getX()).rank();
  if (!Lowering::shape(op.getX())[1].isKnown()) {
    return;
  }
  int64_t channels = Lowering::shape(op.getX())[1].value();
  bool padded = llvm::any_of(op.getPads(), [](int64_t pad) { return pad != 0; });
  bool hasPadding = !x || !padded || x->scaling.zero == 0 || x->scaling.element.isInteger(8); // kernels pad with bytes
  if (!x || !hasPadding || rank < 4 || !dividesAlike(op) || !sumFits(x->scaling, count, 1, {})) {
    return;
  }
  ContractionTail tail(op, false, 0);
  ContractionForm form(tail, {x->scaling.scale / static_cast<double>(count)}, requantisation);
  rewriter.setInsertionPoint(tail.last);
  Lowering lower(rewriter, tail.last);
  lower.loc = op.getLoc();
  Dims wDims{channels, 1};
  llvm::append_range(wDims, op.getKernel());
  auto wType = RankedTensorType::get(wDims, rewriter.getI8Type());
  Value ones = top::createConstant(rewriter, lower.loc, wType, std::vector<char>(numElements(wType), 1), "ones");
  Value bias;
  if (int64_t zeros = count * x->scaling.zero) {
    bias = lower.constant(SmallVector<double>(channels, static_cast<double>(-zeros)), rewriter.getI32Type(), {channels},
                          "integer_bias");
  }
  IntegerAttr sumBound =
      x->scaling.element.isInteger(8) ? IntegerAttr() : rewriter.getI64IntegerAttr(count * x->scaling.reach());
  auto conv =
      ConvOp::create(rewriter, lower.loc, withElement(Lowering::type(op.getY()), form.resultElement), x->values, ones,
                     bias, ValueRange(), Value(), op.getStridesAttr(), op.getPadsAttr(), op.getDilationsAttr(),
                     channels, /*packing=*/PackingInterface(), padded ? x->scaling.zero : 0, sumBound);
  lower.setEpilogue(conv,
                    [&](OpBuilder &b, Location loc, ValueRange values) { return form.emit(b, loc, values[0], {}); });
  replaceTail(lower, tail, conv.getY());
}

} // namespace

void lowerIntegerMean(PatternRewriter &rewriter, Operation *op, Requantisation requantisation) {
  if (auto reduce = dyn_cast<top::ReduceOp>(op)) {
    bool mean = reduce.getKind() == top::ReduceKind::mean;
    if (mean || reduce.getKind() == top::ReduceKind::sum) {
      lowerReduction(rewriter, op, reduce.getAxes(), mean, requantisation);
    }
    return;
  }
  auto pool = cast<top::AvgPoolOp>(op);
  Shape spatial = Lowering::shape(pool.getX()).dropFront(2);
  bool whole = sameSizes(pool.getKernel(), spatial) &&
               llvm::all_of(pool.getPads(), [](int64_t pad) { return pad == 0; }) &&
               llvm::all_of(pool.getDilations(), [](int64_t dilation) { return dilation == 1; });
  if (!whole) {
    return lowerWindows(rewriter, pool, requantisation);
  }
  Dims axes;
  for (size_t d = 0; d < spatial.rank(); ++d) {
    axes.push_back(static_cast<int64_t>(d) + 2);
  }
  lowerReduction(rewriter, op, axes, /*mean=*/true, requantisation);
}

} // namespace tessera::device
