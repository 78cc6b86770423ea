//===- LowerMove.cpp - Lowering copies and reshapes -----------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/Conversion/TopToDevice/Lowering.h"
#include "top_dialect/IR/TopShapeOps.h"

using namespace mlir;

namespace tessera::device {
namespace {

using Ints = SmallVector<int64_t>;
using Dims = SmallVector<Dim>;

struct LowerReshapeOp : OpRewritePattern<top::ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(top::ReshapeOp op, PatternRewriter &rewriter) const override {
    Lowering lower(rewriter, op);
    return lower.replace(lower.reshape(op.getX(), Lowering::shape(op.getY())));
  }
};

struct LowerTransposeOp : OpRewritePattern<top::TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(top::TransposeOp op, PatternRewriter &rewriter) const override {
    Lowering lower(rewriter, op);
    return lower.replace(lower.transpose(op.getX(), op.getPerm()));
  }
};

struct LowerConcatOp : OpRewritePattern<top::ConcatOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(top::ConcatOp op, PatternRewriter &rewriter) const override {
    Lowering lower(rewriter, op);
    return lower.replace(lower.concat(op.getInputs(), op.getAxis()));
  }
};

/// Returns the starts of a slice, which may be symbolic.
SizeList startsOf(top::SliceOp op) {
  auto symbolic = op->getAttrOfType<top::DimsAttr>("top.start_dims");
  return symbolic ? SizeList(llvm::map_to_vector(symbolic.getSizes(), [](top::SizeAttr size) { return Dim(size); }))
                  : SizeList(op.getStarts());
}

struct LowerSliceOp : OpRewritePattern<top::SliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(top::SliceOp op, PatternRewriter &rewriter) const override {
    Lowering lower(rewriter, op);
    return lower.replace(lower.slice(op.getX(), startsOf(op), Lowering::shape(op.getY()), op.getSteps()));
  }
};

struct LowerExpandOp : OpRewritePattern<top::ExpandOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(top::ExpandOp op, PatternRewriter &rewriter) const override {
    Lowering lower(rewriter, op);
    return lower.replace(lower.expand(op.getX(), Lowering::shape(op.getY())));
  }
};

/// Lowers to [d0, d1] -> [r0, d0, r1, d1] with the r broadcast -> [r0 d0, r1 d1].
struct LowerTileOp : OpRewritePattern<top::TileOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(top::TileOp op, PatternRewriter &rewriter) const override {
    Lowering lower(rewriter, op);
    Dims ones, repeated;
    for (auto [dim, repeat] : llvm::zip(Lowering::shape(op.getX()).dims(), op.getRepeats())) {
      ones.append({Dim(1), dim});
      repeated.append({Dim(repeat), dim});
    }
    Value tiled = lower.expand(lower.reshape(op.getX(), ones), repeated);
    return lower.replace(lower.reshape(tiled, Lowering::shape(op.getY())));
  }
};

struct LowerDepthToSpaceOp : OpRewritePattern<top::DepthToSpaceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(top::DepthToSpaceOp op, PatternRewriter &rewriter) const override {
    Lowering lower(rewriter, op);
    Shape x = op.getX();
    Dim b = int64_t(op.getBlockSize()), channels = floorDiv(x[1], b * b);
    Dims split = op.getCrd() ? Dims{x[0], channels, b, b, x[2], x[3]} : Dims{x[0], b, b, channels, x[2], x[3]};
    Ints perm = op.getCrd() ? Ints{0, 1, 4, 2, 5, 3} : Ints{0, 3, 4, 1, 5, 2};
    Value moved = lower.transpose(lower.reshape(op.getX(), split), perm);
    return lower.replace(lower.reshape(moved, Lowering::shape(op.getY())));
  }
};

struct LowerSpaceToDepthOp : OpRewritePattern<top::SpaceToDepthOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(top::SpaceToDepthOp op, PatternRewriter &rewriter) const override {
    Lowering lower(rewriter, op);
    Shape x = op.getX();
    Dim b = int64_t(op.getBlockSize());
    Value split = lower.reshape(op.getX(), {x[0], x[1], floorDiv(x[2], b), b, floorDiv(x[3], b), b});
    Value moved = lower.transpose(split, {0, 3, 5, 1, 2, 4});
    return lower.replace(lower.reshape(moved, Lowering::shape(op.getY())));
  }
};

//===----------------------------------------------------------------------===//
// Pad
//===----------------------------------------------------------------------===//

/// Consecutive positions of a padded dim whose sources form an arithmetic progression.
struct Run {
  Dim first, size, source;
  int64_t step;
};

/// Returns the source of position `i` of a dim, counted from the first element of x; -1 for the fill value.
int64_t sourceOf(int64_t i, int64_t size, top::PadMode mode) {
  if (i >= 0 && i < size) {
    return i;
  }
  switch (mode) {
  case top::PadMode::constant:
    return -1;
  case top::PadMode::edge:
    return i < 0 ? 0 : size - 1;
  case top::PadMode::wrap:
    return ((i % size) + size) % size;
  case top::PadMode::reflect: {
    int64_t period = std::max<int64_t>(2 * (size - 1), 1);
    int64_t folded = ((i % period) + period) % period;
    return folded < size ? folded : period - folded;
  }
  }
  return -1;
}

/// Returns the runs of a dim of |dim| positions, with |begin| before and |end| behind. If |dim| is not a number, the
/// mode is constant, or nothing is padded.
SmallVector<Run> runsOf(Dim dim, int64_t begin, int64_t end, top::PadMode mode) {
  if (!dim.isKnown()) { // negative pads crop
    Dim cropped = dim + std::min<int64_t>(begin, 0) + std::min<int64_t>(end, 0);
    return {{std::max<int64_t>(begin, 0), cropped, std::max<int64_t>(-begin, 0), 1}};
  }
  const int64_t size = dim.value();
  struct Open {
    int64_t first, size, source, step;
  };
  SmallVector<Open> runs;
  bool open = false;
  for (int64_t o = 0; o < size + begin + end; ++o) {
    int64_t source = sourceOf(o - begin, size, mode);
    if (source < 0) {
      open = false;
      continue;
    }
    if (open && runs.back().size == 1) {
      int64_t step = source - runs.back().source;
      if (step >= -1 && step <= 1) {
        runs.back().step = step;
        ++runs.back().size;
        continue;
      }
    } else if (open && source == runs.back().source + runs.back().size * runs.back().step) {
      ++runs.back().size;
      continue;
    }
    runs.push_back({o, 1, source, 1});
    open = true;
  }
  return llvm::map_to_vector(runs, [](const Open &run) { return Run{run.first, run.size, run.source, run.step}; });
}

/// Lowers a padding to one copy region for each combination of the runs of its dims.
struct LowerPadOp : OpRewritePattern<top::PadOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(top::PadOp op, PatternRewriter &rewriter) const override {
    Lowering lower(rewriter, op);
    Shape x = op.getX(), y = op.getY();
    size_t rank = x.rank();
    auto empty = SymbolicPiece::identity(0, y.dims());
    std::vector<SymbolicPiece> pieces{empty};
    for (size_t d = 0; d < rank; ++d) {
      std::vector<SymbolicPiece> grown;
      for (const SymbolicPiece &piece : pieces) {
        for (const Run &run : runsOf(x[d], op.getPads()[d], op.getPads()[d + rank], op.getMode())) {
          grown.push_back(piece);
          SymbolicPiece &next = grown.back();
          next.sizes[d] = run.size;
          next.dstOffsets[d] = run.first;
          next.srcOffsets[d] = run.source;
          next.srcSteps[d] = run.step;
          next.srcDims[d] = run.step == 0 ? -1 : static_cast<int64_t>(d);
        }
      }
      pieces = grown;
    }
    bool constant = op.getMode() == top::PadMode::constant;
    bool whole = pieces.size() == 1 && sameSizes(tensorType(pieces.front().sizes, Lowering::element(op.getX())), y);
    std::optional<double> fill;
    if (constant && !whole) {
      fill = op.getValue().convertToDouble();
    }
    return lower.replace(lower.copy(op.getX(), pieces, y, fill));
  }
};

} // namespace

void populateMovePatterns(RewritePatternSet &patterns) {
  patterns.add<LowerReshapeOp, LowerTransposeOp, LowerConcatOp, LowerSliceOp, LowerExpandOp, LowerTileOp,
               LowerDepthToSpaceOp, LowerSpaceToDepthOp, LowerPadOp>(patterns.getContext());
}

} // namespace tessera::device
