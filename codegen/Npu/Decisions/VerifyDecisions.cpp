//===- VerifyDecisions.cpp - Checks of decisions --------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/ChipPass.h"
#include "codegen/Npu/Decisions/FusedOps.h"
#include "codegen/Npu/Stream/CommandStream.h"
#include "codegen/Npu/Stream/EmitProgram.h"

namespace tessera::npu {
#define GEN_PASS_DEF_VERIFYDECISIONSPASS
#include "codegen/Npu/Passes.h.inc"

using namespace mlir;

namespace {

struct VerifyDecisions : ChipPass<impl::VerifyDecisionsPassBase<VerifyDecisions>> {
  using ChipPass::ChipPass;

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (failed(verifyFused(function, chip())) || failed(verifySchedule(function))) {
      signalPassFailure();
    }
  }

private:
  LogicalResult verifySchedule(func::FuncOp function) {
    if (!effortOf(function)) {
      for (Operation &op : function.getBody().front()) {
        for (StringRef name : {NpuDialect::kResidentAttr, NpuDialect::kSlicesAttr, NpuDialect::kSingleBufferedAttr}) {
          if (op.hasAttr(name)) {
            return op.emitError("has ") << name << ", but the function does not have a schedule (npu.effort)";
          }
        }
      }
      return success();
    }
    Constants constants;
    ValuePlan plan(function, chip());
    GroupPlan groups = GroupPlan::none(plan, chip());
    std::vector<UnsupportedOp> unsupportedOps;
    auto ignore = [](FunctionEmission &) {};
    if (failed(survey(function, constants, chip(), plan, /*mayBeResident=*/true, ignore, unsupportedOps))) {
      report(function, unsupportedOps);
      return failure();
    }
    return readSchedule(function, chip(), plan, groups);
  }
};

} // namespace

std::unique_ptr<mlir::Pass> createVerifyDecisionsPass(const Chip &chip) {
  return std::make_unique<VerifyDecisions>(chip);
}

} // namespace tessera::npu
