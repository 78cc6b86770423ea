//===- Encode.cpp - Encodes programs as bytes -----------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Passes.h"
#include "codegen/Npu/Transforms/Programs.h"

#include "mlir/IR/Builders.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace tessera::npu {

#define GEN_PASS_DEF_ENCODEPASS
#include "codegen/Npu/Passes.h.inc"

namespace {

class Encode : public impl::EncodePassBase<Encode> {
  void runOnOperation() override {
    ProgramOp program = getOperation();
    if (failed(expectPhase(program, Phase::numbered))) {
      return signalPassFailure();
    }
    std::vector<Descriptor> commands = encodeProgram(program);
    auto byte = IntegerType::get(&getContext(), 8);
    auto type = RankedTensorType::get({int64_t(commands.size()), int64_t(sizeof(Descriptor))}, byte);
    ArrayRef<char> bytes(reinterpret_cast<const char *>(commands.data()), commands.size() * sizeof(Descriptor));
    program.setCodeAttr(DenseElementsAttr::getFromRawBuffer(type, bytes));
  }
};

} // namespace

FailureOr<std::vector<Descriptor>> finishProgram(ModuleOp module, const codegen::IrObserver &observer) {
  using Create = std::unique_ptr<Pass> (*)();
  const Create phases[] = {[] { return createAllocateLocalPass(); }, [] { return createOrderCommandsPass(); },
                           [] { return createAssignWaitsPass(); }};
  ProgramOp program = *module.getOps<ProgramOp>().begin();
  while (true) {
    if (observer) {
      observer(module, ("emit-npu-program-" + stringifyPhase(program.getPhase())).str());
    }
    if (program.getPhase() == Phase::numbered) {
      return encodeProgram(program);
    }
    PassManager passes(module.getContext());
    passes.addNestedPass<ProgramOp>(phases[unsigned(program.getPhase())]());
    if (failed(passes.run(module))) {
      return failure();
    }
  }
}

} // namespace tessera::npu
