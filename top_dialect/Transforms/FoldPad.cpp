//===- FoldPad.cpp - Folds padding into the op that reads it --------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/Transforms/Passes.h"
#include "top_dialect/Transforms/Rewrite.h"
#include "top_dialect/Transforms/Values.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>
#include <limits>

namespace tessera::top {
#define GEN_PASS_DEF_FOLDPADPASS
#include "top_dialect/Transforms/Passes.h.inc"

namespace {
using namespace mlir;

/// A pad op in terms of its reader's pads: begins, then ends of the spatial dims.
struct SpatialPad {
  PadOp op;
  SmallVector<int64_t> pads;
  double value;
};
} // namespace

/// Returns the pad op that computes `x` if it adds a constant around spatial dims only. Its pads include `own`.
static std::optional<SpatialPad> matchPad(Value x, ArrayRef<int64_t> own) {
  auto pad = x.getDefiningOp<PadOp>();
  if (!pad || pad.getMode() != PadMode::constant) {
    return std::nullopt;
  }
  int64_t rank = typeOf(x).getRank(), spatial = rank - 2;
  ArrayRef<int64_t> pads = pad.getPads();
  SpatialPad result{pad, SmallVector<int64_t>(own), pad.getValue().convertToDouble()};
  for (int64_t side = 0; side < 2; ++side) {
    ArrayRef<int64_t> part = pads.slice(side * rank, rank);
    if (part[0] != 0 || part[1] != 0) {
      return std::nullopt;
    }
    for (int64_t d = 0; d < spatial; ++d) {
      if (part[d + 2] < 0) {
        return std::nullopt;
      }
      result.pads[side * spatial + d] += part[d + 2];
    }
  }
  return result;
}

static bool isZero(ArrayRef<int64_t> pads) {
  return llvm::all_of(pads, [](int64_t pad) { return pad == 0; });
}

/// Checks that each pad stays smaller than the kernel's extent, the constraint C3 of pools.
template <typename Pool>
static bool keepsPoolConstraint(Pool pool, ArrayRef<int64_t> pads) {
  size_t spatial = pool.getKernel().size();
  for (size_t i = 0; i < pads.size(); ++i) {
    size_t d = i % spatial;
    if (pads[i] > (pool.getKernel()[d] - 1) * pool.getDilations()[d]) {
      return false;
    }
  }
  return true;
}

/// Checks, by the op that computes `v`, that no element of `v` is negative.
static bool isNonNegative(Value v) {
  Operation *def = v.getDefiningOp();
  if (!def) {
    return false;
  }
  return llvm::TypeSwitch<Operation *, bool>(def)
      .Case<ReluOp, SigmoidOp, HardSigmoidOp, ExpOp, AbsOp>([](auto) { return true; })
      .Case<ConvOp, ConvTransposeOp, MatMulOp>([](auto op) { return op.getRelu(); })
      .Case([](ClipOp op) { return op.getLo().convertToDouble() >= 0; })
      .Default(false);
}

static std::optional<SpatialPad> padOfConv(ConvOp conv) {
  std::optional<SpatialPad> pad = matchPad(conv.getX(), conv.getPads());
  return pad && pad->value == 0 ? pad : std::nullopt;
}

static std::optional<SpatialPad> padOfAvgPool(AvgPoolOp pool) {
  std::optional<SpatialPad> pad = matchPad(pool.getX(), pool.getPads());
  // The mean counts elements of the pad op, so it must count the pool's own pads too, or the pool must not have any.
  bool countsAll = pool.getCountIncludePad() || isZero(pool.getPads());
  return pad && pad->value == 0 && countsAll && !pool.getCeilMode() && keepsPoolConstraint(pool, pad->pads)
             ? pad
             : std::nullopt;
}

static std::optional<SpatialPad> padOfMaxPool(MaxPoolOp pool) {
  std::optional<SpatialPad> pad = matchPad(pool.getX(), pool.getPads());
  if (!pad || pool.getCeilMode() || !keepsPoolConstraint(pool, pad->pads)) {
    return std::nullopt;
  }
  // With dilation, a window could lie entirely in the padding, and its maximum would be the padding value.
  bool everyWindowHasAnElement = llvm::all_of(pool.getDilations(), [](int64_t d) { return d == 1; });
  bool zeroCannotWin = pad->value == 0 && everyWindowHasAnElement && isNonNegative(pad->op.getX());
  bool lowest = pad->value <= -std::numeric_limits<float>::max();
  return zeroCannotWin || (lowest && everyWindowHasAnElement) ? pad : std::nullopt;
}

namespace {
class FoldPadPass : public impl::FoldPadPassBase<FoldPadPass> {
  template <typename Op>
  static bool takeOver(Op op, const std::optional<SpatialPad> &pad, RewriterBase &rewriter) {
    if (!pad) {
      return false;
    }
    PadOp padOp = pad->op;
    op.setPads(pad->pads);
    op.getXMutable().assign(padOp.getX());
    op->setLoc(fuseNames(op->getContext(), {padOp.getLoc(), op.getLoc()}));
    eraseDeadChain(rewriter, padOp);
    return true;
  }

  void runOnOperation() override {
    folded += rewriteForward(getOperation(), [](Operation *op, RewriterBase &rewriter) {
      if (auto conv = dyn_cast<ConvOp>(op)) {
        return takeOver(conv, padOfConv(conv), rewriter);
      }
      if (auto pool = dyn_cast<MaxPoolOp>(op)) {
        return takeOver(pool, padOfMaxPool(pool), rewriter);
      }
      if (auto pool = dyn_cast<AvgPoolOp>(op)) {
        if (takeOver(pool, padOfAvgPool(pool), rewriter)) {
          pool.setCountIncludePad(true);
          return true;
        }
      }
      return false;
    });
  }
};
} // namespace
} // namespace tessera::top
