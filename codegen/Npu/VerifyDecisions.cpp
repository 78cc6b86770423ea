//===- VerifyDecisions.cpp - What holds between decisions -----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/ChipPass.h"
#include "codegen/Npu/Folds.h"

namespace tessera::npu {
#define GEN_PASS_DEF_VERIFYDECISIONSPASS
#include "codegen/Npu/Passes.h.inc"

namespace {

struct VerifyDecisions : ChipPass<impl::VerifyDecisionsPassBase<VerifyDecisions>> {
  using ChipPass::ChipPass;

  void runOnOperation() override {
    if (failed(verifyFused(getOperation(), chip()))) {
      signalPassFailure();
    }
  }
};

} // namespace

std::unique_ptr<mlir::Pass> createVerifyDecisionsPass(const Chip &chip) {
  return std::make_unique<VerifyDecisions>(chip);
}

} // namespace tessera::npu
