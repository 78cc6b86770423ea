//===- LowerNorm.cpp - Softmax, normalisations, attention -----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/Conversion/TopToDevice/Lowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "top_dialect/IR/MaskedRows.h"
#include "top_dialect/IR/TopReduceOps.h"
#include <cmath>

using namespace mlir;

namespace tessera::device {
namespace {

using Dims = SmallVector<int64_t>;

/// Returns the dims that broadcast a [C] tensor along dim 1 of a tensor of `rank`.
Dims channelDims(int64_t channels, int64_t rank) {
  Dims dims(std::max<int64_t>(rank - 1, 1), 1);
  dims[0] = channels;
  return dims;
}

struct LowerSoftmaxOp : OpRewritePattern<top::SoftmaxOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(top::SoftmaxOp op, PatternRewriter &rewriter) const override {
    Lowering lower(rewriter, op);
    return lower.replace(
        SoftmaxOp::create(rewriter, lower.loc, op.getY().getType(), op.getX(), op.getAxis(), op.getLog()).getY());
  }
};

/// Lowers a batch norm that the graph passes did not fold into a convolution to y = x * factor + shift per channel.
struct LowerBatchNormOp : OpRewritePattern<top::BatchNormOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(top::BatchNormOp op, PatternRewriter &rewriter) const override {
    Lowering lower(rewriter, op);
    Value y = lowerConstant(lower, op);
    return lower.replace(y ? y : lowerDynamic(lower, op));
  }

private:
  static Value lowerConstant(Lowering &lower, top::BatchNormOp op) {
    auto scale = top::getConstantDoubles(op.getScale()), bias = top::getConstantDoubles(op.getBias());
    auto mean = top::getConstantDoubles(op.getMean()), variance = top::getConstantDoubles(op.getVariance());
    if (!scale || !bias || !mean || !variance) {
      return {};
    }
    SmallVector<double> factor, shift;
    for (size_t c = 0; c < scale->size(); ++c) {
      factor.push_back((*scale)[c] / std::sqrt((*variance)[c] + op.getEpsilon().convertToDouble()));
      shift.push_back((*bias)[c] - (*mean)[c] * factor.back());
    }
    Dims dims = channelDims(scale->size(), Lowering::shape(op.getX()).rank());
    Type element = Lowering::element(op.getX());
    Value a = lower.constant(factor, element, dims, "bn_factor");
    Value b = lower.constant(shift, element, dims, "bn_shift");
    return lower.map({op.getX(), a, b}, Lowering::type(op.getY()),
                     [](OpBuilder &builder, Location loc, ValueRange values) -> Value {
                       Value product = arith::MulFOp::create(builder, loc, values[0], values[1]);
                       return arith::AddFOp::create(builder, loc, product, values[2]);
                     });
  }

  static Value lowerDynamic(Lowering &lower, top::BatchNormOp op) {
    SmallVector<Value> inputs{op.getX()};
    for (Value parameter : {op.getScale(), op.getBias(), op.getMean(), op.getVariance()}) {
      Dims dims = channelDims(Lowering::dims(parameter)[0], Lowering::shape(op.getX()).rank());
      inputs.push_back(lower.reshape(parameter, dims));
    }
    double epsilon = op.getEpsilon().convertToDouble();
    return lower.map(inputs, Lowering::type(op.getY()),
                     [&](OpBuilder &builder, Location loc, ValueRange values) -> Value {
                       Value eps = scalarConstant(builder, loc, values[4].getType(), epsilon);
                       Value variance = arith::AddFOp::create(builder, loc, values[4], eps);
                       Value deviation = math::SqrtOp::create(builder, loc, variance);
                       Value centred = arith::SubFOp::create(builder, loc, values[0], values[3]);
                       Value unit = arith::DivFOp::create(builder, loc, centred, deviation);
                       Value scaled = arith::MulFOp::create(builder, loc, unit, values[1]);
                       return arith::AddFOp::create(builder, loc, scaled, values[2]);
                     });
  }
};

struct LowerLayerNormOp : OpRewritePattern<top::LayerNormOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(top::LayerNormOp op, PatternRewriter &rewriter) const override {
    Lowering lower(rewriter, op);
    return lower.replace(NormOp::create(rewriter, lower.loc, op.getY().getType(), op.getX(), op.getScale(),
                                        op.getBias(), op.getAxis(), op.getEpsilon(), op.getRms())
                             .getY());
  }
};

/// Reshapes each group into one row, so that it is normalised as a whole.
struct LowerGroupNormOp : OpRewritePattern<top::GroupNormOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(top::GroupNormOp op, PatternRewriter &rewriter) const override {
    Lowering lower(rewriter, op);
    RankedTensorType type = Lowering::type(op.getX());
    Shape sizes = type;
    int64_t groups = op.getGroups(), channels = sizes[1].value();
    Value x = lower.reshape(op.getX(), {sizes[0], groups, countElements(sizes.dropFront(2)) * (channels / groups)});
    Value unit = NormOp::create(rewriter, lower.loc, x.getType(), x, Value(), Value(), 2, op.getEpsilon(),
                                /*rms=*/false);
    Dims dims = channelDims(channels, type.getRank());
    SmallVector<Value> inputs{lower.reshape(unit, sizes), lower.reshape(op.getScale(), dims),
                              lower.reshape(op.getBias(), dims)};
    return lower.replace(lower.map(inputs, type, [](OpBuilder &builder, Location loc, ValueRange values) -> Value {
      Value scaled = arith::MulFOp::create(builder, loc, values[0], values[1]);
      return arith::AddFOp::create(builder, loc, scaled, values[2]);
    }));
  }
};

/// Computes the sum of squares over neighbouring channels as a mean pooling over dim C of [N, 1, C, positions].
struct LowerLrnOp : OpRewritePattern<top::LrnOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(top::LrnOp op, PatternRewriter &rewriter) const override {
    Lowering lower(rewriter, op);
    RankedTensorType type = Lowering::type(op.getX());
    Value squares = lower.map(op.getX(), type, [](OpBuilder &b, Location loc, ValueRange values) {
      return arith::MulFOp::create(b, loc, values[0], values[0]).getResult();
    });
    Value mean = lower.reshape(meanOverChannels(lower, squares, op.getSize()), Shape(type));
    double alpha = op.getAlpha().convertToDouble(), beta = op.getBeta().convertToDouble();
    double bias = op.getBias().convertToDouble();
    return lower.replace(
        lower.map({op.getX(), mean}, type, [&](OpBuilder &b, Location loc, ValueRange values) -> Value {
          Type element = values[0].getType();
          Value weighted = arith::MulFOp::create(b, loc, values[1], scalarConstant(b, loc, element, alpha));
          Value base = arith::AddFOp::create(b, loc, weighted, scalarConstant(b, loc, element, bias));
          Value power = math::PowFOp::create(b, loc, base, scalarConstant(b, loc, element, beta));
          return arith::DivFOp::create(b, loc, values[0], power);
        }));
  }

private:
  static Value meanOverChannels(Lowering &lower, Value x, int64_t size) {
    Shape sizes = x;
    SmallVector<Dim> dims{sizes[0], 1, sizes[1], countElements(sizes.dropFront(2))};
    int64_t before = (size - 1) / 2, after = size - 1 - before;
    Builder &b = lower.rewriter;
    auto pool = PoolOp::create(lower.rewriter, lower.loc, tensorType(dims, Lowering::element(x)),
                               lower.reshape(x, dims), ValueRange(), PoolKind::avg, b.getDenseI64ArrayAttr({size, 1}),
                               b.getDenseI64ArrayAttr({1, 1}), b.getDenseI64ArrayAttr({before, 0, after, 0}),
                               b.getDenseI64ArrayAttr({1, 1}), /*countIncludePad=*/true);
    lower.setEpilogue(pool, nullptr);
    return pool.getY();
  }
};

struct LowerAttentionOp : OpRewritePattern<top::AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(top::AttentionOp op, PatternRewriter &rewriter) const override {
    Lowering lower(rewriter, op);
    auto lowered = AttentionOp::create(rewriter, lower.loc, op.getY().getType(), op.getQ(), op.getK(), op.getV(),
                                       op.getMask(), op.getScale(), /*views=*/nullptr, /*levels=*/nullptr,
                                       /*valueScale=*/nullptr, /*keys=*/nullptr);
    top::setZeroMaskedRows(lowered, top::zeroesMaskedRows(op));
    return lower.replace(lowered.getY());
  }
};

/// Lowers to y = x * [cos, cos] + swapped(x) * [-sin, sin].
struct LowerRopeOp : OpRewritePattern<top::RopeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(top::RopeOp op, PatternRewriter &rewriter) const override {
    Lowering lower(rewriter, op);
    bool interleaved = op.getInterleaved();
    int64_t half = Lowering::shape(op.getX()).back().value() / 2;
    Value cosines = widened(lower, op.getCos(), half), sines = widened(lower, op.getSin(), half);
    Value negative = negated(lower, sines);
    Value cos = pair(lower, cosines, cosines, interleaved);
    Value sin = pair(lower, negative, sines, interleaved);
    Value swapped = swap(lower, op.getX(), interleaved);
    return lower.replace(lower.map({op.getX(), cos, swapped, sin}, Lowering::type(op.getY()),
                                   [](OpBuilder &b, Location loc, ValueRange values) -> Value {
                                     Value first = arith::MulFOp::create(b, loc, values[0], values[1]);
                                     Value second = arith::MulFOp::create(b, loc, values[2], values[3]);
                                     return arith::AddFOp::create(b, loc, first, second);
                                   }));
  }

private:
  /// Returns the table with a last dim of |half| elements; a single element is broadcast.
  static Value widened(Lowering &lower, Value table, int64_t half) {
    SmallVector<Dim> dims = Lowering::shape(table).dims();
    if (dims.empty()) {
      dims.push_back(1);
      table = lower.reshape(table, dims);
    }
    if (dims.back().is(half)) {
      return table;
    }
    dims.back() = half;
    return lower.expand(table, dims);
  }

  static Value negated(Lowering &lower, Value x) {
    if (auto values = top::getConstantDoubles(x)) {
      for (double &value : *values) {
        value = -value;
      }
      return lower.constant(*values, Lowering::element(x), Lowering::dims(x), "neg_sin");
    }
    return lower.map(x, Lowering::type(x), [](OpBuilder &b, Location loc, ValueRange values) {
      return arith::NegFOp::create(b, loc, values[0]).getResult();
    });
  }

  /// Returns the region that puts [..., E/2] at the first (second) half or the even (odd) positions of [..., E].
  static SymbolicPiece half(int64_t source, ArrayRef<Dim> dims, bool second, bool interleaved) {
    auto piece = SymbolicPiece::identity(source, dims);
    piece.dstSteps.back() = interleaved ? 2 : 1;
    piece.dstOffsets.back() = !second ? Dim(0) : interleaved ? Dim(1) : dims.back();
    return piece;
  }

  static Value pair(Lowering &lower, Value first, Value second, bool interleaved) {
    SmallVector<Dim> dims = Lowering::shape(first).dims(), whole(dims);
    whole.back() *= 2;
    return lower.copy({first, second}, {half(0, dims, false, interleaved), half(1, dims, true, interleaved)}, whole);
  }

  static Value swap(Lowering &lower, Value x, bool interleaved) {
    SmallVector<Dim> whole = Lowering::shape(x).dims(), dims(whole);
    dims.back() = floorDiv(dims.back(), 2);
    SymbolicPiece first = half(0, dims, false, interleaved), second = half(0, dims, true, interleaved);
    for (auto [piece, from] : {std::pair(&first, &second), std::pair(&second, &first)}) {
      piece->srcOffsets = from->dstOffsets;
      piece->srcSteps = from->dstSteps;
    }
    return lower.copy(x, {first, second}, whole);
  }
};

} // namespace

void populateNormPatterns(RewritePatternSet &patterns) {
  patterns.add<LowerSoftmaxOp, LowerBatchNormOp, LowerLayerNormOp, LowerGroupNormOp, LowerLrnOp, LowerAttentionOp,
               LowerRopeOp>(patterns.getContext());
}

} // namespace tessera::device
