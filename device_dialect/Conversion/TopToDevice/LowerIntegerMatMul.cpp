//===- LowerIntegerMatMul.cpp - Matmuls of integers -----------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// sum (a - za)(b - zb) = sum a b - za sum b - zb sum a + K za zb. The last three terms are the bias if b is one
// constant matrix, otherwise vectors that the epilogue adds.
//===----------------------------------------------------------------------===//
#include "device_dialect/Conversion/TopToDevice/Quantized.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "top_dialect/IR/TopConvOps.h"

using namespace mlir;

namespace tessera::device {
namespace {

/// The right operand: constant weights with scales along N, or an activation.
struct RightOperand {
  Value values; ///< i8
  SmallVector<double> scales;
  int64_t zero = 0, largest = 255;
  bool oneConstant = false; ///< a constant without batch dims
};

class IntegerMatMul {
public:
  IntegerMatMul(PatternRewriter &rewriter, top::MatMulOp op, Requantisation requantisation)
      : rewriter(rewriter), op(op), requantisation(requantisation),
        tail(op, op.getRelu(), op.getReluLimit().convertToDouble()), lower(rewriter, tail.last) {
    lower.loc = op.getLoc();
    Shape a = op.getA();
    Dim steps = a[a.rank() - (op.getTransA() ? 2 : 1)];
    depth = steps.isKnown() ? steps.value() : 0;
  }

  void run() {
    std::optional<QuantizedTensor> a = matchQuantized(op.getA());
    if (!a || depth == 0 || !matchRight()) {
      return;
    }
    SmallVector<double> scales;
    Dim columns = Lowering::shape(op.getY()).back();
    if (!columns.isKnown() && (right.scales.size() > 1 || op.getBias())) {
      return;
    }
    for (int64_t n = 0; n < (columns.isKnown() ? columns.value() : 1); ++n) {
      scales.push_back(a->scaling.scale * right.scales[right.scales.size() == 1 ? 0 : n]);
    }
    std::optional<std::vector<int64_t>> bias = std::vector<int64_t>();
    if (op.getBias()) {
      bias = matchBias(op.getBias(), scales);
    }
    if (!bias || !proveSums(a->scaling, *bias)) {
      return;
    }
    rewriter.setInsertionPoint(tail.last);
    left = a->values;
    makeRight();
    leftZero = a->scaling.zero;
    replaceTail(lower, tail, build(ContractionForm(tail, scales, requantisation), std::move(*bias)));
  }

private:
  bool matchRight() {
    int64_t rank = Lowering::shape(op.getB()).rank();
    if ((weights = matchWeights(op.getB(), rank - (op.getTransB() ? 2 : 1)))) {
      right.scales = weights->scales;
      right.largest = weights->largest;
      right.oneConstant =
          llvm::all_of(Shape(weights->type).values().drop_back(2), [](int64_t dim) { return dim == 1; });
      return true;
    }
    activation = matchQuantized(op.getB());
    if (!activation || !activation->scaling.element.isInteger(8)) {
      return false;
    }
    const Scaling &scaling = activation->scaling;
    right.scales = {scaling.scale};
    right.zero = scaling.zero;
    right.largest = std::max(scaling.highest() - scaling.zero, scaling.zero - scaling.lowest());
    return true;
  }

  bool proveSums(const Scaling &a, ArrayRef<int64_t> bias) {
    if (weights) {
      SumProof proof(a, *weights, depth, bias);
      sumBound = proof.attribute(rewriter);
      return proof.holds;
    }
    if (!a.element.isInteger(8)) {
      sumBound = rewriter.getI64IntegerAttr(a.reach() * 128 * depth);
    }
    return sumFits(a, depth, std::max<int64_t>(right.largest, 128), bias);
  }

  void makeRight() {
    if (weights) {
      right.values =
          top::createConstant(rewriter, lower.loc, weights->type, std::move(weights->values), "integer_weights");
      return;
    }
    right.values = activation->values;
    if (activation->scaling.element.isUnsignedInteger()) {
      // Use q - 128; the zero point is reduced by 128 too.
      auto type = Lowering::type(right.values).clone(rewriter.getI8Type());
      right.values = lower.map(right.values, cast<RankedTensorType>(type),
                               [](OpBuilder &b, Location loc, ValueRange values) -> Value {
                                 Value half = arith::ConstantOp::create(b, loc, b.getI8IntegerAttr(-128));
                                 return arith::XOrIOp::create(b, loc, values[0], half);
                               });
      right.zero -= 128;
    }
  }

  /// Returns `factor` times the sums of `x` over K, as a vector along the other dim that broadcasts to the result.
  Value sums(Value x, bool depthIsLast, bool isUnsigned, int64_t factor, bool alongRows) {
    int64_t rank = Lowering::shape(x).rank();
    Value sum = lower.reduce(
        x, ReduceKind::sum, {rank - (depthIsLast ? 1 : 2)}, rewriter.getI32Type(),
        [&](OpBuilder &b, Location loc, ValueRange values) -> Value {
          Type i32 = b.getI32Type();
          return isUnsigned ? arith::ExtUIOp::create(b, loc, i32, values[0]).getResult()
                            : arith::ExtSIOp::create(b, loc, i32, values[0]).getResult();
        },
        [&](OpBuilder &b, Location loc, ValueRange values) -> Value {
          return arith::MulIOp::create(b, loc, values[0], scalarConstant(b, loc, b.getI32Type(), factor));
        });
    SmallVector<Dim> dims = Lowering::shape(sum).dims();
    Dim size = dims[rank - (depthIsLast ? 2 : 1)]; // the other dim has one element
    dims[rank - 2] = alongRows ? size : 1;
    dims[rank - 1] = alongRows ? 1 : size;
    return lower.reshape(sum, dims);
  }

  /// Returns the bias if all of its terms are constant; `bias` may be empty.
  Value constantBias(std::vector<int64_t> bias, bool correct) {
    if (bias.empty() && !correct) {
      return {};
    }
    int64_t columns = Lowering::shape(op.getY()).back().value();
    SmallVector<double> values(columns, 0);
    for (size_t n = 0; n < bias.size(); ++n) {
      values[n] = static_cast<double>(bias[n]);
    }
    if (correct) {
      std::optional<top::TensorData> data = top::getConstantData(right.values);
      for (auto [i, weight] : llvm::enumerate(data->data<int8_t>())) {
        int64_t n = op.getTransB() ? static_cast<int64_t>(i) / depth : static_cast<int64_t>(i) % columns;
        values[n] -= static_cast<double>(leftZero * weight);
      }
    }
    return lower.constant(values, rewriter.getI32Type(), {columns}, "integer_bias");
  }

  Value build(const ContractionForm &form, std::vector<int64_t> bias) {
    bool inBias = right.oneConstant && leftZero != 0;
    SmallVector<Value> extras = form.operands(lower, {static_cast<int64_t>(form.factors.size())});
    size_t factors = extras.size();
    if (leftZero != 0 && !inBias) {
      extras.push_back(sums(right.values, op.getTransB(), false, -leftZero, /*alongRows=*/false));
    }
    if (right.zero != 0) {
      bool isUnsigned = Lowering::element(left).isUnsignedInteger();
      extras.push_back(sums(left, !op.getTransA(), isUnsigned, -right.zero, /*alongRows=*/true));
    }
    int64_t both = depth * leftZero * right.zero;
    RankedTensorType type = withElement(Lowering::type(op.getY()), form.resultElement);
    auto matmul =
        MatMulOp::create(rewriter, lower.loc, type, left, right.values, constantBias(std::move(bias), inBias), extras,
                         Value(), op.getTransA(), op.getTransB(), /*packing=*/PackingInterface(), sumBound);
    lower.setEpilogue(matmul, [&](OpBuilder &b, Location loc, ValueRange values) {
      Value sum = values[0];
      for (Value correction : values.drop_front(1 + factors)) {
        sum = arith::AddIOp::create(b, loc, sum, correction);
      }
      if (both != 0) {
        sum = arith::AddIOp::create(b, loc, sum, scalarConstant(b, loc, sum.getType(), static_cast<double>(both)));
      }
      return form.emit(b, loc, sum, values.slice(1, factors));
    });
    return matmul.getY();
  }

  PatternRewriter &rewriter;
  top::MatMulOp op;
  Requantisation requantisation;
  ContractionTail tail;
  Lowering lower;
  std::optional<QuantizedWeights> weights;
  std::optional<QuantizedTensor> activation;
  RightOperand right;
  Value left;
  IntegerAttr sumBound; ///< bound of the sums, for i16
  int64_t depth, leftZero = 0;
};

} // namespace

void lowerIntegerMatMul(PatternRewriter &rewriter, Operation *op, Requantisation requantisation) {
  IntegerMatMul(rewriter, cast<top::MatMulOp>(op), requantisation).run();
}

} // namespace tessera::device
