//===- LowerIntegerMean.cpp - Means of integers ---------------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// The mean of n quantised elements is an i32 sum minus n zero points, times a factor that includes 1 / n. Means over
// whole dims are reductions; means over windows are depthwise convolutions with ones.
//===----------------------------------------------------------------------===//
#include "device_dialect/Conversion/TopToDevice/ElementCount.h"
#include "device_dialect/Conversion/TopToDevice/Quantized.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "top_dialect/IR/TopConvOps.h"
#include "top_dialect/IR/TopReduceOps.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;

namespace tessera::device {
namespace {

using Dims = SmallVector<int64_t>;

/// The range of a factor that is divided by a number of elements known only at run time.
struct FactorRange {
  FactorRange(double largest, int64_t most) : halvings(llvm::Log2_64_Ceil(static_cast<uint64_t>(most)) + 1) {
    std::frexp(largest, &exponent);
  }

  /// Returns true if every quotient has a FixedFactor that neither saturates nor loses digits.
  bool isNormal() const { return exponent < 30 && exponent - static_cast<int>(halvings) > -30; }

  int exponent;      ///< of the quotient by 1
  unsigned halvings; ///< quotients are at least 2^(exponent - halvings - 1)
};

/// Emits numerics::toFixed() of an f64 in |range| as two i32: the mantissa and the shift.
std::pair<Value, Value> emitFixedFactor(OpBuilder &b, Location loc, Value factor, const FactorRange &range) {
  Type f64 = b.getF64Type(), i64 = b.getI64Type(), i32 = b.getI32Type();
  Value shift = scalarConstant(b, loc, i64, 31 - range.exponent);
  Value scaled = arith::MulFOp::create(b, loc, factor, scalarConstant(b, loc, f64, std::ldexp(1, 31 - range.exponent)));
  for (unsigned k = 0; k < range.halvings; ++k) { // doubles |scaled| while it is below 2^30
    Value low = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, scaled,
                                      scalarConstant(b, loc, f64, std::ldexp(1, 30)));
    Value twice = arith::AddFOp::create(b, loc, scaled, scaled);
    scaled = arith::SelectOp::create(b, loc, low, twice, scaled);
    shift = arith::AddIOp::create(b, loc, shift, arith::ExtUIOp::create(b, loc, i64, low));
  }
  Value rounded = math::RoundEvenOp::create(b, loc, scaled);
  Value mantissa = arith::FPToSIOp::create(b, loc, i64, rounded);
  Value carry = arith::ShRSIOp::create(b, loc, mantissa, scalarConstant(b, loc, i64, 31)); // 1 if rounded up to 2^31
  mantissa = arith::ShRSIOp::create(b, loc, mantissa, carry);
  shift = arith::SubIOp::create(b, loc, shift, carry);
  return {arith::TruncIOp::create(b, loc, i32, mantissa), arith::TruncIOp::create(b, loc, i32, shift)};
}

/// Operands of the epilogue of a sum or mean whose number of elements is known only at run time.
class OpenReduction {
public:
  OpenReduction(Lowering &lower, Shape x, ArrayRef<int64_t> axes, double scale, const std::optional<Scaling> &output)
      : lower(lower), count(lower, x, axes), rank(x.rank()), scale(scale), output(output) {}

  /// Returns the factor of the sum: what ContractionForm computes for a known number, with the divisions in the same
  /// order and the quotient rounded to f32.
  Value factor(bool mean) {
    return map(lower.rewriter.getF32Type(), [&](OpBuilder &b, Location loc, ValueRange sizes) -> Value {
      return arith::TruncFOp::create(b, loc, b.getF32Type(), emitFactor(b, loc, sizes, mean));
    });
  }

  /// Returns the factor of a mean as mantissa and shift.
  SmallVector<Value> fixedFactor(const FactorRange &range) {
    SmallVector<Value> parts;
    for (bool isShift : {false, true}) {
      parts.push_back(map(lower.rewriter.getI32Type(), [&](OpBuilder &b, Location loc, ValueRange sizes) -> Value {
        auto [mantissa, shift] = emitFixedFactor(b, loc, emitFactor(b, loc, sizes, /*mean=*/true), range);
        return isShift ? shift : mantissa;
      }));
    }
    return parts;
  }

  /// Returns the sum of the zero points.
  Value zeros(int64_t zero) {
    return map(lower.rewriter.getI32Type(), [&](OpBuilder &b, Location loc, ValueRange sizes) -> Value {
      Value one = scalarConstant(b, loc, b.getI32Type(), static_cast<double>(zero));
      return arith::MulIOp::create(b, loc, count.emit(b, loc, b.getI32Type(), sizes), one);
    });
  }

private:
  Value emitFactor(OpBuilder &b, Location loc, ValueRange sizes, bool mean) {
    Type f64 = b.getF64Type();
    Value factor = scalarConstant(b, loc, f64, scale);
    if (mean) {
      factor = arith::DivFOp::create(b, loc, factor, count.emit(b, loc, f64, sizes));
    }
    if (output) {
      factor = arith::DivFOp::create(b, loc, factor, scalarConstant(b, loc, f64, output->scale));
    }
    return factor;
  }

  Value map(Type element, Lowering::Body body) {
    return lower.map(count.operands(), RankedTensorType::get(Dims(rank, 1), element), body);
  }

  Lowering &lower;
  ElementCount count;
  size_t rank;
  double scale;
  std::optional<Scaling> output;
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
  if (!x || elements.isUnknown() || axes.empty() || !sumFits(x->scaling, maxOf(elements), 1, {})) {
    return false;
  }
  ContractionTail tail(op, false, 0);
  const double scale = x->scaling.scale;
  const FactorRange range(tail.output ? scale / tail.output->scale : scale, std::max<int64_t>(maxOf(elements), 1));
  ContractionForm form(tail, {mean && !isOpen ? scale / static_cast<double>(elements.value()) : scale}, requantisation);
  if (isOpen && form.inIntegers() && (minOf(elements) < 1 || !range.isNormal())) {
    return false;
  }
  rewriter.setInsertionPoint(tail.last);
  Lowering lower(rewriter, tail.last);
  lower.loc = op->getLoc();
  SmallVector<Value> extras;
  if (isOpen) {
    OpenReduction open(lower, Lowering::shape(op->getOperand(0)), axes, scale, tail.output);
    if (!form.inIntegers()) {
      extras = {open.factor(mean)};
    } else if (mean) {
      extras = open.fixedFactor(range);
    }
    extras.push_back(open.zeros(x->scaling.zero));
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
          sum = arith::SubIOp::create(b, loc, sum, values.back());
          return form.emit(b, loc, sum, values.drop_front().drop_back());
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
    int64_t stride = op.getStrides()[d], extent = (op.getKernel()[d] - 1) * op.getDilations()[d] + 1;
    Dim room = x[d + 2] + begin + end - extent;
    bool padded = begin || end;
    bool fits = sameSize(y[d + 2], floorDiv(room, stride) + 1) || minOf(room - (y[d + 2] - 1) * stride) >= 0;
    if ((padded && !op.getCountIncludePad()) || !fits) {
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
