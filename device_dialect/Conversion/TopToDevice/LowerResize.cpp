//===- LowerResize.cpp - Lowering resizes to tables -----------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/Conversion/TopToDevice/Lowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "top_dialect/IR/TopShapeOps.h"
#include "top_dialect/Reference/ResizeTaps.h"

using namespace mlir;

namespace tessera::device {
namespace {

using Dims = SmallVector<int64_t>;

/// The two tables of one axis. Every position has as many taps as the widest one; unused taps have weight 0.
struct Tables {
  Value index, weight;
  bool identity = true;
};

Tables buildTables(Lowering &lower, ArrayRef<top::ResizeTaps> positions, int64_t inSize) {
  size_t width = 1;
  for (const top::ResizeTaps &position : positions) {
    width = std::max(width, position.taps.size());
  }
  Tables tables;
  tables.identity = static_cast<int64_t>(positions.size()) == inSize;
  SmallVector<double> indices, weights;
  for (auto [o, position] : llvm::enumerate(positions)) {
    double weightOfSelf = 0;
    for (size_t t = 0; t < width; ++t) {
      bool present = t < position.taps.size();
      // A tap of weight 0 must still read a valid position.
      indices.push_back(present ? position.taps[t].position : position.taps.front().position);
      weights.push_back(present ? position.taps[t].weight : 0.0);
      weightOfSelf += indices.back() == static_cast<double>(o) ? weights.back() : 0;
    }
    tables.identity = tables.identity && weightOfSelf == 1.0;
  }
  Dims dims{static_cast<int64_t>(positions.size()), static_cast<int64_t>(width)};
  tables.index = lower.constant(indices, lower.rewriter.getI32Type(), dims, "resize_index");
  tables.weight = lower.constant(weights, lower.rewriter.getF32Type(), dims, "resize_weight");
  return tables;
}

struct LowerResizeOp : OpRewritePattern<top::ResizeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(top::ResizeOp op, PatternRewriter &rewriter) const override {
    Lowering lower(rewriter, op);
    Shape xSizes = op.getX(), ySizes = op.getY();
    Value result = op.getX();
    SmallVector<Value> tables;
    Dims axes;
    Value outside;
    for (size_t d = 0; d < xSizes.rank(); ++d) {
      if (!xSizes[d].isKnown()) {
        result = repeat(lower, result, d, *top::findRepetition(op, d)); // see the constraint symbolic_size
        continue;
      }
      int64_t x = xSizes[d].value(), y = ySizes[d].value();
      if (top::keepsDim(op, d, x, y)) {
        continue;
      }
      std::vector<top::ResizeTaps> positions = top::resizeTaps(op, d, x, y);
      Tables pair = buildTables(lower, positions, x);
      if (!pair.identity) {
        axes.push_back(d);
        tables.append({pair.index, pair.weight});
      }
      outside = markOutside(lower, positions, ySizes.rank() - d, outside);
    }
    if (!axes.empty()) {
      result = ResizeOp::create(rewriter, lower.loc, Lowering::type(op.getY()), result, tables,
                                rewriter.getDenseI64ArrayAttr(axes));
    }
    return lower.replace(extrapolate(lower, op, result, outside));
  }

private:
  /// Repeats each element along |dim|, with one strided region per repetition.
  static Value repeat(Lowering &lower, Value x, size_t dim, int64_t times) {
    if (times == 1) {
      return x;
    }
    SmallVector<Dim> sizes = Lowering::shape(x).dims();
    std::vector<SymbolicPiece> pieces(size_t(times), SymbolicPiece::identity(0, sizes));
    for (auto [i, piece] : llvm::enumerate(pieces)) {
      piece.dstOffsets[dim] = int64_t(i), piece.dstSteps[dim] = times;
    }
    sizes[dim] *= times;
    return lower.copy(x, pieces, sizes);
  }

  /// Returns an i1 mask of the positions outside the input along one dim (`rank` dims from the end), combined with the
  /// mask `before` of the preceding dims; `before` if there are none.
  static Value markOutside(Lowering &lower, ArrayRef<top::ResizeTaps> positions, int64_t rank, Value before) {
    SmallVector<double> mask;
    for (const top::ResizeTaps &position : positions) {
      mask.push_back(position.outside);
    }
    if (llvm::none_of(mask, [](double value) { return value != 0; })) {
      return before;
    }
    Dims dims(rank, 1);
    dims[0] = positions.size();
    Value here = lower.constant(mask, lower.rewriter.getI1Type(), dims, "resize_outside");
    if (!before) {
      return here;
    }
    Dims joined(Lowering::dims(before));
    joined[joined.size() - rank] = dims[0];
    return lower.map({before, here}, RankedTensorType::get(joined, lower.rewriter.getI1Type()),
                     [](OpBuilder &b, Location loc, ValueRange values) {
                       return arith::OrIOp::create(b, loc, values[0], values[1]).getResult();
                     });
  }

  static Value extrapolate(Lowering &lower, top::ResizeOp op, Value result, Value outside) {
    if (!outside) {
      return result;
    }
    double value = op.getExtrapolation().convertToDouble();
    return lower.map({outside, result}, Lowering::type(op.getY()),
                     [&](OpBuilder &b, Location loc, ValueRange values) -> Value {
                       Value fill = scalarConstant(b, loc, values[1].getType(), value);
                       return arith::SelectOp::create(b, loc, values[0], fill, values[1]);
                     });
  }
};

} // namespace

void populateResizePatterns(RewritePatternSet &patterns) { patterns.add<LowerResizeOp>(patterns.getContext()); }

} // namespace tessera::device
