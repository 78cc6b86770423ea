//===- EmitCommands.cpp - Device functions as staged programs -------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/ChipPass.h"
#include "codegen/Npu/Stream/EmitProgram.h"
#include "codegen/Npu/Transforms/Programs.h"

using namespace mlir;

namespace tessera::npu {

#define GEN_PASS_DEF_EMITCOMMANDSPASS
#include "codegen/Npu/Passes.h.inc"

namespace {

class EmitCommands : public ChipPass<impl::EmitCommandsPassBase<EmitCommands>> {
  using ChipPass::ChipPass;

  LogicalResult emit(func::FuncOp function) {
    Constants constants;
    std::vector<UnsupportedOp> unsupportedOps;
    FailureOr<ScheduledStream> result = streamOfSchedule(function, chip(), constants, unsupportedOps);
    report(function, unsupportedOps);
    if (failed(result)) {
      return failure();
    }
    OwningOpRef<ModuleOp> module = buildProgram(
        &getContext(), *result->stream,
        {function.getName().str(), function.getNumArguments(), function.getNumResults(), result->assembly.overlap});
    ProgramOp program = *module->getOps<ProgramOp>().begin();
    program->remove();
    getOperation().insert(function, program);
    function.erase();
    return success();
  }

  void runOnOperation() override {
    for (auto function : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      if (failed(emit(function))) {
        return signalPassFailure();
      }
    }
  }
};

} // namespace
} // namespace tessera::npu
