//===- SchedulePass.cpp - Schedule search as a pass -----------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/ChipPass.h"
#include "codegen/Npu/Schedule/PlanFile.h"
#include "codegen/Npu/Schedule/ScheduleSearch.h"

namespace tessera::npu {
#define GEN_PASS_DEF_SCHEDULEPASS
#include "codegen/Npu/Passes.h.inc"

using namespace mlir;

namespace {

struct SchedulePass : ChipPass<impl::SchedulePassBase<SchedulePass>> {
  using ChipPass::ChipPass;

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    NpuOptions options{effort};
    if (!plan.empty()) {
      llvm::Expected<LayerSchedule> read = readPlan(plan);
      if (!read) {
        function.emitError() << llvm::toString(read.takeError());
        return signalPassFailure();
      }
      options.plan = std::move(*read);
    }
    Constants constants;
    NpuProgram program;
    std::vector<UnsupportedOp> unsupportedOps;
    if (failed(ScheduleSearch(function, chip(), options, constants).run(program, unsupportedOps))) {
      report(function, unsupportedOps);
      signalPassFailure();
    }
  }
};

} // namespace
} // namespace tessera::npu
