//===- FoldBatchNorm.cpp - Folds batch_norm and scales into weights -------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/Transforms/AffineChain.h"
#include "top_dialect/Transforms/Passes.h"

namespace tessera::top {
#define GEN_PASS_DEF_FOLDBATCHNORMPASS
#include "top_dialect/Transforms/Passes.h.inc"

namespace {
using namespace mlir;

class FoldBatchNormPass : public impl::FoldBatchNormPassBase<FoldBatchNormPass> {
  void runOnOperation() override {
    // Collect all chains before replacing any: each fold computes the new weights once for the whole chain.
    SmallVector<std::pair<Operation *, AffineChain>> intoWeights;
    SmallVector<AffineChain> intoMulAdd;
    llvm::DenseSet<Operation *> members;
    auto claim = [&](const AffineChain &chain) { members.insert(chain.ops.begin(), chain.ops.end()); };
    getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (std::optional<int64_t> axis = foldableChannelAxis(op)) {
        auto chain = collectChain(op->getResult(0), *axis, /*addsOnly=*/false);
        if (chain && chain->scales) {
          claim(*chain);
          intoWeights.emplace_back(op, std::move(*chain));
        }
        return;
      }
      // A batch_norm after any other op starts a chain at its input.
      auto norm = dyn_cast<BatchNormOp>(op);
      if (norm && !members.contains(op)) {
        if (auto chain = collectChain(norm.getX(), 1, /*addsOnly=*/false, norm)) {
          claim(*chain);
          intoMulAdd.push_back(std::move(*chain));
        }
      }
    });
    IRRewriter rewriter(&getContext());
    for (auto &[op, chain] : intoWeights) {
      folded += chain.ops.size();
      foldIntoWeights(rewriter, op, chain);
    }
    for (const AffineChain &chain : intoMulAdd) {
      ++affine;
      replaceByMulAdd(rewriter, chain);
    }
  }
};
} // namespace
} // namespace tessera::top
