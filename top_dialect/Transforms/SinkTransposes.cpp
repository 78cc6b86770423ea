//===- SinkTransposes.cpp - Cancels transposes and reshapes ---------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/SymbolicLists.h"
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/Transforms/Passes.h"
#include "top_dialect/Transforms/Rewrite.h"
#include "top_dialect/Transforms/Values.h"

namespace tessera::top {
#define GEN_PASS_DEF_SINKTRANSPOSESPASS
#include "top_dialect/Transforms/Passes.h.inc"

namespace {
using namespace mlir;
using Perm = SmallVector<int64_t>;

bool isIdentity(ArrayRef<int64_t> perm) {
  return llvm::all_of(llvm::enumerate(perm), [](auto it) { return static_cast<int64_t>(it.index()) == it.value(); });
}

Perm inverse(ArrayRef<int64_t> perm) {
  Perm result(perm.size());
  for (auto [i, d] : llvm::enumerate(perm)) {
    result[d] = i;
  }
  return result;
}

/// Checks that dims other than 1 keep their order, so that the bytes do not move.
bool isReshape(RankedTensorType type, ArrayRef<int64_t> perm) {
  if (llvm::count_if(Shape(type).dims(), [](Dim dim) { return dim.isUnknown(); }) > 1) {
    return false;
  }
  int64_t last = -1;
  for (int64_t d : perm) {
    if (type.getDimSize(d) == 1) {
      continue;
    }
    if (d < last) {
      return false;
    }
    last = d;
  }
  return true;
}

/// Returns values for the dims of the transpose's operand, given values for the dims of its result.
SmallVector<int64_t> unpermuted(ArrayRef<int64_t> values, ArrayRef<int64_t> perm) {
  SmallVector<int64_t> result(values.size());
  for (auto [i, d] : llvm::enumerate(perm)) {
    result[d] = values[i];
  }
  return result;
}

/// The op that replaces `op` above the transpose, and the transpose's new perm.
struct Sunk {
  Operation *op = nullptr;
  Perm perm;
};

/// Clones `op` with other operands; `edit` adapts the attributes to their dims. Returns null if type inference fails.
template <typename Op, typename Edit>
Operation *cloneOver(RewriterBase &rewriter, Op op, ValueRange operands, Edit &&edit) {
  auto copy = cast<Op>(rewriter.clone(*op.getOperation()));
  copy->setOperands(operands);
  copy->removeAttr(TopDialect::kOutputsAttr); // the transpose below computes the named tensor
  edit(copy);
  SmallVector<RankedTensorType> types;
  if (failed(cast<ShapeInterface>(copy.getOperation()).inferShapes(types))) {
    rewriter.eraseOp(copy);
    return nullptr;
  }
  copy->getResult(0).setType(types.front());
  return copy;
}

/// Checks that `op` is the only user of `v`, so that the producer of `v` dies if `op` reads something else.
bool isOnlyUsedBy(Value v, Operation *op) {
  return llvm::all_of(v.getUsers(), [&](Operation *user) { return user == op; });
}

/// The operands of an op above transposes with one perm: transposes are removed, constants are permuted, single
/// elements stay. There is no result if another operand prevents this, or if no transpose would disappear.
struct Untransposed {
  SmallVector<Value> operands;
  Perm perm;
};

std::optional<Untransposed> untranspose(Operation *op, RewriterBase &rewriter) {
  int64_t rank = typeOf(op->getResult(0)).getRank();
  Untransposed result;
  bool oneDies = false;
  for (Value operand : op->getOperands()) {
    auto transpose = operand.getDefiningOp<TransposeOp>();
    if (!transpose) {
      continue;
    }
    if (result.perm.empty()) {
      result.perm = Perm(transpose.getPerm());
    }
    if (transpose.getPerm() != ArrayRef(result.perm)) {
      return std::nullopt;
    }
    oneDies |= isOnlyUsedBy(operand, op);
  }
  if (!oneDies || static_cast<int64_t>(result.perm.size()) != rank) {
    return std::nullopt;
  }
  bool movable = llvm::all_of(op->getOperands(), [&](Value operand) {
    RankedTensorType type = typeOf(operand);
    bool isSingle = type.hasStaticShape() && type.getNumElements() == 1;
    return operand.getDefiningOp<TransposeOp>() || isReadable(operand) || isSingle;
  });
  if (!movable) {
    return std::nullopt;
  }
  for (Value operand : op->getOperands()) {
    if (auto transpose = operand.getDefiningOp<TransposeOp>()) {
      result.operands.push_back(transpose.getX());
    } else if (typeOf(operand).getNumElements() == 1 && !isa<ConcatOp>(op)) {
      result.operands.push_back(operand);
    } else {
      SmallVector<int64_t> dims(rank - typeOf(operand).getRank(), 1);
      llvm::append_range(dims, dimsOf(operand));
      Value full = createReshape(rewriter, operand.getLoc(), operand, dims);
      if (!isReadable(full)) {
        return std::nullopt;
      }
      result.operands.push_back(createPermuted(rewriter, full, inverse(result.perm)));
    }
  }
  return result;
}

Sunk sinkElementwise(Operation *op, RewriterBase &rewriter) {
  std::optional<Untransposed> above = untranspose(op, rewriter);
  if (!above) {
    return {};
  }
  auto scalar = cast<ScalarInterface>(op);
  return {cloneOver(rewriter, scalar, above->operands, [](auto) {}), above->perm};
}

Sunk sinkConcat(ConcatOp op, RewriterBase &rewriter) {
  std::optional<Untransposed> above = untranspose(op, rewriter);
  if (!above) {
    return {};
  }
  return {cloneOver(rewriter, op, above->operands, [&](ConcatOp copy) { copy.setAxis(above->perm[copy.getAxis()]); }),
          above->perm};
}

/// Returns the transpose above a slice if its other users are slices too, or if the transpose below would be a reshape.
TransposeOp transposeAboveSlice(SliceOp op) {
  auto transpose = Value(op.getX()).getDefiningOp<TransposeOp>();
  if (!transpose) {
    return {};
  }
  bool onlySlices = llvm::all_of(transpose->getUsers(), [](Operation *user) { return isa<SliceOp>(user); });
  Perm back = inverse(transpose.getPerm());
  auto above =
      RankedTensorType::get(unpermuted(dimsOf(op.getY()), transpose.getPerm()), typeOf(op.getY()).getElementType());
  return onlySlices || isReshape(above, transpose.getPerm()) ? transpose : TransposeOp();
}

Sunk sinkSlice(SliceOp op, RewriterBase &rewriter) {
  TransposeOp transpose = transposeAboveSlice(op);
  if (!transpose || op->hasAttr(kDimsAttr) || op->hasAttr(kStartDimsAttr)) {
    return {};
  }
  Perm perm(transpose.getPerm());
  return {cloneOver(rewriter, op, transpose.getX(),
                    [&](SliceOp copy) {
                      copy.setStarts(unpermuted(op.getStarts(), perm));
                      copy.setSizes(unpermuted(op.getSizes(), perm));
                      copy.setSteps(unpermuted(op.getSteps(), perm));
                    }),
          perm};
}

/// Returns the transpose that computes the first operand of `op`, if it does not have other users.
TransposeOp soleTranspose(Operation *op) {
  auto transpose = op->getOperand(0).getDefiningOp<TransposeOp>();
  return transpose && isOnlyUsedBy(transpose, op) ? transpose : TransposeOp();
}

Sunk sinkPad(PadOp op, RewriterBase &rewriter) {
  TransposeOp transpose = soleTranspose(op);
  if (!transpose) {
    return {};
  }
  Perm perm(transpose.getPerm());
  SmallVector<int64_t> pads = unpermuted(op.getPads().take_front(perm.size()), perm);
  llvm::append_range(pads, unpermuted(op.getPads().drop_front(perm.size()), perm));
  return {cloneOver(rewriter, op, transpose.getX(), [&](PadOp copy) { copy.setPads(pads); }), perm};
}

/// Moves over a softmax only if another transpose follows it: softmax is fastest along the last axis.
Sunk sinkSoftmax(SoftmaxOp op, RewriterBase &rewriter) {
  TransposeOp transpose = soleTranspose(op);
  if (!transpose || !op->hasOneUse() || !isa<TransposeOp>(*op->user_begin())) {
    return {};
  }
  Perm perm(transpose.getPerm());
  return {cloneOver(rewriter, op, transpose.getX(), [&](SoftmaxOp copy) { copy.setAxis(perm[copy.getAxis()]); }), perm};
}

/// Returns the perm that remains when the dims `axes` of the transpose's result are removed.
Perm permWithout(ArrayRef<int64_t> perm, ArrayRef<int64_t> axes) {
  Perm kept;
  for (auto [i, d] : llvm::enumerate(perm)) {
    if (!llvm::is_contained(axes, static_cast<int64_t>(i))) {
      kept.push_back(d);
    }
  }
  Perm sorted(kept);
  llvm::sort(sorted);
  for (int64_t &d : kept) {
    d = llvm::lower_bound(sorted, d) - sorted.begin();
  }
  return kept;
}

Sunk sinkReduce(ReduceOp op, RewriterBase &rewriter) {
  TransposeOp transpose = soleTranspose(op);
  if (!transpose) {
    return {};
  }
  Perm perm(transpose.getPerm());
  SmallVector<int64_t> axes;
  for (int64_t axis : op.getAxes()) {
    axes.push_back(perm[axis]);
  }
  llvm::sort(axes);
  Perm left = op.getKeepDims() ? perm : permWithout(perm, op.getAxes());
  return {cloneOver(rewriter, op, transpose.getX(), [&](ReduceOp copy) { copy.setAxes(axes); }), left};
}

Sunk sink(Operation *op, RewriterBase &rewriter) {
  if (isa<ScalarInterface>(op)) {
    return sinkElementwise(op, rewriter);
  }
  if (auto concat = dyn_cast<ConcatOp>(op)) {
    return sinkConcat(concat, rewriter);
  }
  if (auto slice = dyn_cast<SliceOp>(op)) {
    return sinkSlice(slice, rewriter);
  }
  if (auto pad = dyn_cast<PadOp>(op)) {
    return sinkPad(pad, rewriter);
  }
  if (auto softmax = dyn_cast<SoftmaxOp>(op)) {
    return sinkSoftmax(softmax, rewriter);
  }
  auto reduce = dyn_cast<ReduceOp>(op);
  return reduce ? sinkReduce(reduce, rewriter) : Sunk();
}

/// Replaces transpose(x) by x, a constant or a reshape, or merges it with a transpose above.
bool mergeTranspose(TransposeOp op, RewriterBase &rewriter) {
  Value x = op.getX();
  Perm perm(op.getPerm());
  if (auto above = x.getDefiningOp<TransposeOp>()) {
    for (int64_t &d : perm) {
      d = above.getPerm()[d];
    }
    x = above.getX();
  }
  if (isIdentity(perm)) {
    replaceAndErase(rewriter, op, x);
    return true;
  }
  if (isReadable(x)) {
    replaceAndErase(rewriter, op, createPermuted(rewriter, x, perm));
    return true;
  }
  Value merged;
  if (isReshape(typeOf(x), perm)) {
    merged = createReshape(rewriter, op.getLoc(), x, op.getY());
  } else if (x != op.getX()) {
    merged = createTranspose(rewriter, op.getLoc(), x, perm);
  }
  if (!merged) {
    return false;
  }
  if (merged == x) {
    replaceAndErase(rewriter, op, x);
  } else {
    replaceFused(rewriter, op, merged.getDefiningOp());
  }
  return true;
}

bool mergeReshape(ReshapeOp op, RewriterBase &rewriter) {
  bool isComputed = llvm::count_if(Shape(op.getY()).dims(), [](Dim dim) { return dim.isUnknown(); }) > 1;
  if (op.getDynShape() || isComputed) {
    return false;
  }
  auto above = Value(op.getX()).getDefiningOp<ReshapeOp>();
  Value x = above && !above.getDynShape() ? Value(above.getX()) : Value(op.getX());
  if (sameType(x, op)) {
    replaceAndErase(rewriter, op, x);
    return true;
  }
  if (x == op.getX()) {
    return false;
  }
  Value merged = createReshape(rewriter, op.getLoc(), x, op.getY());
  if (isReadable(merged)) {
    replaceAndErase(rewriter, op, merged);
  } else {
    replaceFused(rewriter, op, merged.getDefiningOp());
  }
  return true;
}

/// Turns a transpose of the last two dims of operand `index` into a flag of the matmul.
bool absorbOperand(MatMulOp op, unsigned index) {
  auto transpose = op->getOperand(index).getDefiningOp<TransposeOp>();
  if (!transpose) {
    return false;
  }
  Perm perm(transpose.getPerm());
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  if (!isIdentity(perm)) {
    return false;
  }
  op->setOperand(index, transpose.getX());
  if (index == 0) {
    op.setTransA(!op.getTransA());
  } else {
    op.setTransB(!op.getTransB());
  }
  return true;
}

class SinkTransposesPass : public impl::SinkTransposesPassBase<SinkTransposesPass> {
  bool move(Operation *op, RewriterBase &rewriter) {
    Sunk sunk = sink(op, rewriter);
    if (!sunk.op) {
      return false;
    }
    Value y = sunk.op->getResult(0);
    if (isIdentity(sunk.perm)) {
      replaceFused(rewriter, op, sunk.op);
    } else {
      Value below = createTranspose(rewriter, op->getLoc(), y, sunk.perm);
      replaceFused(rewriter, op, below.getDefiningOp());
    }
    ++moved;
    return true;
  }

  bool visit(Operation *op, RewriterBase &rewriter) {
    bool merged = false;
    if (auto transpose = dyn_cast<TransposeOp>(op)) {
      merged = mergeTranspose(transpose, rewriter);
    } else if (auto reshape = dyn_cast<ReshapeOp>(op)) {
      merged = mergeReshape(reshape, rewriter);
    } else if (auto matmul = dyn_cast<MatMulOp>(op)) {
      merged = absorbOperand(matmul, 0);
      merged |= absorbOperand(matmul, 1);
    } else {
      return move(op, rewriter);
    }
    cancelled += merged;
    return merged;
  }

  void runOnOperation() override {
    rewriteForward(getOperation(), [&](Operation *op, RewriterBase &rewriter) { return visit(op, rewriter); });
  }
};
} // namespace
} // namespace tessera::top
