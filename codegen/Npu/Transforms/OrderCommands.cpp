//===- OrderCommands.cpp - Orders the commands of a stream ----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Passes.h"
#include "codegen/Npu/Transforms/Programs.h"

using namespace mlir;

namespace tessera::npu {

#define GEN_PASS_DEF_ORDERCOMMANDSPASS
#include "codegen/Npu/Passes.h.inc"

namespace {

class OrderCommands : public impl::OrderCommandsPassBase<OrderCommands> {
  void runOnOperation() override {
    ProgramOp program = getOperation();
    if (failed(expectPhase(program, Phase::allocated))) {
      return signalPassFailure();
    }
    StagedProgram staged(program);
    MemoryPlan plan(staged.stream, program.getInputs(), staged.overlap);
    for (auto [number, buffer] : llvm::enumerate(staged.buffers)) {
      if (buffer) {
        plan.adopt(number, uint64_t(*buffer.getAddress()));
      }
    }
    if (staged.overlap.prefetch) {
      plan.hoistLoads();
    }
    setAddresses(plan, staged.buffers);
    order(staged, plan);
    program.setPhase(Phase::ordered);
  }

  /// Moves the commands out of their stages, into the order of the plan.
  static void order(StagedProgram &staged, const MemoryPlan &plan) {
    llvm::DenseMap<const Descriptor *, CommandOp> ops;
    size_t next = 0;
    for (const Stage &step : staged.stream.stages) {
      for (const auto *part : {&step.loads, &step.computes, &step.stores}) {
        for (const Descriptor &command : *part) {
          ops[&command] = staged.commands[next++];
        }
      }
    }
    Block &body = staged.program.getBody().front();
    SmallVector<StageOp> stages(body.getOps<StageOp>());
    plan.eachInOrder([&](size_t, const Descriptor &command) { ops.lookup(&command)->moveBefore(&body, body.end()); });
    for (StageOp stage : stages) {
      stage.erase();
    }
  }
};

} // namespace
} // namespace tessera::npu
