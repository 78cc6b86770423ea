//===- X86Deploy.cpp - From NAME_top.mlir to a .bmodel for x86 ------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Pipelines/X86Deploy.h"

#include "codegen/Pipelines/Plan.h"
#include "codegen/X86/KernelInterface.h"
#include "device_dialect/Conversion/TopToDevice/Constraints.h"
#include "device_dialect/IR/DeviceDialect.h"
#include "device_dialect/IR/DeviceMoveOps.h"
#include "device_dialect/IR/Layout.h"
#include "device_dialect/Transforms/Pipeline.h"
#include "top_dialect/IR/TensorNames.h"
#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/IR/Unsupported.h"
#include "top_dialect/Transforms/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;

namespace tessera::codegen {

void registerX86Deploy(DialectRegistry &registry) {
  registry.insert<device::DeviceDialect, top::TopDialect, func::FuncDialect>();
  x86::registerX86Kernels(registry);
}

llvm::Expected<quant::QuantizeReport> quantizeModel(func::FuncOp function, const Quantization &quantization) {
  top::nameEveryTensor(function);
  if (llvm::Error error = quant::checkTables(function, quantization.table, quantization.choices)) {
    return error;
  }
  PassManager passes(function.getContext());
  passes.addPass(top::createWidenFloatsPass());
  if (mlir::failed(passes.run(function->getParentOfType<ModuleOp>()))) {
    return llvm::createStringError("failed to widen f16 values");
  }
  return quant::quantizeFunction(function, quantization.table, quantization.choices, quantization.precision,
                                 quantization.groupSize);
}

namespace {

/// Ends the observer's phase when it goes out of scope.
class Phase {
public:
  Phase(const PhaseObserver &observer, StringRef name) : observer(observer) { observer.begin(name); }
  ~Phase() { observer.end(); }

private:
  const PhaseObserver &observer;
};

llvm::Error failed(const char *phase) { return llvm::createStringError(llvm::Twine("failed to ") + phase); }

llvm::Error writeText(ModuleOp module, const std::string &path) {
  std::string message;
  std::unique_ptr<llvm::ToolOutputFile> file = openOutputFile(path, &message);
  if (!file) {
    return llvm::createStringError("failed to write '" + path + "': " + message);
  }
  module.print(file->os(), OpPrintingFlags().enableDebugInfo());
  file->keep();
  return llvm::Error::success();
}

/// Says of the model's integer tensors which real numbers they stand for.
void addScales(bmodel::StageDefT &stage, const quant::QuantizeReport &report) {
  llvm::StringMap<const quant::QuantizedTensor *> byName;
  for (const quant::QuantizedTensor &tensor : report.tensors) {
    byName[tensor.name] = &tensor;
  }
  for (auto &tensor : stage.tensors) {
    bool isInteger = tensor->dtype == bmodel::DType::I8 || tensor->dtype == bmodel::DType::I16;
    if (!isInteger || tensor->onnx_names.empty()) {
      continue;
    }
    if (const quant::QuantizedTensor *quantized = byName.lookup(tensor->onnx_names.front())) {
      tensor->quant = std::make_unique<bmodel::QuantDefT>();
      tensor->quant->scales = {quantized->scale};
      tensor->quant->zero_points = {quantized->zeroPoint};
    }
  }
}

LogicalResult runDevicePasses(ModuleOp module, const X86DeployOptions &deploy) {
  PassManager passes(module.getContext());
  if (!deploy.quantization) { // else the narrow floats there are, are wanted
    passes.addPass(top::createWidenFloatsPass());
  }
  device::DevicePipelineOptions options;
  options.vectorBytes = deploy.target.vectorBytes();
  options.observe = deploy.observe;
  options.byteDots = deploy.target.vnni;
  options.requantisation = deploy.requantisation;
  device::buildDevicePipeline(passes, options);
  return passes.run(module);
}

} // namespace

llvm::Expected<X86DeployResult> deployX86(ModuleOp module, const X86DeployOptions &options,
                                          const PhaseObserver &observer) {
  auto function = module.lookupSymbol<func::FuncOp>("main");
  if (!function || !llvm::hasSingleElement(function.getBody())) {
    return llvm::createStringError("failed to deploy: the module has no function @main");
  }
  if (mlir::failed(device::checkLowerable(module))) {
    return top::unsupported("the model holds what Tessera does not run");
  }
  X86DeployResult result;
  if (options.quantization) {
    Phase phase(observer, "quantize");
    llvm::Expected<quant::QuantizeReport> report = quantizeModel(function, *options.quantization);
    if (!report) {
      return report.takeError();
    }
    result.quantization = std::move(*report);
  }
  if (const std::string &pixels = options.inputsOutputs.pixels; !pixels.empty()) {
    if (llvm::Error error = quant::fusePreprocess(function, pixels)) {
      return error;
    }
  }
  if (result.quantization) { // after the pixels: those are integers already
    quant::exposeIntegers(function, options.quantization->table, options.inputsOutputs, *result.quantization);
  }
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
    if (mlir::failed(kernels.compile(cache))) {
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
