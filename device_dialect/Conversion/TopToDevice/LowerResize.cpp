//===- LowerResize.cpp - Lowering resizes to tables -----------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/Conversion/TopToDevice/ElementCount.h"
#include "device_dialect/Conversion/TopToDevice/Lowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
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

/// Emits f64 arithmetic.
struct Doubles {
  OpBuilder &b;
  Location loc;

  Value number(double value) { return scalarConstant(b, loc, b.getF64Type(), value); }
  Value add(Value x, Value y) { return arith::AddFOp::create(b, loc, x, y); }
  Value sub(Value x, Value y) { return arith::SubFOp::create(b, loc, x, y); }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, loc, x, y); }
  Value div(Value x, Value y) { return arith::DivFOp::create(b, loc, x, y); }
  Value is(arith::CmpFPredicate predicate, Value x, Value y) { return arith::CmpFOp::create(b, loc, predicate, x, y); }
  Value where(Value condition, Value x, Value y) { return arith::SelectOp::create(b, loc, condition, x, y); }
  Value narrow(Type type, Value x) { return arith::TruncFOp::create(b, loc, type, x); }
};

/// Computes the tables of an axis of open size at run time: two taps per position, with the arithmetic, and so the
/// bits, of top::resizeTaps().
class OpenTables {
public:
  OpenTables(Lowering &lower, top::ResizeOp op, int64_t axis)
      : lower(lower), op(op), axis(axis), in(lower, Shape(op.getX()), {axis}), out(lower, Shape(op.getY()), {axis}) {}

  Tables build() {
    Type i32 = lower.rewriter.getI32Type(), f32 = lower.rewriter.getF32Type();
    Value index = map(i32, [&](Doubles f, const Position &at) -> Value {
      // A tap of weight 0 reads the position of the other one.
      Value hasTwo = f.is(arith::CmpFPredicate::OGT, at.weight, f.number(0));
      Value position = f.add(at.base, f.where(hasTwo, at.tap, f.number(0)));
      position = f.where(f.is(arith::CmpFPredicate::OLT, position, f.number(0)), f.number(0), position);
      position = f.where(f.is(arith::CmpFPredicate::OGT, position, at.last), at.last, position);
      return arith::FPToSIOp::create(f.b, f.loc, i32, position);
    });
    Value weight = map(f32, [&](Doubles f, const Position &at) { return f.narrow(f32, at.weight); });
    return {index, weight, /*identity=*/false};
  }

private:
  /// Values of one tap of one result position.
  struct Position {
    Value tap;    ///< 0 or 1
    Value base;   ///< position of the first tap, before it is limited to x
    Value last;   ///< last position in x
    Value weight; ///< of this tap
  };

  Value map(Type element, llvm::function_ref<Value(Doubles, const Position &)> result) {
    Shape y = op.getY();
    int64_t most = maxOf(y[axis]);
    SmallVector<double> numbers(llvm::map_range(llvm::seq<int64_t>(0, most), [](int64_t i) { return double(i); }));
    Type f64 = lower.rewriter.getF64Type();
    Value all = lower.constant(numbers, f64, {most, 1}, "resize_position");
    SmallVector<Value> inputs{lower.slice(all, {0, 0}, {y[axis], 1}, {1, 1}),
                              lower.constant({0, 1}, f64, {1, 2}, "resize_tap")};
    for (ValueRange sizes : {in.operands(), out.operands()}) {
      llvm::append_range(inputs, llvm::map_range(sizes, [&](Value size) { return lower.reshape(size, {1, 1}); }));
    }
    return lower.map(inputs, tensorType({y[axis], 2}, element), [&](OpBuilder &b, Location loc, ValueRange values) {
      Doubles f{b, loc};
      size_t count = in.operands().size();
      Value sizeIn = in.emit(b, loc, b.getF64Type(), values.slice(2, count));
      Value sizeOut = out.emit(b, loc, b.getF64Type(), values.drop_front(2 + count));
      Value at = coordinate(f, values[0], sizeIn, sizeOut), base = math::FloorOp::create(b, loc, at);
      Value first = weightAt(f, f.sub(base, at)), second = weightAt(f, f.sub(f.add(base, f.number(1)), at));
      Value isFirst = f.is(arith::CmpFPredicate::OLT, values[1], f.number(0.5));
      Value weight = f.div(f.where(isFirst, first, second), f.add(first, second));
      return result(f, {values[1], base, f.sub(sizeIn, f.number(1)), weight});
    });
  }

  /// Returns the weight of a tap at |distance|.
  static Value weightAt(Doubles f, Value distance) {
    Value magnitude = math::AbsFOp::create(f.b, f.loc, distance);
    Value isNear = f.is(arith::CmpFPredicate::OLT, magnitude, f.number(1));
    return f.where(isNear, f.sub(f.number(1), magnitude), f.number(0));
  }

  /// Returns the coordinate in x of result position |o|.
  Value coordinate(Doubles f, Value o, Value sizeIn, Value sizeOut) {
    Value scale = f.number(op.getScales()[axis]), half = f.number(0.5), one = f.number(1);
    Value centre = f.div(f.add(o, half), scale);
    Value hasSeveral = f.is(arith::CmpFPredicate::OGT, sizeOut, one);
    switch (op.getCoord()) {
    case top::ResizeCoord::half_pixel:
      return f.sub(centre, half);
    case top::ResizeCoord::pytorch_half_pixel:
      return f.where(hasSeveral, f.sub(centre, half), f.number(0));
    case top::ResizeCoord::align_corners: {
      Value steps = f.where(hasSeveral, f.sub(sizeOut, one), one);
      return f.where(hasSeveral, f.div(f.mul(o, f.sub(sizeIn, one)), steps), f.number(0));
    }
    case top::ResizeCoord::asymmetric:
      return f.div(o, scale);
    case top::ResizeCoord::half_pixel_symmetric: {
      Value adjustment = f.div(sizeOut, f.mul(scale, sizeIn));
      Value offset = f.mul(f.div(sizeIn, f.number(2)), f.sub(one, adjustment));
      return f.sub(f.add(offset, centre), half);
    }
    case top::ResizeCoord::tf_crop_and_resize: // see top::hasNeighbouringTaps()
    case top::ResizeCoord::tf_half_pixel_for_nn:
      return centre;
    }
    llvm_unreachable("unknown coordinates");
  }

  Lowering &lower;
  top::ResizeOp op;
  int64_t axis;
  ElementCount in, out;
};

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
      if (!xSizes[d].isKnown() || !ySizes[d].isKnown()) { // see the constraint symbolic_size
        if (std::optional<int64_t> times = top::findRepetition(op, d)) {
          result = repeat(lower, result, d, *times);
          continue;
        }
        Tables pair = OpenTables(lower, op, int64_t(d)).build();
        axes.push_back(int64_t(d));
        tables.append({pair.index, pair.weight});
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
