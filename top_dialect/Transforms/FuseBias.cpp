//===- FuseBias.cpp - Fuses constant additions into the bias --------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/Transforms/AffineChain.h"
#include "top_dialect/Transforms/Passes.h"

namespace tessera::top {
#define GEN_PASS_DEF_FUSEBIASPASS
#include "top_dialect/Transforms/Passes.h.inc"

namespace {
using namespace mlir;

class FuseBiasPass : public impl::FuseBiasPassBase<FuseBiasPass> {
  void runOnOperation() override {
    SmallVector<std::pair<Operation *, AffineChain>> chains;
    getOperation().walk([&](Operation *op) {
      if (std::optional<int64_t> axis = foldableChannelAxis(op)) {
        if (auto chain = collectChain(op->getResult(0), *axis, /*addsOnly=*/true)) {
          chains.emplace_back(op, std::move(*chain));
        }
      }
    });
    IRRewriter rewriter(&getContext());
    for (auto &[op, chain] : chains) {
      fused += chain.ops.size();
      foldIntoWeights(rewriter, op, chain);
    }
  }
};
} // namespace
} // namespace tessera::top
