//===- Pipeline.cpp - Lowering shared by all families ---------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/Transforms/Pipeline.h"

#include "device_dialect/Conversion/TopToDevice/TopToDevice.h"
#include "device_dialect/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace tessera::device {

void buildLoweringPipeline(OpPassManager &manager, const LoweringOptions &options,
                           llvm::function_ref<void(OpPassManager &)> addForms) {
  OpPassManager &functions = manager.nest<func::FuncOp>();
  functions.addPass(createConvertTopToDevicePass({.requantisation = options.requantisation}));
  functions.addPass(createVerifyLoweredPass());
  if (options.instrument) {
    return;
  }
  if (options.updateStates) {
    functions.addPass(createUpdateStatesPass());
  }
  buildFusionPipeline(functions, addForms);
}

void buildFusionPipeline(OpPassManager &functions, llvm::function_ref<void(OpPassManager &)> addForms) {
  functions.addPass(createCanonicalizerPass());
  functions.addPass(createCSEPass());
  // While all tensors are row-major: remove copies and fuse.
  functions.addPass(createSimplifyCopiesPass());
  functions.addPass(createFormTablesPass());
  functions.addPass(createFuseEpiloguesPass());
  if (addForms) {
    addForms(functions);
  }
  functions.addPass(createCanonicalizerPass());
}

void registerLoweringPipeline() {
  PassPipelineRegistration<LoweringOptions>(
      "device-lowering", "Lower Top functions to fused device ops; shared by all families",
      [](OpPassManager &manager, const LoweringOptions &options) { buildLoweringPipeline(manager, options); });
}

} // namespace tessera::device
