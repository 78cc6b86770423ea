//===- ChooseForms.cpp - Choice of the form of ops ------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Decisions/ChooseForms.h"

#include "codegen/Npu/ChipPass.h"
#include "codegen/Npu/Emission/EmissionInterface.h"
#include "codegen/Npu/Emission/Moves/EarlyCopies.h"

namespace tessera::npu {
#define GEN_PASS_DEF_CHOOSEFORMSPASS
#include "codegen/Npu/Passes.h.inc"

using namespace mlir;

/// Chooses the forms of |ops|, replacing earlier ones. |fusesInputs|: EmissionContext::fusesInputs.
static void chooseFormsOf(ArrayRef<Operation *> ops, func::FuncOp function, const Chip &chip,
                          std::optional<bool> fusesInputs) {
  Constants constants;
  CommandStream scratch(chip, constants);
  Tiler tiler(scratch);
  tiler.surveys = true;
  ValuePlan plan(function, chip);
  const FusedOps fusedOps(function, chip);
  OperandPlacer operands(function, scratch, plan, fusedOps, /*surveys=*/true);
  const EarlyCopies copies(function, chip);
  EmissionContext context{chip, scratch, tiler, operands, plan, fusedOps, copies, fusesInputs};
  for (Operation *op : ops) {
    op->removeAttr(NpuDialect::kTapsAttr);
    op->removeAttr(NpuDialect::kAttentionAttr);
    op->removeAttr(NpuDialect::kRowsOnLanesAttr);
    if (auto conv = dyn_cast<device::ConvOp>(op); conv && fusion::fusedInputMapOf(conv)) {
      fusion::fusedInputMapOf(conv)->removeAttr(NpuDialect::kFusedAttr);
    }
    if (auto model = dyn_cast<EmissionInterface>(op)) {
      operands.enter(op, 0);
      model.chooseForm(context);
    }
  }
}

/// Returns the convolutions that could compute the map in front of them, each followed by that map.
static SmallVector<Operation *> inputMapsOf(func::FuncOp function) {
  SmallVector<Operation *> found;
  for (auto conv : function.getBody().front().getOps<device::ConvOp>()) {
    auto map = conv.getX().getDefiningOp<device::MapOp>();
    if (map && fusion::findMapReader(map) == conv && (!fusion::getFused(map) || fusion::fusedInputMapOf(conv))) {
      found.append({conv, map});
    }
  }
  return found;
}

FormsOfInputs formsOfInputs(func::FuncOp function) {
  FormsOfInputs forms;
  for (Operation *op : inputMapsOf(function)) {
    forms.emplace_back(op, op->getAttrDictionary());
  }
  return forms;
}

void setForms(const FormsOfInputs &forms) {
  for (auto [op, attributes] : forms) {
    op->setAttrs(attributes);
  }
}

void fuseInputs(func::FuncOp function, const Chip &chip, bool fuses) {
  SmallVector<Operation *> convs = inputMapsOf(function);
  llvm::erase_if(convs, [](Operation *op) { return !isa<device::ConvOp>(op); });
  chooseFormsOf(convs, function, chip, fuses);
}

namespace {

struct ChooseForms : ChipPass<impl::ChooseFormsPassBase<ChooseForms>> {
  using ChipPass::ChipPass;

  void runOnOperation() override {
    SmallVector<Operation *> ops;
    for (Operation &op : getOperation().getBody().front()) {
      ops.push_back(&op);
    }
    chooseFormsOf(ops, getOperation(), chip(), std::nullopt);
  }
};

} // namespace

std::unique_ptr<Pass> createChooseFormsPass(const Chip &chip) { return std::make_unique<ChooseForms>(chip); }

} // namespace tessera::npu
