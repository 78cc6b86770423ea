//===- Prepare.cpp - Preparation of a Top model for lowering --------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Pipelines/Prepare.h"

#include "bmodel/properties.h"
#include "codegen/Target/IrDump.h"
#include "device_dialect/Conversion/TopToDevice/Constraints.h"
#include "quant/Transforms/Precision/PrecisionAttributes.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/OutputOrigin.h"
#include "top_dialect/IR/Properties.h"
#include "top_dialect/IR/State.h"
#include "top_dialect/IR/TensorNames.h"
#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/IR/Unsupported.h"
#include "top_dialect/IR/WeightLifetime.h"
#include "top_dialect/Transforms/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;

namespace tessera::codegen {

llvm::Expected<quant::QuantizeReport> quantizeModel(func::FuncOp function, const Quantization &quantization,
                                                    llvm::function_ref<void(size_t, size_t)> progress,
                                                    const IrObserver &observeIr) {
  top::nameEveryTensor(function);
  if (llvm::Error error = quantization.isChecked || quant::isAssigned(function)
                              ? llvm::Error::success()
                              : quant::checkTables(function, quantization.table, quantization.choices)) {
    return error;
  }
  PassManager passes(function.getContext());
  passes.addPass(top::createWidenFloatsPass());
  if (mlir::failed(passes.run(function->getParentOfType<ModuleOp>()))) {
    return llvm::createStringError("internal error: f16 values cannot be widened");
  }
  return quant::quantizeFunction(function, quantization.table, quantization.choices, quantization.options, progress,
                                 [&](PassManager &manager) { watch(manager, "quantize", observeIr); });
}

/// Returns a typical range of an activation, for every tensor.
static quant::Range someRange() {
  quant::Range range;
  range.threshold = 4, range.min = -1, range.max = 4, range.symmetric = false;
  range.derive();
  return range;
}

Quantization madeUp(func::FuncOp function, quant::Precision precision) {
  top::nameEveryTensor(function);
  llvm::StringMap<quant::Range> ranges;
  auto add = [&](StringRef name) {
    if (!name.empty()) {
      ranges[name] = someRange();
    }
  };
  function.walk([&](Operation *op) {
    for (Value value : op->getResults()) {
      add(top::getTensorName(value));
    }
  });
  for (BlockArgument argument : function.getArguments()) {
    add(top::getInputName(argument));
  }
  Quantization result;
  result.options.precision = precision;
  if (precision == quant::Precision::INT8 || precision == quant::Precision::INT16) {
    result.table = quant::CalibrationTable(std::move(ranges));
  }
  return result;
}

llvm::Expected<func::FuncOp> deployableFunction(ModuleOp module) {
  auto function = module.lookupSymbol<func::FuncOp>("main");
  if (!function || !llvm::hasSingleElement(function.getBody())) {
    return llvm::createStringError("failed to deploy: the module does not have a function @main");
  }
  if (failed(device::checkLowerable(module, /*isSplit=*/true))) {
    return top::unsupported("the model contains operations that Tessera cannot run");
  }
  return function;
}

llvm::Expected<std::optional<quant::QuantizeReport>>
prepareModel(func::FuncOp function, const std::optional<Quantization> &quantization,
             const quant::InputsOutputs &inputsOutputs, const PhaseObserver &observer, const IrObserver &observeIr) {
  std::optional<quant::QuantizeReport> result;
  if (quantization) {
    observer.begin("quantize");
    llvm::Expected<quant::QuantizeReport> report = quantizeModel(
        function, *quantization, [&](size_t done, size_t total) { observer.progress({done, total}); }, observeIr);
    if (!report) {
      return report.takeError();
    }
    result = std::move(*report);
    top::dropUnheldWeights(function);
  }
  if (!inputsOutputs.pixels.empty()) {
    if (llvm::Error error = quant::fusePreprocess(function, inputsOutputs.pixels)) {
      return std::move(error);
    }
  }
  if (result) { // after the pixels, which are integers already
    quant::exposeIntegers(function, quantization->table, inputsOutputs, *result);
  }
  return result;
}

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

void addScales(bmodel::StageDefT &stage, const quant::QuantizeReport &report) {
  llvm::StringMap<const quant::QuantizedTensor *> byName;
  for (const quant::QuantizedTensor &tensor : report.tensors) {
    byName[tensor.name] = &tensor;
  }
  for (auto &tensor : stage.tensors) {
    if (tensor->onnx_names.empty()) {
      continue;
    }
    bool isInteger = tensor->dtype == bmodel::DType::I8 || tensor->dtype == bmodel::DType::I16;
    const std::string &name = tensor->onnx_names.front();
    const quant::QuantizedTensor *quantized = isInteger ? byName.lookup(name) : nullptr;
    auto factors = report.factors.find(name);
    bool isScaled = factors != report.factors.end() && (quantized || !isInteger);
    if (!quantized && !isScaled) {
      continue;
    }
    size_t axis = isScaled ? factors->second.axis : 0;
    if (isScaled &&
        (axis >= tensor->shape.size() || tensor->shape[axis].value() != int64_t(factors->second.factors.size()))) {
      tensor->onnx_names.clear(); // the shape changed, so the scales do not apply and the real values are unknown
      continue;
    }
    tensor->quant = std::make_unique<bmodel::QuantDefT>();
    tensor->quant->scales = {quantized ? quantized->scale : 1.0f};
    if (isScaled) {
      std::vector<float> scales = factors->second.factors;
      llvm::for_each(scales, [&](float &scale) { scale *= tensor->quant->scales.front(); });
      tensor->quant->scales = std::move(scales);
      tensor->quant->axis = static_cast<int32_t>(axis);
    }
    tensor->quant->zero_points.assign(tensor->quant->scales.size(), quantized ? quantized->zeroPoint : 0);
  }
}

std::vector<std::string> listOutputOrigins(func::FuncOp function) {
  std::vector<std::string> found;
  for (OpOperand &result : function.getBody().front().getTerminator()->getOpOperands()) {
    if (!top::isStateResult(function, result.getOperandNumber())) {
      found.push_back(top::findOutputOrigin(result.get()).str());
    }
  }
  return found;
}

void addOutputOrigins(bmodel::StageDefT &stage, ArrayRef<std::string> origins) {
  for (auto [slot, origin] : llvm::zip_equal(stage.outputs, origins)) {
    stage.tensors[slot]->computed_by = origin;
  }
}

static void addProperty(bmodel::ModelDefT &model, StringRef key, StringRef value) {
  bmodel::PropertyDefT &property = *model.properties.emplace_back(std::make_unique<bmodel::PropertyDefT>());
  property.key = key, property.value = value;
}

void addProperties(bmodel::ModelDefT &model, ModuleOp module) {
  if (auto properties = module->getAttrOfType<DictionaryAttr>(top::kPropertiesAttr)) {
    for (NamedAttribute property : properties) {
      if (auto text = dyn_cast<StringAttr>(property.getValue())) {
        addProperty(model, property.getName(), text);
      }
    }
  }
}

void addExactness(bmodel::ModelDefT &model, const std::optional<std::vector<std::string>> &exceptions) {
  if (exceptions && exceptions->empty()) {
    addProperty(model, bmodel::kBitEqual, "all");
  }
  for (const std::string &name : exceptions.value_or(std::vector<std::string>())) {
    addProperty(model, bmodel::kBitEqualExcept, name);
  }
}

} // namespace tessera::codegen
