//===- LowerIndex.cpp - Gather, scatter and one-hot -----------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/Conversion/TopToDevice/Lowering.h"
#include "device_dialect/IR/Layout.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "top_dialect/IR/TopShapeOps.h"

using namespace mlir;

namespace tessera::device {
namespace {

using Dims = SmallVector<int64_t>;

/// Constant indices become slices if they form at most this many arithmetic progressions.
constexpr size_t kMaxRuns = 4;

struct IndexRun {
  int64_t start, step, size;
};

/// Splits indices into arithmetic progressions; returns nothing if there are more than kMaxRuns.
std::optional<SmallVector<IndexRun>> splitRuns(ArrayRef<int64_t> indices) {
  SmallVector<IndexRun> runs;
  for (int64_t index : indices) {
    if (!runs.empty()) {
      IndexRun &run = runs.back();
      int64_t step = index - (run.start + (run.size - 1) * run.step);
      if (step != 0 && (run.size == 1 || step == run.step)) {
        run.step = step;
        ++run.size;
        continue;
      }
    }
    if (runs.size() == kMaxRuns) {
      return std::nullopt;
    }
    runs.push_back({index, 1, 1});
  }
  return runs;
}

/// Lowers a gather by constant indices to slices; returns null if the indices are unknown or form too many runs.
Value gatherRuns(Lowering &lower, Value x, Value indexValue, int64_t axis, Shape result) {
  // Long lists are no slices, and reading them costs.
  std::optional<SmallVector<int64_t>> indices = top::getConstantInts(indexValue);
  if (!indices || indices->empty()) {
    return {};
  }
  SmallVector<Dim> dims = Lowering::shape(x).dims();
  if (!dims[axis].isKnown()) {
    return {};
  }
  int64_t size = dims[axis].value();
  for (int64_t &index : *indices) {
    index += index < 0 ? size : 0;
    if (index < 0 || index >= size) {
      return {};
    }
  }
  std::optional<SmallVector<IndexRun>> runs = splitRuns(*indices);
  if (!runs) {
    return {};
  }
  dims[axis] = int64_t(indices->size());
  std::vector<SymbolicPiece> pieces;
  int64_t at = 0;
  for (const IndexRun &run : *runs) {
    auto piece = SymbolicPiece::identity(0, dims);
    piece.sizes[axis] = run.size;
    piece.dstOffsets[axis] = at;
    piece.srcOffsets[axis] = run.start;
    piece.srcSteps[axis] = run.step;
    pieces.push_back(piece);
    at += run.size;
  }
  bool identity = pieces.size() == 1 && sameSize(dims[axis], Lowering::shape(x)[axis]) && runs->front().step == 1;
  Value moved = identity ? x : lower.copy(x, pieces, dims);
  return lower.reshape(moved, result);
}

Value gather(Lowering &lower, Value x, Value indices, int64_t axis, RankedTensorType result) {
  Value y = gatherRuns(lower, x, indices, axis, result);
  return y ? y : GatherOp::create(lower.rewriter, lower.loc, result, x, indices, axis).getY();
}

struct LowerGatherOp : OpRewritePattern<top::GatherOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(top::GatherOp op, PatternRewriter &rewriter) const override {
    Lowering lower(rewriter, op);
    return lower.replace(gather(lower, op.getX(), op.getIndices(), op.getAxis(), Lowering::type(op.getY())));
  }
};

struct LowerGatherElementsOp : OpRewritePattern<top::GatherElementsOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(top::GatherElementsOp op, PatternRewriter &rewriter) const override {
    Lowering lower(rewriter, op);
    return lower.replace(
        GatherElementsOp::create(rewriter, lower.loc, op.getY().getType(), op.getX(), op.getIndices(), op.getAxis())
            .getY());
  }
};

/// Lowers to a gather of slices if the index tuples are known, or if only one index of a tuple can differ from 0: an
/// index into a dim of one element is clamped to 0.
struct LowerGatherNdOp : OpRewritePattern<top::GatherNdOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(top::GatherNdOp op, PatternRewriter &rewriter) const override {
    Lowering lower(rewriter, op);
    if (Value y = lowerToGather(lower, op)) {
      return lower.replace(y);
    }
    return lower.replace(
        GatherNdOp::create(rewriter, lower.loc, op.getY().getType(), op.getX(), op.getIndices(), op.getBatchDims())
            .getY());
  }

private:
  static Value lowerToGather(Lowering &lower, top::GatherNdOp op) {
    if (!Shape(op.getX()).isKnown() || !Shape(op.getIndices()).isKnown()) {
      return {};
    }
    ArrayRef<int64_t> dims = Lowering::dims(op.getX()), indexDims = Lowering::dims(op.getIndices());
    int64_t batch = op.getBatchDims(), columns = indexDims.back();
    if (columns == 0 || llvm::any_of(dims.take_front(batch), [](int64_t dim) { return dim != 1; })) {
      return {};
    }
    ArrayRef<int64_t> bounds = dims.slice(batch, columns);
    int64_t rows = ShapedType::getNumElements(bounds);
    Value indices = joinIndices(lower, op.getIndices(), bounds);
    if (!indices) {
      return {};
    }
    Dims inner(dims.drop_front(batch + columns)), count{numElements(indices)};
    Dims from{rows}, to = count;
    from.append(inner), to.append(inner);
    auto type = RankedTensorType::get(to, Lowering::element(op.getX()));
    return lower.reshape(gather(lower, lower.reshape(op.getX(), from), indices, 0, type), Lowering::dims(op.getY()));
  }

  /// Combines each index tuple into one index into the merged dims `bounds`; returns null if that would need
  /// computation at run time.
  static Value joinIndices(Lowering &lower, Value indices, ArrayRef<int64_t> bounds) {
    int64_t columns = bounds.size(), count = numElements(indices) / columns;
    if (std::optional<SmallVector<int64_t>> known = top::getConstantInts(indices)) {
      SmallVector<int64_t> joined;
      for (int64_t place = 0; place < count; ++place) {
        int64_t at = 0;
        for (auto [column, bound] : llvm::enumerate(bounds)) {
          int64_t index = (*known)[size_t(place * columns) + column];
          at = at * bound + std::clamp<int64_t>(index < 0 ? index + bound : index, 0, bound - 1);
        }
        joined.push_back(at);
      }
      return top::createIntVector(lower.rewriter, lower.loc, joined);
    }
    auto isLong = [](int64_t bound) { return bound != 1; };
    if (llvm::count_if(bounds, isLong) > 1) {
      return {};
    }
    int64_t column = std::min<int64_t>(llvm::find_if(bounds, isLong) - bounds.begin(), columns - 1);
    Value flat = lower.reshape(indices, {count, columns});
    return lower.reshape(columns == 1 ? flat : lower.slice(flat, {0, column}, {count, 1}, {1, 1}), {count});
  }
};

/// Lowers to y = index == position along the new axis ? on : off.
struct LowerOneHotOp : OpRewritePattern<top::OneHotOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(top::OneHotOp op, PatternRewriter &rewriter) const override {
    Lowering lower(rewriter, op);
    int64_t depth = op.getDepth(), axis = op.getAxis(), rank = Lowering::shape(op.getY()).rank();
    SmallVector<Dim> indexDims = Lowering::shape(op.getIndices()).dims();
    indexDims.insert(indexDims.begin() + axis, Dim(1));
    SmallVector<double> positions;
    for (int64_t i = 0; i < depth; ++i) {
      positions.push_back(i);
    }
    Dims positionDims(rank - axis, 1);
    positionDims[0] = depth;
    Type indexType = Lowering::element(op.getIndices());
    Value position = lower.constant(positions, indexType, positionDims, "one_hot_positions");
    Value off = lower.slice(op.getValues(), {0}, {1}, {1}), on = lower.slice(op.getValues(), {1}, {1}, {1});
    SmallVector<Value> inputs{lower.reshape(op.getIndices(), indexDims), position, off, on};
    return lower.replace(
        lower.map(inputs, Lowering::type(op.getY()),
                  [&](OpBuilder &b, Location loc, ValueRange values) { return emit(b, loc, values, depth); }));
  }

private:
  /// Emits the comparison; negative indices count from the end.
  static Value emit(OpBuilder &b, Location loc, ValueRange values, int64_t depth) {
    Value index = values[0];
    Value size = scalarConstant(b, loc, index.getType(), static_cast<double>(depth));
    Value equal;
    if (isa<FloatType>(index.getType())) {
      Value wrapped = arith::AddFOp::create(b, loc, index, size);
      Value here = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, index, values[1]);
      Value there = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, wrapped, values[1]);
      equal = arith::OrIOp::create(b, loc, here, there);
    } else {
      Value wrapped = arith::AddIOp::create(b, loc, index, size);
      Value here = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, index, values[1]);
      Value there = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, wrapped, values[1]);
      equal = arith::OrIOp::create(b, loc, here, there);
    }
    return arith::SelectOp::create(b, loc, equal, values[3], values[2]);
  }
};

/// Lowers to a select by a constant mask of the triangle.
struct LowerTriluOp : OpRewritePattern<top::TriluOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(top::TriluOp op, PatternRewriter &rewriter) const override {
    Lowering lower(rewriter, op);
    Shape sizes = op.getX();
    ArrayRef<int64_t> dims = sizes.dropFront(sizes.rank() - 2).values();
    std::vector<char> mask;
    for (int64_t row = 0; row < dims[0]; ++row) {
      for (int64_t column = 0; column < dims[1]; ++column) {
        int64_t above = column - row - static_cast<int64_t>(op.getK());
        mask.push_back(op.getUpper() ? above >= 0 : above <= 0);
      }
    }
    auto maskType = RankedTensorType::get(dims, rewriter.getI1Type());
    Value keep = top::createConstant(rewriter, lower.loc, maskType, std::move(mask), "triangle");
    return lower.replace(lower.map({keep, op.getX()}, Lowering::type(op.getY()),
                                   [](OpBuilder &b, Location loc, ValueRange values) -> Value {
                                     Value zero = scalarConstant(b, loc, values[1].getType(), 0);
                                     return arith::SelectOp::create(b, loc, values[0], values[1], zero);
                                   }));
  }
};

struct LowerShapeOp : OpRewritePattern<top::ShapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(top::ShapeOp op, PatternRewriter &rewriter) const override {
    Lowering lower(rewriter, op);
    ArrayRef<int64_t> dims = Lowering::dims(op.getX());
    return lower.replace(
        top::createIntVector(rewriter, lower.loc, dims.slice(op.getStart(), op.getEnd() - op.getStart())));
  }
};

} // namespace

void populateIndexPatterns(RewritePatternSet &patterns) {
  patterns.add<LowerGatherOp, LowerGatherElementsOp, LowerGatherNdOp, LowerOneHotOp, LowerTriluOp, LowerShapeOp>(
      patterns.getContext());
}

} // namespace tessera::device
