//===- LowerScatter.cpp - Scatters ----------------------------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// Assignments to slices (boxes decoded in place, rows of a cache) are imported as scatters whose constant indices
// describe a rectangle. Such scatters become copies of the updates and of the elements around them.
//===----------------------------------------------------------------------===//
#include "device_dialect/Conversion/TopToDevice/Lowering.h"
#include "device_dialect/IR/DeviceMoveOps.h"
#include "top_dialect/IR/TopShapeOps.h"

using namespace mlir;

namespace tessera::device {
namespace {

/// Largest distance between consecutive written elements; each element in between costs a copy region.
constexpr int64_t kMostStep = 8;

/// Written indices of one dim of the result: `size` indices from `first` on, `step` apart. They follow dim `from` of
/// the updates, or are constant (size 1) if `from` is -1.
struct Span {
  int64_t first = 0, step = 1, size = 1, from = -1;
};

/// Returns the constant indices, with negative ones counted from the end; nothing if they are unknown or out of range.
std::optional<SmallVector<int64_t>> knownIndices(Value indices, ArrayRef<int64_t> bounds) {
  std::optional<SmallVector<int64_t>> known = top::getConstantInts(indices);
  if (!known || known->empty()) {
    return std::nullopt;
  }
  for (auto [place, index] : llvm::enumerate(*known)) {
    int64_t bound = bounds[place % bounds.size()];
    index += index < 0 ? bound : 0;
    if (index < 0 || index >= bound) {
      return std::nullopt;
    }
  }
  return known;
}

/// Returns the span of the index at `column` of each tuple in `known` (`columns` indices per tuple) over a grid;
/// nothing unless it is an arithmetic progression along at most one dim of the grid.
std::optional<Span> spanOf(ArrayRef<int64_t> known, int64_t column, int64_t columns, ArrayRef<int64_t> grid) {
  Span result{known[size_t(column)]};
  int64_t count = ShapedType::getNumElements(grid), inner = count, along = count;
  for (auto [dim, size] : llvm::enumerate(grid)) {
    inner /= size;
    int64_t step = size > 1 ? known[size_t(inner * columns + column)] - result.first : 0;
    if (step != 0) {
      if (result.from >= 0) {
        return std::nullopt;
      }
      result = {result.first, step, size, int64_t(dim)}, along = inner;
    }
  }
  for (int64_t place = 0; place < count; ++place) {
    int64_t expected = result.first + (result.from < 0 ? 0 : place / along % result.size * result.step);
    if (known[size_t(place * columns + column)] != expected) {
      return std::nullopt;
    }
  }
  return result.step >= 1 && result.step <= kMostStep ? std::optional(result) : std::nullopt;
}

/// Returns the elements of one dim that `span` does not contain, as spans.
SmallVector<Span> complementOf(const Span &span, int64_t dim) {
  int64_t end = span.first + (span.size - 1) * span.step + 1;
  SmallVector<Span> result{{0, 1, span.first}, {end, 1, dim - end}};
  for (int64_t rest = 1; rest < span.step; ++rest) {
    result.push_back({span.first + rest, span.step, span.size - 1});
  }
  llvm::erase_if(result, [](const Span &each) { return each.size == 0; });
  return result;
}

/// Returns `x` with the rectangle described by `spans`, one per dim, overwritten by `updates`.
Value writeRectangle(Lowering &lower, Value x, Value updates, ArrayRef<Span> spans) {
  ArrayRef<int64_t> dims = Lowering::dims(x);
  std::vector<SymbolicPiece> pieces;
  auto rest = SymbolicPiece::identity(0, Shape(dims).dims()), written = SymbolicPiece::identity(1, Shape(dims).dims());
  written.srcOffsets.assign(Lowering::dims(updates).size(), 0);
  for (auto [d, span] : llvm::enumerate(spans)) {
    for (const Span &each : complementOf(span, dims[d])) {
      SymbolicPiece piece = rest;
      piece.sizes[d] = each.size;
      piece.dstOffsets[d] = piece.srcOffsets[d] = each.first;
      piece.dstSteps[d] = piece.srcSteps[d] = each.step;
      pieces.push_back(piece);
    }
    for (SymbolicPiece *piece : {&rest, &written}) { // later dims only vary inside this dim's span
      piece->sizes[d] = span.size, piece->dstOffsets[d] = span.first, piece->dstSteps[d] = span.step;
    }
    rest.srcOffsets[d] = span.first, rest.srcSteps[d] = span.step;
    written.srcDims[d] = span.from;
  }
  pieces.push_back(written);
  return lower.copy({x, updates}, pieces, dims);
}

struct LowerScatterElementsOp : OpRewritePattern<top::ScatterElementsOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(top::ScatterElementsOp op, PatternRewriter &rewriter) const override {
    Lowering lower(rewriter, op);
    if (Value y = writeSlice(lower, op)) {
      return lower.replace(y);
    }
    return lower.replace(ScatterOp::create(rewriter, lower.loc, op.getY().getType(), op.getX(), op.getIndices(),
                                           op.getUpdates(), /*nd=*/false, op.getAxis(),
                                           top::stringifyScatterReduction(op.getReduction()))
                             .getY());
  }

private:
  static Value writeSlice(Lowering &lower, top::ScatterElementsOp op) {
    if (!Shape(op.getX()).isKnown() || !Shape(op.getIndices()).isKnown()) {
      return {};
    }
    ArrayRef<int64_t> dims = Lowering::dims(op.getX()), grid = Lowering::dims(op.getIndices());
    int64_t axis = op.getAxis();
    if (op.getReduction() != top::ScatterReduction::none || Lowering::dims(op.getUpdates()) != grid) {
      return {};
    }
    std::optional<SmallVector<int64_t>> known = knownIndices(op.getIndices(), dims[axis]);
    std::optional<Span> along = known ? spanOf(*known, 0, 1, grid) : std::nullopt;
    if (!along || (grid[axis] > 1 && along->from != axis)) {
      return {};
    }
    SmallVector<Span> spans;
    for (auto [d, size] : llvm::enumerate(grid)) {
      spans.push_back(int64_t(d) == axis ? Span{along->first, along->step, size, axis} : Span{0, 1, size, int64_t(d)});
    }
    bool writesTwice = along->from >= 0 && along->from != axis; // varies along another dim: not a rectangle
    return writesTwice ? Value() : writeRectangle(lower, op.getX(), op.getUpdates(), spans);
  }
};

struct LowerScatterNdOp : OpRewritePattern<top::ScatterNdOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(top::ScatterNdOp op, PatternRewriter &rewriter) const override {
    Lowering lower(rewriter, op);
    if (Value y = writeBox(lower, op)) {
      return lower.replace(y);
    }
    return lower.replace(ScatterOp::create(rewriter, lower.loc, op.getY().getType(), op.getX(), op.getIndices(),
                                           op.getUpdates(), /*nd=*/true, /*axis=*/0,
                                           top::stringifyScatterReduction(op.getReduction()))
                             .getY());
  }

private:
  static Value writeBox(Lowering &lower, top::ScatterNdOp op) {
    if (!Shape(op.getX()).isKnown() || !Shape(op.getIndices()).isKnown()) {
      return {};
    }
    ArrayRef<int64_t> dims = Lowering::dims(op.getX()), indexDims = Lowering::dims(op.getIndices());
    ArrayRef<int64_t> grid = indexDims.drop_back();
    int64_t columns = indexDims.back();
    if (op.getReduction() != top::ScatterReduction::none || columns == 0) {
      return {};
    }
    std::optional<SmallVector<int64_t>> known = knownIndices(op.getIndices(), dims.take_front(columns));
    if (!known) {
      return {};
    }
    SmallVector<Span> spans;
    SmallVector<int64_t> left(llvm::to_vector(llvm::seq<int64_t>(0, grid.size()))); // grid dims that no index follows
    for (int64_t column = 0; column < columns; ++column) {
      std::optional<Span> span = spanOf(*known, column, columns, grid);
      if (!span || (span->from >= 0 && !llvm::is_contained(left, span->from))) {
        return {};
      }
      llvm::erase(left, span->from);
      spans.push_back(*span);
    }
    if (llvm::any_of(left, [&](int64_t dim) { return grid[dim] > 1; })) {
      return {}; // several updates hit the same element
    }
    for (size_t d = size_t(columns); d < dims.size(); ++d) {
      spans.push_back({0, 1, dims[d], int64_t(grid.size() + d) - columns});
    }
    return writeRectangle(lower, op.getX(), op.getUpdates(), spans);
  }
};

} // namespace

void populateScatterPatterns(RewritePatternSet &patterns) {
  patterns.add<LowerScatterElementsOp, LowerScatterNdOp>(patterns.getContext());
}

} // namespace tessera::device
