//===- AssignWaits.cpp - Ids and waits of commands ------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Passes.h"
#include "codegen/Npu/Transforms/Programs.h"

#include "bmodel/npu/check.h"

using namespace mlir;
namespace hw = bmodel::npu;

namespace tessera::npu {

#define GEN_PASS_DEF_ASSIGNWAITSPASS
#include "codegen/Npu/Passes.h.inc"

namespace {

class AssignWaits : public impl::AssignWaitsPassBase<AssignWaits> {
  void runOnOperation() override {
    ProgramOp program = getOperation();
    if (failed(expectPhase(program, Phase::ordered))) {
      return signalPassFailure();
    }
    std::vector<Descriptor> commands = encodeProgram(program);
    hw::assignWaits(commands, chipOf(program));
    for (auto [op, command] : llvm::zip_equal(program.getBody().getOps<CommandOp>(), commands)) {
      Descriptor result = op.getDescriptor();
      result.header.id = command.header.id, result.header.wait = command.header.wait;
      op.setDescriptor(result);
    }
    program.setPhase(Phase::numbered);
  }
};

} // namespace
} // namespace tessera::npu
