//===- RecoverAttention.cpp - Recovers attention from matmuls and a softmax --===//
// SPDX-License-Identifier: Apache-2.0
#include "mlir/Dialect/Traits.h"
#include "top_dialect/IR/ShapeInference.h"
#include "top_dialect/IR/Sizes.h"
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/Transforms/Matchers.h"
#include "top_dialect/Transforms/Passes.h"
#include "top_dialect/Transforms/Rewrite.h"
#include <cmath>
#include <numeric>

namespace tessera::top {
#define GEN_PASS_DEF_RECOVERATTENTIONPASS
#include "top_dialect/Transforms/Passes.h.inc"

namespace {
using namespace mlir;

/// softmax(scale q k^T + masks) v. `keys` is k, or k^T as the second operand of the matmul.
struct Attention {
  Value q, keys, v, mask; ///< mask: the sum of |masks|, once it is created; null for none
  SmallVector<Value> masks;
  bool keysAreTransposed = false;
  double scale = 1;
};

/// Returns `v` without constant factors, which are multiplied into `scale`.
Value stripScale(Value v, double &scale) {
  while (true) {
    if (auto scaled = matchScalar<MulOp>(v, true); scaled && scaled->first.getType() == v.getType()) {
      scale *= scaled->second;
      v = scaled->first;
    } else if (auto divided = matchScalar<DivOp>(v, false); divided && divided->first.getType() == v.getType()) {
      scale /= divided->second;
      v = divided->first;
    } else {
      return v;
    }
  }
}

/// Matches scale * (q k^T). The scores and all values in between must not have other users.
bool matchScores(Value scores, Attention &match) {
  if (!scores.hasOneUse()) {
    return false;
  }
  double scale = 1;
  Value product = stripScale(scores, scale);
  auto matmul = product.getDefiningOp<MatMulOp>();
  if (!matmul || !product.hasOneUse() || matmul.getBias() || matmul.getRelu() || matmul.getTransA() ||
      !isa<FloatType>(typeOf(product).getElementType())) {
    return false;
  }
  match.q = stripScale(matmul.getA(), scale);
  match.keys = stripScale(matmul.getB(), scale);
  match.keysAreTransposed = !matmul.getTransB();
  match.scale = scale;
  return true;
}

/// Checks that an added mask leaves a finite element in every row of the last dim and does not contain +inf or NaN.
/// Only constants, and selections among two constants, are analysed.
bool leavesSomeOfEachRow(Value mask) {
  if (auto where = mask.getDefiningOp<WhereOp>()) {
    std::optional<double> a = getScalar(where.getA()), b = getScalar(where.getB());
    return a && b && std::isfinite(*a) && std::isfinite(*b);
  }
  std::optional<SmallVector<double>> values = getConstantDoubles(mask);
  int64_t rank = typeOf(mask).getRank(), row = rank ? dimsOf(mask).back() : 1;
  if (!values || row == 0) {
    return false;
  }
  for (ArrayRef<double> rest = *values; !rest.empty(); rest = rest.drop_front(row)) {
    ArrayRef<double> elements = rest.take_front(row);
    if (llvm::none_of(elements, [](double v) { return std::isfinite(v); }) ||
        llvm::any_of(elements, [](double v) { return std::isnan(v) || v == HUGE_VAL; })) {
      return false;
    }
  }
  return true;
}

/// The left operand of the second matmul: a softmax, or where(is_nan(softmax), 0, softmax), by which exporters handle
/// fully masked rows.
struct Probabilities {
  SoftmaxOp softmax;
  bool areGuarded = false;
};

Probabilities matchProbabilities(Value v) {
  auto where = v.getDefiningOp<WhereOp>();
  if (!where) {
    auto softmax = v.getDefiningOp<SoftmaxOp>();
    return {softmax && softmax->hasOneUse() ? softmax : SoftmaxOp()};
  }
  auto isNan = Value(where.getCond()).getDefiningOp<IsNanOp>();
  auto softmax = Value(where.getB()).getDefiningOp<SoftmaxOp>();
  bool isGuard = isNan && softmax && isNan.getX() == softmax.getY() && getScalar(where.getA()) == 0.0 &&
                 where->hasOneUse() && isNan->hasOneUse() && Value(softmax.getY()).hasNUses(2) &&
                 sameType(where, softmax);
  return {isGuard ? softmax : SoftmaxOp(), true};
}

/// Matches scale * (q k^T) + masks.
bool matchMasked(Value scores, Attention &match) {
  if (matchScores(scores, match)) {
    return true;
  }
  auto add = scores.getDefiningOp<AddOp>();
  if (!add || !scores.hasOneUse()) {
    return false;
  }
  for (auto [inner, mask] :
       {std::pair<Value, Value>(add.getA(), add.getB()), std::pair<Value, Value>(add.getB(), add.getA())}) {
    if (sameType(inner, add) && matchMasked(inner, match)) {
      match.masks.push_back(mask);
      return true;
    }
  }
  return false;
}

std::optional<Attention> matchAttention(MatMulOp matmul) {
  auto [softmax, areGuarded] = matchProbabilities(matmul.getA());
  if (!softmax || softmax.getLog() || matmul.getBias() || matmul.getRelu() || matmul.getTransA() ||
      matmul.getTransB() || !Value(softmax.getX()).hasOneUse() ||
      static_cast<int64_t>(softmax.getAxis()) != typeOf(softmax.getY()).getRank() - 1) {
    return std::nullopt;
  }
  Attention match;
  match.v = matmul.getB();
  if (!matchMasked(softmax.getX(), match)) {
    return std::nullopt;
  }
  bool needsGuard = match.masks.size() > 1 || !llvm::all_of(match.masks, leavesSomeOfEachRow);
  return areGuarded && needsGuard ? std::nullopt : std::optional(match);
}

/// Returns k such that k^T is its transpose, which is undone by exchanging the last two dims. Returns null if no
/// transpose computes k^T: creating one would cost what the fusion saves.
Value keysOf(const Attention &match, Location loc, double &scale, RewriterBase &rewriter) {
  if (!match.keysAreTransposed) {
    return match.keys;
  }
  auto transpose = match.keys.getDefiningOp<TransposeOp>();
  if (!transpose) {
    return {};
  }
  SmallVector<int64_t> perm(transpose.getPerm()), identity(perm.size());
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  std::iota(identity.begin(), identity.end(), 0);
  Value k = transpose.getX();
  return perm == identity ? stripScale(k, scale) : createTranspose(rewriter, loc, k, perm);
}

/// Checks that the leading dims (all but the last two) of `from` broadcast to those of `to`.
bool leadingDimsBroadcast(Value from, Value to) {
  Shape source = Shape(from).dropBack(2), target = Shape(to).dropBack(2);
  return source.rank() == target.rank() && llvm::all_of(llvm::seq<size_t>(0, source.rank()), [&](size_t d) {
           return source[d].is(1) || sameSize(source[d], target[d]);
         });
}

bool isLegal(const Attention &match, Value k, MatMulOp matmul) {
  RankedTensorType type = typeOf(matmul.getY());
  if (type.getRank() != typeOf(match.q).getRank() || !leadingDimsBroadcast(k, match.q) ||
      !leadingDimsBroadcast(match.v, match.q) || !sameSizes(Shape(type).dropBack(2), Shape(match.q).dropBack(2))) {
    return false;
  }
  return llvm::all_of(match.masks, [&](Value mask) {
    bool isSummed = match.masks.size() == 1 || Shape(mask).isDetermined();
    return isSummed && typeOf(mask).getRank() <= type.getRank();
  });
}

/// Adds up the masks. A later pass folds the addition of constant masks.
Value sumOf(ArrayRef<Value> masks, Location loc, RewriterBase &rewriter) {
  Value sum = masks.empty() ? Value() : masks.front();
  for (Value mask : masks.drop_front(masks.empty() ? 0 : 1)) {
    SmallVector<Dim> dims = Shape(sum).dims();
    [[maybe_unused]] bool broadcast = detail::broadcastInto(dims, Shape(mask).dims());
    assert(broadcast && "each was added to the scores");
    sum = AddOp::create(rewriter, loc, tensorType(dims, typeOf(sum).getElementType()), sum, mask);
  }
  return sum;
}

// --- Grouped queries ---------------------------------------------------------------

/// Heads repeated by an expand:
/// [..., H, 1, T, E] -> [..., H, repeats, T, E] -> [..., H repeats, T, E].
struct RepeatedHeads {
  Value unrepeated; ///< [..., H, 1, T, E]
  int64_t heads, repeats;
};

/// Checks that |v| is known to have |sizes|.
bool hasSizes(Value v, ArrayRef<Dim> sizes) { return sameSizes(v, tensorType(sizes, typeOf(v).getElementType())); }

std::optional<RepeatedHeads> matchRepeatedHeads(Value v) {
  auto reshape = v.getDefiningOp<ReshapeOp>();
  auto expand = reshape ? Value(reshape.getX()).getDefiningOp<ExpandOp>() : ExpandOp();
  if (!expand) {
    return std::nullopt;
  }
  SmallVector<Dim> merged = Shape(v).dims(), repeated = Shape(expand.getY()).dims();
  size_t rank = merged.size();
  if (rank < 3 || repeated.size() != rank + 1 || Shape(expand.getX()).rank() != rank + 1) {
    return std::nullopt;
  }
  size_t head = rank - 3; // [..., head, repeats, T, E] in the longer shapes.
  Dim heads = repeated[head], repeats = repeated[head + 1];
  SmallVector<Dim> single(repeated);
  single[head + 1] = 1;
  repeated[head] = heads * repeats;
  repeated.erase(repeated.begin() + head + 1);
  if (!heads.isKnown() || !repeats.isKnown() || !hasSizes(expand.getX(), single) || !hasSizes(v, repeated)) {
    return std::nullopt;
  }
  return RepeatedHeads{expand.getX(), heads.value(), repeats.value()};
}

/// Splits the head dim (third from the end) of |v| into heads x repeats.
Value splitHeads(Value v, const RepeatedHeads &heads, Location loc, RewriterBase &rewriter) {
  SmallVector<Dim> sizes = Shape(v).dims();
  auto *head = sizes.end() - 3;
  bool isBroadcast = head->is(1);
  *head = isBroadcast ? 1 : heads.heads;
  sizes.insert(head + 1, Dim(isBroadcast ? 1 : heads.repeats));
  return createReshape(rewriter, loc, v, tensorType(sizes, typeOf(v).getElementType()));
}

/// Replaces keys and values by their unrepeated forms if both repeat their heads equally.
bool ungroup(Attention &match, Value &k, Location loc, RewriterBase &rewriter) {
  auto keyHeads = matchRepeatedHeads(k), valueHeads = matchRepeatedHeads(match.v);
  if (!keyHeads || !valueHeads || keyHeads->heads != valueHeads->heads || keyHeads->repeats != valueHeads->repeats) {
    return false;
  }
  auto hasHeads = [&](Value v, bool orOne) {
    Dim heads = Shape(v)[Shape(v).rank() - 3];
    return Shape(v).isDetermined() && (heads.is(keyHeads->heads * keyHeads->repeats) || (orOne && heads.is(1)));
  };
  bool hasHeadsInMask = match.mask && Shape(match.mask).rank() >= 3;
  if (!hasHeads(match.q, false) || (hasHeadsInMask && !hasHeads(match.mask, true))) {
    return false;
  }
  match.mask = hasHeadsInMask ? splitHeads(match.mask, *keyHeads, loc, rewriter) : match.mask;
  match.q = splitHeads(match.q, *keyHeads, loc, rewriter);
  match.v = valueHeads->unrepeated;
  k = keyHeads->unrepeated;
  return true;
}

class RecoverAttentionPass : public impl::RecoverAttentionPassBase<RecoverAttentionPass> {
  bool visit(MatMulOp matmul, RewriterBase &rewriter) {
    std::optional<Attention> match = matchAttention(matmul);
    Location loc = matmul.getLoc();
    double scale = match ? match->scale : 1;
    Value k = match ? keysOf(*match, loc, scale, rewriter) : Value();
    if (!k || !isLegal(*match, k, matmul)) {
      return false; // A transpose created for k is dead, and is erased when the walk reaches it.
    }
    RankedTensorType type = typeOf(matmul.getY());
    match->mask = sumOf(match->masks, loc, rewriter);
    bool isGrouped = ungroup(*match, k, loc, rewriter);
    SmallVector<Dim> dims = Shape(match->q).dropBack().dims();
    dims.push_back(Shape(type).back());
    auto attention = AttentionOp::create(rewriter, loc, tensorType(dims, type.getElementType()), match->q, k, match->v,
                                         match->mask, llvm::APFloat(scale), /*levels=*/IntegerAttr());
    Value result = createReshape(rewriter, loc, attention, type);
    replaceFused(rewriter, matmul, result.getDefiningOp());
    attention->setLoc(result.getLoc());
    ++recovered;
    grouped += isGrouped;
    return true;
  }

  void runOnOperation() override {
    rewriteForward(getOperation(), [&](Operation *op, RewriterBase &rewriter) {
      auto matmul = dyn_cast<MatMulOp>(op);
      return matmul && visit(matmul, rewriter);
    });
  }
};
} // namespace
} // namespace tessera::top
