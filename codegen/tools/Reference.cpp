//===- Reference.cpp - The reference subcommand: evaluates a NAME_top.mlir ---===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/tools/Cones.h"
#include "codegen/tools/Evaluate.h"
#include "codegen/tools/Events.h"
#include "codegen/tools/ModuleInfo.h"
#include "codegen/tools/OpenModule.h"
#include "codegen/tools/QuantTables.h"
#include "codegen/tools/Subcommand.h"
#include "device_dialect/Conversion/TopToDevice/Constraints.h"
#include "device_dialect/Conversion/TopToDevice/TopToDevice.h"
#include "device_dialect/IR/DeviceDialect.h"
#include "device_dialect/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "quant/Transforms/Isolate.h"
#include "top_dialect/IR/ModuleIO.h"
#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/IR/Unsupported.h"
#include "top_dialect/IR/WeightStore.h"
#include "top_dialect/Transforms/Passes.h"

#include "CLI/CLI.hpp"

using namespace mlir;
using namespace tessera::tool;
using namespace tessera::top;

namespace {
struct Options {
  std::string mlir;
  std::string input;
  std::string output;
  bool all = false;
  bool device = false;
  std::string quantize, calibrationTable, quantizeTable;
  int64_t groupSize = tessera::quant::kGroupSize;
  std::string isolate;
  std::string operands;
  std::optional<int64_t> budget;
  std::vector<std::string> only;
  std::string requantize = "float";
  bool int16 = false;
};
} // namespace

/// Reads the tensors that the network needs: from `input` and, if ops are isolated, from the file of operands too.
static llvm::Expected<TensorMap> readTensors(func::FuncOp network, const Options &options,
                                             const tessera::quant::TensorFactors &factors) {
  TensorMap inputs;
  unsigned count = network.getNumArguments();
  WeightStore given(network.getContext());
  if (llvm::Error error = given.open(options.input)) {
    return error;
  }
  if (llvm::Error error = readInputs(network, options.input, given, 0, count, inputs)) {
    return error;
  }
  if (!options.operands.empty()) {
    WeightStore operands(network.getContext());
    if (llvm::Error error = operands.open(options.operands)) {
      return error;
    }
    if (llvm::Error error = giveOperands(network, options.operands, operands, options.budget.has_value())) {
      return error;
    }
    if (llvm::Error error = readInputs(network, options.operands, operands, count, network.getNumArguments(), inputs)) {
      return error;
    }
  }
  if (options.isolate.empty()) {
    return inputs;
  }
  WeightStore wanted(network.getContext());
  if (llvm::Error error = wanted.open(options.isolate)) {
    return error;
  }
  tessera::quant::isolateOps(network, [&](StringRef name) { return wanted.lookup(name).has_value(); }, factors);
  if (llvm::Error error = readInputs(network, options.isolate, wanted, count, network.getNumArguments(), inputs)) {
    return error;
  }
  return inputs;
}

/// Lowers Top ops to the device ops from which every chip starts.
static llvm::Error lower(ModuleOp module, const std::string &requantise) {
  if (failed(tessera::device::checkLowerable(module))) {
    return tessera::top::unsupported("the model contains operations that Tessera cannot run");
  }
  PassManager passes(module.getContext());
  OpPassManager &functions = passes.nest<func::FuncOp>();
  functions.addPass(tessera::device::createConvertTopToDevicePass({.requantisation = requantise}));
  functions.addPass(tessera::device::createVerifyLoweredPass());
  functions.addPass(tessera::device::createFormTablesPass());
  return failed(passes.run(module))
             ? llvm::make_error<CodedError>(kInternal, "the model cannot be lowered to device operations")
             : llvm::Error::success();
}

/// Returns true if the module contains device ops, like the layers of a compiled model; their types are already
/// decided.
static bool isLowered(ModuleOp module) {
  return module
      .walk([](Operation *op) {
        return isa_and_present<tessera::device::DeviceDialect>(op->getDialect()) ? WalkResult::interrupt()
                                                                                 : WalkResult::advance();
      })
      .wasInterrupted();
}

static llvm::Error widenFloats(ModuleOp module) {
  PassManager passes(module.getContext());
  passes.addPass(createWidenFloatsPass());
  return failed(passes.run(module)) ? llvm::createStringError("failed to widen f16 values") : llvm::Error::success();
}

/// Evaluates the network, or the part within the budget, and reports the result.
static llvm::Error evaluateNetwork(func::FuncOp network, const TensorMap &inputs, const Options &options) {
  llvm::json::Object result{{"output", llvm::json::fixUTF8(options.output)}};
  if (options.budget) {
    llvm::StringSet<> only;
    for (const std::string &name : options.only) {
      only.insert(name);
    }
    result["cones"] = keepCheapCones(network, *options.budget, only);
  }
  reportPhase("reference");
  llvm::Expected<int64_t> count = evaluate(network, inputs, options.output, options.all);
  if (!count) {
    return count.takeError();
  }
  result["tensors"] = *count;
  reportResult(std::move(result));
  return llvm::Error::success();
}

static llvm::Error run(const Options &options) {
  auto opened = openModule(options.mlir);
  if (!opened) {
    return opened.takeError();
  }
  opened->context->enableMultithreading();
  OwningOpRef<ModuleOp> *module = &opened->module;
  auto found = findMain(**module);
  if (!found) {
    return found.takeError();
  }
  auto network = cast<func::FuncOp>(*found);
  using tessera::quant::Precision;
  std::string byTable = options.calibrationTable.empty() ? "F32" : options.int16 ? "INT16" : "INT8";
  llvm::StringRef wanted = options.quantize.empty() ? byTable : options.quantize;
  std::optional<Precision> precision = tessera::quant::parsePrecision(wanted.upper());
  if (!precision) {
    return llvm::make_error<CodedError>(kUsage, "precision '" + options.quantize + "'; allowed are " +
                                                    tessera::quant::precisionNames());
  }
  auto tables = loadTables(*precision, options.calibrationTable, options.quantizeTable, **module);
  if (!tables) {
    return tables.takeError();
  }
  tessera::quant::TensorFactors factors;
  if (*tables) {
    (*tables)->options.groupSize = options.groupSize;
    reportPhase("quantize");
    auto report = tessera::codegen::quantizeModel(network, **tables,
                                                  [](size_t done, size_t total) { reportProgress(done, total); });
    if (!report) {
      return report.takeError();
    }
    factors = std::move(report->factors);
  } else if (!isLowered(**module)) {
    if (llvm::Error error = widenFloats(**module)) { // as deploy does
      return error;
    }
  }
  if (llvm::Error error = options.device ? lower(**module, options.requantize) : llvm::Error::success()) {
    return error;
  }
  auto inputs = readTensors(network, options, factors);
  if (!inputs) {
    return inputs.takeError();
  }
  return evaluateNetwork(network, *inputs, options);
}

std::function<llvm::Error()> tessera::tool::addReference(CLI::App &app) {
  CLI::App *sub = app.add_subcommand("reference", "Evaluates a NAME_top.mlir with the reference evaluator");
  auto options = std::make_shared<Options>();
  sub->add_option("--mlir", options->mlir, "The module")->required();
  sub->add_option("--input", options->input, "safetensors file with one tensor per input, by name")->required();
  sub->add_option("--output", options->output, "safetensors file to write")->required();
  sub->add_flag("--device", options->device, "Lower to device ops first: computes the integers that every chip gives");
  sub->add_option("--requantize", options->requantize, "With --device: float, fixed or tflite, as for deploy")
      ->check(CLI::IsMember({"float", "fixed", "tflite"}));
  sub->add_flag("--int16", options->int16,
                "With --calibration-table: quantise to INT16 instead of INT8, as deploy does");
  sub->add_option("--quantize", options->quantize, "Quantise first, as deploy does; INT8 with a calibration table");
  sub->add_option("--calibration-table", options->calibrationTable, "NAME_cali.json");
  sub->add_option("--quantize-table", options->quantizeTable, "NAME_qtable.json: precision per op");
  sub->add_option("--group-size", options->groupSize, "Weights that share a scale in W4, a multiple of 16");
  sub->add_option(
         "--isolate", options->isolate,
         "safetensors file of expected tensors: every op reads them, and each tensor's own computed value is written")
      ->excludes("--device");
  sub->add_option("--operands", options->operands,
                  "safetensors file of tensors by name: ops read these instead of the results of other ops")
      ->excludes("--isolate");
  sub->add_option("--budget", options->budget,
                  "With --operands: elements and multiplications to spend, cheapest tensors first")
      ->needs("--operands");
  sub->add_option("--only", options->only, "With --budget: a tensor to evaluate, and no others; may be repeated")
      ->needs("--budget")
      ->allow_extra_args(false);
  sub->add_flag("--all", options->all, "Write every named tensor, not only the outputs");
  return [options] { return run(*options); };
}
