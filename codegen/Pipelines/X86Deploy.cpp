//===- X86Deploy.cpp - From NAME_top.mlir to a .bmodel for x86 ------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Pipelines/X86Deploy.h"

#include "codegen/Pipelines/Plan.h"
#include "codegen/X86/KernelInterface.h"
#include "codegen/X86/Transforms/Pipeline.h"
#include "device_dialect/IR/DeviceDialect.h"
#include "device_dialect/IR/DeviceMoveOps.h"
#include "device_dialect/IR/Exact.h"
#include "device_dialect/IR/Layout.h"
#include "device_dialect/Transforms/Pipeline.h"
#include "top_dialect/IR/TensorNames.h"
#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/Transforms/Passes.h"

#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace tessera::codegen {

void registerX86Deploy(DialectRegistry &registry) {
  registry.insert<device::DeviceDialect, top::TopDialect, func::FuncDialect>();
  x86::registerX86Kernels(registry);
}

namespace {

llvm::Error failed(const char *phase) { return llvm::createStringError(llvm::Twine("failed to ") + phase); }

LogicalResult runDevicePasses(ModuleOp module, const X86DeployOptions &deploy) {
  PassManager passes(module.getContext());
  if (!deploy.quantization) { // else the narrow floats there are, are wanted
    passes.addPass(top::createWidenFloatsPass());
  }
  device::LoweringOptions lowering;
  lowering.observe = deploy.observe;
  lowering.requantisation = deploy.requantisation;
  device::buildLoweringPipeline(passes, lowering);
  x86::buildPlacementPipeline(passes, deploy.target, /*separate=*/deploy.observe);
  return passes.run(module);
}

} // namespace

llvm::Expected<X86DeployResult> deployX86(ModuleOp module, const X86DeployOptions &options,
                                          const PhaseObserver &observer) {
  llvm::Expected<func::FuncOp> entry = deployableFunction(module);
  if (!entry) {
    return entry.takeError();
  }
  func::FuncOp function = *entry;
  X86DeployResult result;
  auto quantization = prepareModel(function, options.quantization, options.inputsOutputs, observer);
  if (!quantization) {
    return quantization.takeError();
  }
  result.quantization = std::move(*quantization);
  std::vector<ObservedTensor> observed;
  {
    Phase phase(observer, "lower");
    if (options.observe) {
      top::nameEveryTensor(function);
      observed = listObserved(function);
    }
    if (mlir::failed(runDevicePasses(module, options))) {
      return failed("lower the model to device operations");
    }
    if (options.observe) {
      findSources(function, observed);
    }
  }
  if (!options.deviceMlir.empty()) {
    if (llvm::Error error = writeText(module, options.deviceMlir)) {
      return error;
    }
  }
  KernelSet kernels(options.target);
  {
    Phase phase(observer, "kernels");
    for (Operation &op : function.getBody().front()) {
      if (needsKernel(&op)) {
        kernels.add(&op);
      }
    }
    x86::KernelCache cache(options.cacheFolder);
    if (mlir::failed(kernels.compile(cache, observer.progress))) {
      return failed("compile kernels");
    }
  }
  std::vector<char> code;
  if (kernels.size()) {
    Phase phase(observer, "link");
    llvm::Expected<std::vector<char>> linked = kernels.link();
    if (!linked) {
      return linked.takeError();
    }
    code = std::move(*linked);
  }
  PlannedModel planned;
  {
    Phase phase(observer, "plan");
    if (mlir::failed(planModel(function, options.target, kernels, std::move(code), planned))) {
      return failed("plan the model");
    }
  }
  if (result.quantization) {
    addScales(*planned.model.nets.front()->stages.front(), *result.quantization);
  }
  result.exceptions = device::exceptionsOf(function);
  addExactness(planned.model, result.exceptions);
  Phase phase(observer, "write");
  if (std::string message = bmodel::writeModel(planned.model, planned.segments, options.output); !message.empty()) {
    return llvm::createStringError("failed to write '" + options.output + "': " + message);
  }
  result.workspaceBytes = planned.workspaceBytes;
  result.workspaceLowerBound = planned.workspaceLowerBound;
  result.codeBytes = planned.segments[0].getBytes();
  result.constantBytes = planned.segments[1].getBytes();
  result.steps = planned.steps;
  result.kernels = kernels.size();
  result.cacheHits = kernels.cacheHits();
  result.observed = std::move(observed);
  return result;
}

} // namespace tessera::codegen
