//===- RecoverAttention.cpp - Attention from products and a softmax --------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/Transforms/Matchers.h"
#include "top_dialect/Transforms/Passes.h"
#include "top_dialect/Transforms/Rewrite.h"
#include <numeric>

namespace tessera::top {
#define GEN_PASS_DEF_RECOVERATTENTIONPASS
#include "top_dialect/Transforms/Passes.h.inc"

namespace {
using namespace mlir;

/// softmax(scale q k^T + mask) v. `keys` is k, or k^T as the product's second operand has it.
struct Attention {
  Value q, keys, v, mask;
  bool keysAreTransposed = false;
  double scale = 1;
};

/// `v` without the constant factors around it, which go into `scale`.
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

/// Matches scale * (q k^T); `scores` and what is between have no other user.
bool matchScores(Value scores, Attention &match) {
  if (!scores.hasOneUse()) {
    return false;
  }
  double scale = 1;
  Value product = stripScale(scores, scale);
  auto matmul = product.getDefiningOp<MatMulOp>();
  if (!matmul || !product.hasOneUse() || matmul.getBias() || matmul.getRelu() || matmul.getTransA() ||
      !isa<FloatType>(tensorType(product).getElementType())) {
    return false;
  }
  match.q = stripScale(matmul.getA(), scale);
  match.keys = stripScale(matmul.getB(), scale);
  match.keysAreTransposed = !matmul.getTransB();
  match.scale = scale;
  return true;
}

std::optional<Attention> matchAttention(MatMulOp matmul) {
  auto softmax = Value(matmul.getA()).getDefiningOp<SoftmaxOp>();
  if (!softmax || !softmax->hasOneUse() || softmax.getLog() || matmul.getBias() || matmul.getRelu() ||
      matmul.getTransA() || matmul.getTransB() || !Value(softmax.getX()).hasOneUse() ||
      static_cast<int64_t>(softmax.getAxis()) != tensorType(softmax.getY()).getRank() - 1) {
    return std::nullopt;
  }
  Attention match;
  match.v = matmul.getB();
  if (matchScores(softmax.getX(), match)) {
    return match;
  }
  auto add = Value(softmax.getX()).getDefiningOp<AddOp>();
  if (!add) {
    return std::nullopt;
  }
  for (auto [scores, mask] :
       {std::pair<Value, Value>(add.getA(), add.getB()), std::pair<Value, Value>(add.getB(), add.getA())}) {
    if (scores.getType() == add.getType() && matchScores(scores, match)) {
      match.mask = mask;
      return match;
    }
  }
  return std::nullopt;
}

/// k of k^T = transpose of something, undoing the exchange of the last two dims. Null if k^T does
/// not come from a transpose: making one would cost what the fusion saves.
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

/// The leading dims (all but the last two) of `from` broadcast to those of `to`.
bool leadingDimsBroadcast(Value from, Value to) {
  ArrayRef<int64_t> source = dimsOf(from).drop_back(2), target = dimsOf(to).drop_back(2);
  return source.size() == target.size() && llvm::all_of(llvm::zip_equal(source, target), [](auto pair) {
           auto [dim, wanted] = pair;
           return dim == 1 || dim == wanted;
         });
}

bool isLegal(const Attention &match, Value k, MatMulOp matmul) {
  RankedTensorType type = tensorType(matmul.getY());
  if (type.getRank() != tensorType(match.q).getRank() || !leadingDimsBroadcast(k, match.q) ||
      !leadingDimsBroadcast(match.v, match.q) || type.getShape().drop_back(2) != dimsOf(match.q).drop_back(2)) {
    return false;
  }
  return !match.mask || tensorType(match.mask).getRank() <= type.getRank();
}

// --- Grouped queries ---------------------------------------------------------------

/// Heads repeated by an expand: [..., H, 1, T, E] -> [..., H, repeats, T, E] -> [..., H repeats, T,
/// E].
struct RepeatedHeads {
  Value unrepeated; ///< [..., H, 1, T, E]
  int64_t heads, repeats;
};

std::optional<RepeatedHeads> matchRepeatedHeads(Value v) {
  auto reshape = v.getDefiningOp<ReshapeOp>();
  auto expand = reshape ? Value(reshape.getX()).getDefiningOp<ExpandOp>() : ExpandOp();
  if (!expand || !tensorType(v).hasStaticShape() || !tensorType(expand.getY()).hasStaticShape()) {
    return std::nullopt;
  }
  ArrayRef<int64_t> merged = dimsOf(v), repeated = dimsOf(expand.getY()), single = dimsOf(expand.getX());
  size_t rank = merged.size();
  if (rank < 3 || repeated.size() != rank + 1 || single.size() != rank + 1) {
    return std::nullopt;
  }
  size_t head = rank - 3; // [..., head, repeats, T, E] in the longer shapes.
  SmallVector<int64_t> expectedSingle(repeated), expectedMerged(repeated);
  expectedSingle[head + 1] = 1;
  expectedMerged[head] *= repeated[head + 1];
  expectedMerged.erase(expectedMerged.begin() + head + 1);
  if (single != ArrayRef(expectedSingle) || merged != ArrayRef(expectedMerged)) {
    return std::nullopt;
  }
  return RepeatedHeads{expand.getX(), repeated[head], repeated[head + 1]};
}

/// dims with the head dim (third from the end) split into heads x repeats.
SmallVector<int64_t> splitHeads(ArrayRef<int64_t> dims, const RepeatedHeads &heads) {
  SmallVector<int64_t> result(dims);
  auto head = result.end() - 3;
  bool isBroadcast = *head == 1;
  *head = isBroadcast ? 1 : heads.heads;
  result.insert(head + 1, isBroadcast ? 1 : heads.repeats);
  return result;
}

/// Reads keys and values unrepeated if both repeat their heads alike.
bool ungroup(Attention &match, Value &k, Location loc, RewriterBase &rewriter) {
  auto keyHeads = matchRepeatedHeads(k), valueHeads = matchRepeatedHeads(match.v);
  if (!keyHeads || !valueHeads || keyHeads->heads != valueHeads->heads || keyHeads->repeats != valueHeads->repeats ||
      !tensorType(match.q).hasStaticShape() ||
      dimsOf(match.q)[tensorType(match.q).getRank() - 3] != keyHeads->heads * keyHeads->repeats) {
    return false;
  }
  if (match.mask && tensorType(match.mask).getRank() >= 3) {
    if (!tensorType(match.mask).hasStaticShape()) {
      return false;
    }
    match.mask = createReshape(rewriter, loc, match.mask, splitHeads(dimsOf(match.mask), *keyHeads));
  }
  match.q = createReshape(rewriter, loc, match.q, splitHeads(dimsOf(match.q), *keyHeads));
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
      return false; // A transpose made for k is dead and erased when the walk comes to it.
    }
    RankedTensorType type = tensorType(matmul.getY());
    bool isGrouped = ungroup(*match, k, loc, rewriter);
    SmallVector<int64_t> dims(dimsOf(match->q).drop_back());
    dims.push_back(type.getShape().back());
    auto attention =
        AttentionOp::create(rewriter, loc, type.clone(dims), match->q, k, match->v, match->mask, llvm::APFloat(scale));
    Value result = createReshape(rewriter, loc, attention, type.getShape());
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
