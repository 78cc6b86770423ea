//===- AllocateLocal.cpp - Addresses of buffers ---------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Passes.h"
#include "codegen/Npu/Transforms/Programs.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace tessera::npu {

#define GEN_PASS_DEF_ALLOCATELOCALPASS
#include "codegen/Npu/Passes.h.inc"

void setAddresses(const MemoryPlan &plan, ArrayRef<BufferOp> buffers) {
  for (auto [number, each] : llvm::enumerate(buffers)) {
    if (BufferOp buffer = each) {
      Builder builder(buffer.getContext());
      const MemoryPlan::Use &use = plan.buffers()[number];
      buffer.setAddress(int64_t(use.offset));
      buffer.setLiveAttr(builder.getDenseI64ArrayAttr({int64_t(use.first), int64_t(use.last)}));
    }
  }
}

LogicalResult expectPhase(ProgramOp program, Phase phase) {
  if (program.getPhase() != phase) {
    return program.emitError() << "the program is " << stringifyPhase(program.getPhase()) << ", expected one that is "
                               << stringifyPhase(phase);
  }
  return success();
}

namespace {

class AllocateLocal : public impl::AllocateLocalPassBase<AllocateLocal> {
  void runOnOperation() override {
    ProgramOp program = getOperation();
    if (failed(expectPhase(program, Phase::staged))) {
      return signalPassFailure();
    }
    StagedProgram staged(program);
    MemoryPlan plan(staged.stream, program.getInputs(), staged.overlap);
    for (auto [number, buffer] : llvm::enumerate(staged.buffers)) {
      if (buffer && !plan.buffers()[number].used()) {
        buffer.emitError("no command uses the buffer");
        return signalPassFailure();
      }
    }
    plan.allocate();
    for (const MemoryPlan::Misfit &misfit : plan.misfits()) {
      staged.buffers[misfit.buffer].emitError()
          << "no address for " << staged.stream.buffers[misfit.buffer].bytes << " bytes of a lane from stage "
          << misfit.first << " to " << misfit.last;
      return signalPassFailure();
    }
    setAddresses(plan, staged.buffers);
    program.setPhase(Phase::allocated);
  }
};

} // namespace
} // namespace tessera::npu
