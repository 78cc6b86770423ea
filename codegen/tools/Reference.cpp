//===- Reference.cpp - The reference subcommand: evaluates a NAME_top.mlir ---===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/tools/Events.h"
#include "codegen/tools/ModuleInfo.h"
#include "codegen/tools/OpenModule.h"
#include "codegen/tools/QuantTables.h"
#include "codegen/tools/Subcommand.h"
#include "codegen/tools/TensorFile.h"
#include "device_dialect/Conversion/TopToDevice/Constraints.h"
#include "device_dialect/Conversion/TopToDevice/TopToDevice.h"
#include "device_dialect/IR/DeviceDialect.h"
#include "device_dialect/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "quant/Transforms/Isolate.h"
#include "top_dialect/IR/ModuleIO.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/IR/Unsupported.h"
#include "top_dialect/IR/WeightStore.h"
#include "top_dialect/Reference/Evaluator.h"

#include <set>

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
  std::string requantize = "float";
  bool int16 = false;
};
} // namespace

/// Adds the tensors of the store for arguments `begin` .. `end` of the network.
static llvm::Error readInputs(func::FuncOp network, const std::string &path, const WeightStore &store, unsigned begin,
                              unsigned end, TensorMap &inputs) {
  for (unsigned i = begin; i < end; ++i) {
    auto name = network.getArgAttrOfType<StringAttr>(i, TopDialect::kNameAttr);
    const auto tensor = name ? store.lookup(name.getValue()) : std::nullopt;
    if (!tensor) {
      return llvm::createStringError("%s has no tensor for input '%s'", path.c_str(), name ? name.str().c_str() : "?");
    }
    inputs.emplace(name.str(), HostTensor(RankedTensorType::get(tensor->shape, tensor->elementType), tensor->bytes));
  }
  return llvm::Error::success();
}

/// The tensors that the network evaluates: of `input`, and, where ops are to be isolated, of that file too.
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

/// Room in the file's header for every tensor that `network` may give.
static uint64_t headerBytes(func::FuncOp network, bool all) {
  uint64_t bytes = 0;
  auto add = [&](StringRef name, Type type) {
    bytes += name.empty() ? 0 : TensorFileWriter::headerBytes(name, cast<RankedTensorType>(type).getRank());
  };
  for (unsigned i = 0; i < network.getNumResults(); ++i) {
    auto name = network.getResultAttrOfType<StringAttr>(i, TopDialect::kNameAttr);
    add(name ? name.getValue() : "result" + std::to_string(i), network.getResultTypes()[i]);
  }
  network.walk([&](Operation *op) {
    for (OpResult result : op->getResults()) {
      if (all && isa<RankedTensorType>(result.getType())) {
        add(getTensorName(result), result.getType());
      }
    }
  });
  return bytes;
}

/// Writes the network's outputs behind, with `all`, every named tensor in the order of evaluation; each as it is
/// computed, so that no tensor is held longer than the network needs it. Gives how many.
static llvm::Expected<int64_t> evaluate(func::FuncOp network, const TensorMap &inputs, const Options &options) {
  TensorFileWriter file;
  if (llvm::Error error = file.create(options.output, headerBytes(network, options.all))) {
    return error;
  }
  std::set<std::string, std::less<>> seen;
  llvm::Error failure = llvm::Error::success();
  auto keep = [&](llvm::StringRef name, const HostTensor &tensor) {
    if (!name.empty() && seen.insert(name.str()).second) {
      failure = llvm::joinErrors(std::move(failure), file.append(name, tensor));
    }
  };
  std::string messages;
  ScopedDiagnosticHandler handler(network.getContext(), [&](Diagnostic &diagnostic) {
    llvm::raw_string_ostream(messages) << (messages.empty() ? "" : "; ") << diagnostic.getLocation() << ": "
                                       << diagnostic;
  });
  size_t done = 0, total = 0;
  network.walk([&](Operation *op) {
    auto names = op->getAttrOfType<ArrayAttr>(TopDialect::kOutputsAttr);
    total += names ? names.size() : 0;
  });
  Evaluator evaluator([&](llvm::StringRef name, const HostTensor &tensor) {
    reportProgress(std::min(++done, total), total); // bodies of loops are gone through more than once
    if (options.all) {
      keep(name, tensor);
    }
  });
  auto outputs = evaluator.run(network, inputs);
  if (failed(outputs)) {
    llvm::consumeError(std::move(failure));
    return llvm::createStringError("the reference evaluation failed: %s", messages.c_str());
  }
  for (auto &[name, tensor] : *outputs) {
    keep(name, tensor);
  }
  if (failure) {
    return std::move(failure);
  }
  if (llvm::Error error = file.finish()) {
    return error;
  }
  return int64_t(seen.size());
}

/// Top ops become the device ops that every chip starts from.
static llvm::Error lower(ModuleOp module, const std::string &requantise) {
  if (failed(tessera::device::checkLowerable(module))) {
    return tessera::top::unsupported("the model holds what Tessera does not run");
  }
  PassManager passes(module.getContext());
  OpPassManager &functions = passes.nest<func::FuncOp>();
  functions.addPass(tessera::device::createConvertTopToDevicePass({.requantisation = requantise}));
  functions.addPass(tessera::device::createVerifyLoweredPass());
  functions.addPass(tessera::device::createFormTablesPass());
  return failed(passes.run(module)) ? llvm::createStringError("failed to lower the model to device operations")
                                    : llvm::Error::success();
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
    (*tables)->groupSize = options.groupSize;
    Step step("quantize", 1);
    auto report = tessera::codegen::quantizeModel(network, **tables,
                                                  [](size_t done, size_t total) { reportProgress(done, total); });
    if (!report) {
      return report.takeError();
    }
    factors = std::move(report->factors);
  }
  if (llvm::Error error = options.device ? lower(**module, options.requantize) : llvm::Error::success()) {
    return error;
  }
  auto inputs = readTensors(network, options, factors);
  if (!inputs) {
    return inputs.takeError();
  }
  llvm::Expected<int64_t> count = 0;
  {
    Step step("reference", *tables ? 2 : 1);
    count = evaluate(network, *inputs, options);
  }
  if (!count) {
    return count.takeError();
  }
  reportResult(llvm::json::Object{{"output", llvm::json::fixUTF8(options.output)}, {"tensors", *count}});
  return llvm::Error::success();
}

std::function<llvm::Error()> tessera::tool::addReference(CLI::App &app) {
  CLI::App *sub = app.add_subcommand("reference", "Evaluates a NAME_top.mlir with the reference evaluator");
  auto options = std::make_shared<Options>();
  sub->add_option("--mlir", options->mlir, "The module")->required();
  sub->add_option("--input", options->input, "safetensors file with one tensor per input, by name")->required();
  sub->add_option("--output", options->output, "safetensors file to write")->required();
  sub->add_flag("--device", options->device, "Lower to device operations first: the integers that every chip gives");
  sub->add_option("--requantize", options->requantize, "With --device: float, fixed or tflite, as for deploy")
      ->check(CLI::IsMember({"float", "fixed", "tflite"}));
  sub->add_flag("--int16", options->int16, "With --calibration-table: as deploy --quantize INT16, not INT8");
  sub->add_option("--quantize", options->quantize, "Quantise first, as deploy does; INT8 with a calibration table");
  sub->add_option("--calibration-table", options->calibrationTable, "NAME_cali.json");
  sub->add_option("--quantize-table", options->quantizeTable, "NAME_qtable.json: precision per op");
  sub->add_option("--group-size", options->groupSize, "Products that share a scale in W4, a multiple of 16");
  sub->add_option(
         "--isolate", options->isolate,
         "safetensors file of what tensors should be: every op reads them instead, each tensor's own value is written")
      ->excludes("--device");
  sub->add_flag("--all", options->all, "Write every named tensor, not only the outputs");
  return [options] { return run(*options); };
}
