//===- Pipeline.cpp - From Top to what a chip executes --------------------===//
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

void buildDevicePipeline(OpPassManager &manager, const DevicePipelineOptions &options) {
  OpPassManager &functions = manager.nest<func::FuncOp>();
  functions.addPass(createConvertTopToDevicePass({.requantisation = options.requantisation}));
  functions.addPass(createVerifyLoweredPass());
  if (!options.observe) {
    functions.addPass(createCanonicalizerPass());
    functions.addPass(createCSEPass());

    // While all tensors are still row-major: fewer moves, and what is computed together.
    functions.addPass(createSimplifyCopiesPass());
    functions.addPass(createFormTablesPass());
    functions.addPass(createFuseEpiloguesPass());
    functions.addPass(createCanonicalizerPass());
  }
  buildPlacementPipeline(manager, options);
}

void buildPlacementPipeline(OpPassManager &manager, const DevicePipelineOptions &options) {
  OpPassManager &functions = manager.nest<func::FuncOp>();

  // How tensors and weights lie in memory.
  functions.addPass(createAssignLayoutsPass({.vectorBytes = options.vectorBytes, .winograd = options.winograd}));
  functions.addPass(createVerifyLayoutsPass());
  functions.addPass(createPackWeightsPass({.vectorBytes = options.vectorBytes, .byteDots = options.byteDots}));
  functions.addPass(createVerifyPackingPass());

  functions.addPass(createAssignAddressesPass({.separate = options.observe}));
  functions.addPass(createVerifyAddressesPass());
}

void registerDevicePipeline() {
  PassPipelineRegistration<DevicePipelineOptions>(
      "device-pipeline", "From Top functions to what a chip executes, as model_deploy does it",
      [](OpPassManager &manager, const DevicePipelineOptions &options) { buildDevicePipeline(manager, options); });
}

} // namespace tessera::device
