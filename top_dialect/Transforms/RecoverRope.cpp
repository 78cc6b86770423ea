//===- RecoverRope.cpp - Recovers rotary embeddings from their formulas ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/Sizes.h"
#include "top_dialect/IR/SymbolicLists.h"
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/Transforms/Passes.h"
#include "top_dialect/Transforms/Rewrite.h"
#include "top_dialect/Transforms/Values.h"

namespace tessera::top {
#define GEN_PASS_DEF_RECOVERROPEPASS
#include "top_dialect/Transforms/Passes.h.inc"

namespace {
using namespace mlir;

/// The way in which an operand of the rotation is selected from the last dims of its source.
enum class Part {
  pair,   ///< source [..., H, 2], element 0 or 1 of the last dim
  stride, ///< source [..., 2 H], even or odd elements
  half,   ///< source [..., 2 H], first or second half
};

struct Pick {
  Value source;
  Part part;
  int64_t index; ///< 0 or 1
};

/// Checks that `slice` takes all of every dim except the last.
bool slicesLastDimOnly(SliceOp slice) {
  Shape x = slice.getX(), y = slice.getY();
  for (size_t d = 0; d + 1 < x.rank(); ++d) {
    if (slice.getStarts()[d] != 0 || slice.getSteps()[d] != 1) {
      return false;
    }
  }
  return sameSizes(x.dropBack(), y.dropBack());
}

std::optional<Pick> matchPick(Value v) {
  auto reshape = v.getDefiningOp<ReshapeOp>();
  auto slice = (reshape ? Value(reshape.getX()) : v).getDefiningOp<SliceOp>();
  if (!slice || Shape(slice.getX()).rank() == 0 || !Shape(slice.getX()).back().isKnown() ||
      !Shape(slice.getY()).back().isKnown() || !slicesLastDimOnly(slice) || slice->hasAttr(kStartDimsAttr)) {
    return std::nullopt;
  }
  Shape x = slice.getX();
  int64_t last = x.back().value(), start = slice.getStarts().back(), size = slice.getSizes().back();
  int64_t step = slice.getSteps().back();
  if (reshape) {
    bool fits = last == 2 && size == 1 && sameSizes(v, x.dropBack());
    return fits ? std::optional(Pick{slice.getX(), Part::pair, start}) : std::nullopt;
  }
  if (last % 2 != 0 || size != last / 2) {
    return std::nullopt;
  }
  if (step == 1 && (start == 0 || start == size)) {
    return Pick{slice.getX(), Part::half, start / size};
  }
  if (step == 2 && (start == 0 || start == 1)) {
    return Pick{slice.getX(), Part::stride, start};
  }
  return std::nullopt;
}

/// A multiplication whose one operand is the pick of a given index, and its other operand.
struct PickedProduct {
  Value picked, factor;
  Pick pick;
};

std::optional<PickedProduct> matchPickedProduct(Value v, int64_t index) {
  auto mul = v.getDefiningOp<MulOp>();
  if (!mul) {
    return std::nullopt;
  }
  for (auto [picked, factor] :
       {std::pair<Value, Value>(mul.getA(), mul.getB()), std::pair<Value, Value>(mul.getB(), mul.getA())}) {
    std::optional<Pick> pick = matchPick(picked);
    if (pick && pick->index == index && sameType(picked, mul)) {
      return PickedProduct{picked, factor, *pick};
    }
  }
  return std::nullopt;
}

bool isProduct(Value v, Value a, Value b) {
  auto mul = v.getDefiningOp<MulOp>();
  return mul && ((mul.getA() == a && mul.getB() == b) || (mul.getA() == b && mul.getB() == a));
}

struct Rotation {
  Pick pick; ///< of x1
  Value cos, sin;
};

/// Matches y1 = x1 cos - x2 sin, y2 = x1 sin + x2 cos.
std::optional<Rotation> matchRotation(Value y1, Value y2) {
  auto sub = y1.getDefiningOp<SubOp>();
  auto add = y2.getDefiningOp<AddOp>();
  if (!sub || !add) {
    return std::nullopt;
  }
  auto first = matchPickedProduct(sub.getA(), 0), second = matchPickedProduct(sub.getB(), 1);
  if (!first || !second || first->pick.source != second->pick.source || first->pick.part != second->pick.part ||
      !sameType(sub, first->picked)) {
    return std::nullopt;
  }
  Value cos = first->factor, sin = second->factor;
  bool direct = isProduct(add.getA(), first->picked, sin) && isProduct(add.getB(), second->picked, cos);
  bool swapped = isProduct(add.getB(), first->picked, sin) && isProduct(add.getA(), second->picked, cos);
  return direct || swapped ? std::optional(Rotation{first->pick, cos, sin}) : std::nullopt;
}

/// Returns the value of shape [..., H] if `v` is its reshape to [..., H, 1], or null.
Value unstacked(Value v) {
  auto reshape = v.getDefiningOp<ReshapeOp>();
  bool fits = reshape && Shape(v).back().is(1) && sameSizes(reshape.getX(), Shape(v).dropBack());
  return fits ? Value(reshape.getX()) : Value();
}

/// Checks that `angle` (cos or sin) has the element type of `x`, at most its rank, and `width` elements in its last
/// dim: the op broadcasts leading dims only.
bool fitsAngles(Value angle, Value x, int64_t width) {
  ArrayRef<int64_t> dims = dimsOf(angle);
  return !dims.empty() && !ShapedType::isDynamic(width) && dims.back() == width &&
         static_cast<int64_t>(dims.size()) <= typeOf(x).getRank() &&
         typeOf(angle).getElementType() == typeOf(x).getElementType();
}

/// Matches a rotation whose parts are joined again: halves by concatenation, pairs by stacking.
bool recoverJoined(ConcatOp concat, RewriterBase &rewriter) {
  RankedTensorType type = typeOf(concat.getY());
  if (concat.getInputs().size() != 2 || !Shape(type).isDetermined() ||
      static_cast<int64_t>(concat.getAxis()) != type.getRank() - 1) {
    return false;
  }
  Value y1 = concat.getInputs()[0], y2 = concat.getInputs()[1];
  Value inner1 = unstacked(y1), inner2 = unstacked(y2);
  bool isStack = inner1 && inner2;
  std::optional<Rotation> rotation = isStack ? matchRotation(inner1, inner2) : matchRotation(y1, y2);
  if (!rotation || isStack == (rotation->pick.part == Part::half)) {
    return false;
  }
  Value picked = isStack ? inner1 : y1;
  SmallVector<Dim> dims = Shape(picked).dims();
  int64_t width = dimsOf(picked).back();
  if (!fitsAngles(rotation->cos, picked, width) || !fitsAngles(rotation->sin, picked, width)) {
    return false;
  }
  dims.back() *= 2;
  Location loc = concat.getLoc();
  RankedTensorType whole = tensorType(dims, type.getElementType());
  Value x = createReshape(rewriter, loc, rotation->pick.source, whole);
  auto rope = RopeOp::create(rewriter, loc, whole, x, rotation->cos, rotation->sin, isStack);
  Value joined = createReshape(rewriter, loc, rope, type);
  replaceFused(rewriter, concat, joined.getDefiningOp());
  if (isStack) {
    rope->setLoc(joined.getLoc());
  }
  return true;
}

/// Checks, by the way in which `v` is computed, that the two halves of its last dim are equal.
bool hasEqualHalves(Value v, int depth = 0) {
  constexpr int kMaxDepth = 8;
  Operation *def = v.getDefiningOp();
  if (!def || depth == kMaxDepth || typeOf(v).getRank() == 0) {
    return false;
  }
  int64_t lastDim = typeOf(v).getRank() - 1, size = dimsOf(v).back();
  if (std::optional<TensorData> data = getConstantData(v)) {
    int64_t row = size > 0 ? size * byteSize(data->type) / std::max<int64_t>(data->type.getNumElements(), 1) : 0;
    for (int64_t i = 0; row > 0 && i < static_cast<int64_t>(data->bytes.size()); i += row) {
      if (data->bytes.slice(i, row / 2) != data->bytes.slice(i + row / 2, row / 2)) {
        return false;
      }
    }
    return row > 0 && size % 2 == 0;
  }
  if (auto concat = dyn_cast<ConcatOp>(def)) {
    return static_cast<int64_t>(concat.getAxis()) == lastDim && concat.getInputs().size() == 2 &&
           concat.getInputs()[0] == concat.getInputs()[1];
  }
  if (isa<ScalarInterface>(def)) { // Each operand is a single number, or has equal halves.
    return llvm::all_of(def->getOperands(), [&](Value operand) {
      return getScalar(operand) ||
             (typeOf(operand).getRank() > 0 && dimsOf(operand).back() == size && hasEqualHalves(operand, depth + 1));
    });
  }
  if (auto gather = dyn_cast<GatherOp>(def)) {
    return static_cast<int64_t>(gather.getAxis()) < typeOf(gather.getX()).getRank() - 1 &&
           hasEqualHalves(gather.getX(), depth + 1);
  }
  if (auto slice = dyn_cast<SliceOp>(def)) {
    return slice.getSizes().back() == dimsOf(slice.getX()).back() && slice.getSteps().back() == 1 &&
           hasEqualHalves(slice.getX(), depth + 1);
  }
  if (auto reshape = dyn_cast<ReshapeOp>(def)) {
    ArrayRef<int64_t> dims = dimsOf(reshape.getX());
    return !dims.empty() && dims.back() == size && hasEqualHalves(reshape.getX(), depth + 1);
  }
  return false;
}

/// Returns the first half of the last dim.
Value firstHalf(RewriterBase &rewriter, Location loc, Value v) {
  SmallVector<int64_t> steps(typeOf(v).getRank(), 1);
  SmallVector<Dim> starts(typeOf(v).getRank(), 0), sizes = Shape(v).dims();
  sizes.back() = floorDiv(sizes.back(), 2);
  return createSlice(rewriter, loc, v, starts, sizes, steps);
}

/// Returns x if `v` is concat(-x2, x1) over the halves of x, or null.
Value matchRotatedHalves(Value v) {
  auto concat = v.getDefiningOp<ConcatOp>();
  if (!concat || concat.getInputs().size() != 2 || static_cast<int64_t>(concat.getAxis()) != typeOf(v).getRank() - 1) {
    return {};
  }
  auto neg = concat.getInputs()[0].getDefiningOp<NegOp>();
  std::optional<Pick> second = neg ? matchPick(neg.getX()) : std::nullopt;
  std::optional<Pick> first = matchPick(concat.getInputs()[1]);
  bool fits = first && second && first->source == second->source && first->part == Part::half &&
              second->part == Part::half && first->index == 0 && second->index == 1;
  return fits ? first->source : Value();
}

Value otherOperand(MulOp mul, Value v) {
  return mul.getA() == v ? Value(mul.getB()) : mul.getB() == v ? Value(mul.getA()) : Value();
}

/// Matches x cos + concat(-x2, x1) sin.
bool recoverRotateHalf(AddOp add, RewriterBase &rewriter) {
  for (auto [plain, rotated] :
       {std::pair<Value, Value>(add.getA(), add.getB()), std::pair<Value, Value>(add.getB(), add.getA())}) {
    auto cosMul = plain.getDefiningOp<MulOp>(), sinMul = rotated.getDefiningOp<MulOp>();
    if (!cosMul || !sinMul) {
      continue;
    }
    for (Value operand : {Value(sinMul.getA()), Value(sinMul.getB())}) {
      Value x = matchRotatedHalves(operand);
      Value cos = x ? otherOperand(cosMul, x) : Value(), sin = otherOperand(sinMul, operand);
      if (!cos || !sin || !sameType(x, add) || !fitsAngles(cos, x, dimsOf(x).back()) ||
          !fitsAngles(sin, x, dimsOf(x).back()) || !hasEqualHalves(cos) || !hasEqualHalves(sin)) {
        continue;
      }
      Value cosHalf = firstHalf(rewriter, add.getLoc(), cos);
      Value sinHalf = firstHalf(rewriter, add.getLoc(), sin);
      auto rope = RopeOp::create(rewriter, add.getLoc(), add.getType(), x, cosHalf, sinHalf, false);
      replaceFused(rewriter, add, rope);
      return true;
    }
  }
  return false;
}

class RecoverRopePass : public impl::RecoverRopePassBase<RecoverRopePass> {
  void runOnOperation() override {
    recovered += rewriteForward(getOperation(), [](Operation *op, RewriterBase &rewriter) {
      if (auto concat = dyn_cast<ConcatOp>(op)) {
        return recoverJoined(concat, rewriter);
      }
      auto add = dyn_cast<AddOp>(op);
      return add && recoverRotateHalf(add, rewriter);
    });
  }
};
} // namespace
} // namespace tessera::top
