//===- ChooseForms.cpp - Which form ops take on the chip ------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/ChipPass.h"
#include "codegen/Npu/Emission/EarlyCopies.h"
#include "codegen/Npu/Emission/EmissionInterface.h"

namespace tessera::npu {
#define GEN_PASS_DEF_CHOOSEFORMSPASS
#include "codegen/Npu/Passes.h.inc"

using namespace mlir;

namespace {

struct ChooseForms : ChipPass<impl::ChooseFormsPassBase<ChooseForms>> {
  using ChipPass::ChipPass;

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    Constants constants;
    Stream scratch(chip(), constants);
    Tiler tiler(scratch);
    tiler.surveys = true;
    ValuePlan plan(function, chip());
    const FusedOps fusedOps(function, chip());
    OperandPlacer operands(function, scratch, plan, fusedOps, /*surveys=*/true);
    const EarlyCopies copies(function, chip());
    EmissionContext context{chip(), scratch, tiler, operands, plan, fusedOps, copies};
    for (Operation &op : function.getBody().front()) {
      op.removeAttr(NpuDialect::kTapsAttr);
      op.removeAttr(NpuDialect::kAttentionAttr);
      op.removeAttr(NpuDialect::kRowLanesAttr);
      if (auto conv = dyn_cast<device::ConvOp>(op); conv && fusion::fusedInputMapOf(conv)) {
        fusion::fusedInputMapOf(conv)->removeAttr(NpuDialect::kFusedAttr);
      }
      if (auto model = dyn_cast<EmissionInterface>(op)) {
        operands.enter(&op, 0);
        model.chooseForm(context);
      }
    }
  }
};

} // namespace

std::unique_ptr<Pass> createChooseFormsPass(const Chip &chip) { return std::make_unique<ChooseForms>(chip); }

} // namespace tessera::npu
