//===- FuseActivation.cpp - Fuses relu and clip into the producer ---------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/Transforms/Passes.h"
#include "top_dialect/Transforms/Rewrite.h"
#include "top_dialect/Transforms/Values.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

namespace tessera::top {
#define GEN_PASS_DEF_FUSEACTIVATIONPASS
#include "top_dialect/Transforms/Passes.h.inc"

namespace {
using namespace mlir;

/// y = min(max(x, 0), limit); there is no limit if it is not finite.
struct Rectifier {
  Value x;
  double limit;
};
} // namespace

static std::optional<Rectifier> matchRectifier(Operation *op) {
  constexpr double kNone = HUGE_VAL;
  if (auto relu = dyn_cast<ReluOp>(op)) {
    return Rectifier{relu.getX(), kNone};
  }
  if (auto clip = dyn_cast<ClipOp>(op)) {
    double hi = clip.getHi().convertToDouble();
    bool fits = clip.getLo().convertToDouble() == 0 && hi > 0;
    return fits ? std::optional(Rectifier{clip.getX(), hi}) : std::nullopt;
  }
  if (auto max = dyn_cast<MaxOp>(op)) {
    if (getScalar(max.getB()) == 0.0) {
      return Rectifier{max.getA(), kNone};
    }
  }
  return std::nullopt;
}

/// Fuses the rectifier `root` into its producer `op`.
template <typename Op>
static bool fuse(Op op, Operation *root, double limit) {
  Value result = op.getY();
  if (!result.hasOneUse() || result.getType() != root->getResult(0).getType() ||
      !isa<FloatType>(typeOf(result).getElementType())) {
    return false;
  }
  double present = op.getReluLimit().convertToDouble();
  if (op.getRelu() && present > 0) {
    limit = std::min(limit, present);
  }
  op.setRelu(true);
  op.setReluLimit(llvm::APFloat(std::isfinite(limit) ? limit : -1.0));
  return true;
}

namespace {
class FuseActivationPass : public impl::FuseActivationPassBase<FuseActivationPass> {
  void runOnOperation() override {
    fused += rewriteForward(getOperation(), [](Operation *op, RewriterBase &rewriter) {
      std::optional<Rectifier> rectifier = matchRectifier(op);
      Operation *producer = rectifier ? rectifier->x.getDefiningOp() : nullptr;
      if (!producer) {
        return false;
      }
      bool done =
          llvm::TypeSwitch<Operation *, bool>(producer)
              .Case<ConvOp, ConvTransposeOp, MatMulOp>([&](auto conv) { return fuse(conv, op, rectifier->limit); })
              .Default(false);
      if (done) {
        replaceFused(rewriter, op, producer);
      }
      return done;
    });
  }
};
} // namespace
} // namespace tessera::top
