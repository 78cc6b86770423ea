//===- Deploy.cpp - The deploy subcommand: NAME_top.mlir to .bmodel -------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Pipelines/Deploy.h"
#include "codegen/Target/IrDump.h"
#include "codegen/Target/Registry.h"
#include "codegen/tools/Contractions.h"
#include "codegen/tools/DeployReport.h"
#include "codegen/tools/Equalization.h"
#include "codegen/tools/Events.h"
#include "codegen/tools/OpenModule.h"
#include "codegen/tools/QuantTables.h"
#include "codegen/tools/Subcommand.h"
#include "top_dialect/IR/ModuleIO.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/RegularFile.h"
#include "top_dialect/IR/TensorNames.h"
#include "top_dialect/IR/Unsupported.h"
#include "top_dialect/Transforms/Passes.h"

#include "CLI/CLI.hpp"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ThreadPool.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tool;

namespace {
struct Options {
  std::string mlir;
  std::string chip = codegen::defaultHost();
  std::vector<std::string> chipSet;
  std::string hostChip;
  std::string quantize = "F32";
  std::string calibrationTable;
  std::string quantizeTable;
  int64_t groupSize = quant::kGroupSize;
  unsigned jobs = 0;
  std::string weights, replacedWeights;
  std::string dumpIr; ///< folder; empty: no dump
  std::string layers; ///< file; empty: layers are not kept
  EqualizationOptions equalization{"", "", {"conv", "matmul"}};
  codegen::DeployOptions deploy; ///< without targets and quantization, which run() derives from the other options
};

llvm::Error fail(ExitCode code, const llvm::Twine &text) { return llvm::make_error<CodedError>(code, text.str()); }

/// Handles diagnostics by ONNX name: reports warnings at once and collects errors for the final message.
class DiagnosticCollector {
public:
  explicit DiagnosticCollector(MLIRContext *context)
      : handler(context, [this](Diagnostic &diagnostic) { take(diagnostic); }) {}

  const std::string &errors() const { return text; }

private:
  void take(Diagnostic &diagnostic) {
    std::string name = top::getDisplayName(diagnostic.getLocation());
    std::string message = name.empty() ? diagnostic.str() : "'" + name + "': " + diagnostic.str();
    if (diagnostic.getSeverity() == DiagnosticSeverity::Warning) {
      reportWarning(message);
    } else if (diagnostic.getSeverity() == DiagnosticSeverity::Error) {
      text += (text.empty() ? "" : "; ") + message;
    }
  }

  std::string text;
  ScopedDiagnosticHandler handler;
};

/// Equalises a model under --observe by the statistics of its channels; returns the expected effect.
llvm::Expected<llvm::json::Object> equalize(ModuleOp module, const EqualizationOptions &options) {
  auto function = module.lookupSymbol<func::FuncOp>("main");
  if (options.statistics.empty() || !function) {
    return llvm::json::Object();
  }
  top::nameEveryTensor(function);
  PassManager passes(module.getContext());
  passes.addPass(top::createWidenFloatsPass());
  if (failed(passes.run(module))) {
    return llvm::createStringError("internal error: f16 values cannot be widened");
  }
  return equalizeByStatistics(function, options);
}

llvm::Expected<std::unique_ptr<codegen::Target>> createTarget(const std::string &name,
                                                              std::vector<std::string> fields) {
  codegen::ChipRequest request{.name = name, .fields = std::move(fields)};
  if (StringRef(name).ends_with(".json")) {
    auto file = top::readRegularFile(name);
    if (!file) {
      return fail(kError, "cannot read '" + name + "': " + llvm::toString(file.takeError()));
    }
    request.description = (*file)->getBuffer().str();
  }
  auto result = codegen::createTarget(request);
  if (!result) {
    bool isUsage = result.errorIsA<codegen::UsageError>();
    return fail(isUsage ? kUsage : kError, llvm::toString(result.takeError()));
  }
  return result;
}

using Targets = std::vector<std::unique_ptr<codegen::Target>>;

/// Returns the chip and, if it cannot run every op, a host for the rest.
llvm::Expected<Targets> createTargets(const Options &options) {
  Targets targets;
  auto chip = createTarget(options.chip, options.chipSet);
  if (!chip) {
    return chip.takeError();
  }
  targets.push_back(std::move(*chip));
  if (targets.front()->runsEverything()) {
    if (options.deploy.strict || !options.hostChip.empty()) {
      return fail(kUsage, std::string(options.deploy.strict ? "--strict" : "--host-chip") +
                              " is for chips that need a host beside them: '" + options.chip + "' does not");
    }
    return targets;
  }
  auto host = createTarget(options.hostChip.empty() ? codegen::defaultHost() : options.hostChip, {});
  if (!host) {
    return fail(kUsage, "--host-chip: " + llvm::toString(host.takeError()));
  }
  if (!(*host)->runsEverything()) {
    return fail(kUsage, "--host-chip '" + options.hostChip + "' cannot run everything that other chips cannot");
  }
  targets.push_back(std::move(*host));
  return targets;
}

llvm::Error checkChip(const codegen::Target &chip, const Options &options) {
  std::vector<std::string> known = chip.requantisations();
  if (!options.deploy.requantisation.empty() && !llvm::is_contained(known, options.deploy.requantisation)) {
    return fail(kUnsupported, "--requantize " + options.deploy.requantisation + ": " + chip.name() +
                                  " requantises in " + llvm::join(known, ", "));
  }
  if (llvm::Error error = chip.check(options.deploy.compile)) {
    ExitCode code = error.isA<codegen::UsageError>()     ? kUsage
                    : error.isA<top::UnsupportedError>() ? kUnsupported
                                                         : kError;
    return fail(code, llvm::toString(std::move(error)));
  }
  return llvm::Error::success();
}

/// Checks the flags that depend on the precision or on --observe.
llvm::Error checkFlags(quant::Precision precision, const Options &options) {
  bool integers = precision == quant::Precision::INT8 || precision == quant::Precision::INT16;
  bool instrument = options.deploy.compile.instrument;
  const quant::InputsOutputs &inputsOutputs = options.deploy.inputsOutputs;
  if (integers && options.calibrationTable.empty()) {
    return fail(kUsage, quant::toString(precision).str() +
                            " needs --calibration-table: the ranges that run_calibration measures");
  }
  if (precision == quant::Precision::F32 && !(options.calibrationTable.empty() && options.quantizeTable.empty())) {
    return fail(kUsage, "--calibration-table and --quantize-table need a precision other than F32");
  }
  if (options.groupSize < 16 || options.groupSize % 16) {
    return fail(kUsage, "--group-size " + llvm::Twine(options.groupSize) + ": allowed are multiples of 16");
  }
  if (precision != quant::Precision::F32 && instrument && !integers) {
    return fail(kUsage, "--observe is for F32, INT8 and INT16; for INT8 and INT16 it compiles the float model with "
                        "their weights and reports the storage types of tensors");
  }
  if (!instrument && !(options.weights.empty() && options.replacedWeights.empty() && options.deploy.known.empty())) {
    return fail(kUsage, "--weights, --replaced-weights and --known need --observe");
  }
  if (options.equalization.statistics.empty() != options.equalization.factors.empty() ||
      (!options.equalization.factors.empty() && !instrument)) {
    return fail(kUsage, "--channel-statistics, --factors and --observe belong together");
  }
  if (precision == quant::Precision::F32 && (inputsOutputs.quantInputs || inputsOutputs.quantOutputs)) {
    return fail(kUsage, "--quant-input and --quant-output are for quantised models");
  }
  return llvm::Error::success();
}

llvm::Expected<quant::Precision> parsePrecision(const Options &options) {
  std::optional<quant::Precision> precision = quant::parsePrecision(StringRef(options.quantize).upper());
  if (!precision) {
    return fail(kUsage, "precision '" + options.quantize + "' is not available on " + options.chip + ": allowed are " +
                            quant::precisionNames());
  }
  if (llvm::Error error = checkFlags(*precision, options)) {
    return std::move(error);
  }
  return *precision;
}

/// Writes the weights of contractions to a file, or replaces them with the weights in a file, depending on the flags.
llvm::Expected<llvm::json::Array> exchangeProducts(ModuleOp module, const Options &options) {
  llvm::json::Array products;
  auto function = module.lookupSymbol<func::FuncOp>("main");
  if (!function || (options.weights.empty() && options.replacedWeights.empty())) {
    return products;
  }
  top::nameEveryTensor(function);
  if (!options.weights.empty()) {
    llvm::Expected<llvm::json::Array> written = writeContractionWeights(function, options.weights, options.groupSize);
    if (!written) {
      return written.takeError();
    }
    products = std::move(*written);
  }
  if (!options.replacedWeights.empty()) {
    if (llvm::Error error = replaceContractionWeights(function, options.replacedWeights)) {
      return std::move(error);
    }
  }
  return products;
}

/// Adds the compiler's errors about the model's ops to |error| and chooses the exit code.
llvm::Error explain(llvm::Error error, const DiagnosticCollector &diagnostics) {
  bool rejected = error.isA<top::UnsupportedError>(), isUsage = error.isA<codegen::UsageError>();
  std::string text = llvm::toString(std::move(error));
  if (!diagnostics.errors().empty()) {
    text += ": " + diagnostics.errors();
  }
  bool internal = StringRef(text).contains("internal error");
  return fail(internal ? kInternal : rejected ? kUnsupported : isUsage ? kUsage : kError, text);
}

/// Deploys one model in one context: reads it, changes it as the flags ask, compiles it and reports on it.
class Deployment {
public:
  Deployment(const Options &options, const Targets &targets, quant::Precision precision)
      : options(options), precision(precision), deploy(options.deploy),
        threads(llvm::hardware_concurrency(options.jobs)) {
    for (const std::unique_ptr<codegen::Target> &target : targets) {
      chips.push_back(target.get());
    }
    deploy.targets = chips;
    observer.begin = reportPhase;
    observer.progress = [](const codegen::Progress &at) { reportProgress(at.done, at.total, at.part, at.parts); };
  }

  llvm::Error run();

private:
  llvm::Error instrument(ModuleOp module, llvm::json::Object &result);

  const Options &options;
  quant::Precision precision;
  std::vector<const codegen::Target *> chips;
  codegen::DeployOptions deploy;
  llvm::DefaultThreadPool threads;
  codegen::PhaseObserver observer;
};

/// Prepares a model for --observe and adds the information that calibration needs to the output.
llvm::Error Deployment::instrument(ModuleOp module, llvm::json::Object &result) {
  result["model_hash"] = top::hashModule(module);
  llvm::Expected<llvm::json::Object> equalization = equalize(module, options.equalization);
  if (!equalization) {
    return equalization.takeError();
  }
  result["equalization"] = std::move(*equalization);
  llvm::Expected<llvm::json::Array> products = exchangeProducts(module, options);
  if (!products) {
    return products.takeError();
  }
  result["products"] = std::move(*products);
  result["channels"] = describeChannels(module);
  return llvm::Error::success();
}

/// Adds the tensors and outputs of a model compiled with --observe to the output.
void describeInstrumented(const codegen::DeployResult &result, llvm::json::Object &report) {
  report["tensors"] = describe(result.instrumented);
  llvm::json::Object logits;
  for (const auto &[output, tensor] : result.logits) {
    logits[llvm::json::fixUTF8(output)] = llvm::json::fixUTF8(tensor);
  }
  report["logits"] = std::move(logits);
}

llvm::Error Deployment::run() {
  observer.begin("read");
  llvm::Expected<OpenModule> opened = openModule(options.mlir);
  if (!opened) {
    return opened.takeError();
  }
  opened->context->setThreadPool(threads);
  DiagnosticCollector diagnostics(opened->context.get());
  ModuleOp module = *opened->module;
  llvm::json::Object instrumented;
  auto quantization = loadTables(precision, options.calibrationTable, options.quantizeTable, module);
  if (!quantization) {
    return quantization.takeError();
  }
  deploy.quantization = std::move(*quantization);
  if (deploy.quantization) {
    deploy.quantization->options.groupSize = options.groupSize;
  }
  if (deploy.compile.instrument) {
    if (llvm::Error error = instrument(module, instrumented)) {
      return error;
    }
  }
  if (!options.layers.empty()) {
    deploy.compile.preserveLayers = true;
    deploy.onLowered = [&](ModuleOp lowered) { return top::writeModule(lowered, options.layers); };
  }
  codegen::IrDump dump(options.dumpIr);
  if (!options.dumpIr.empty()) {
    deploy.compile.observeIr = std::ref(dump);
  }
  llvm::Expected<codegen::DeployResult> result = codegen::deploy(module, deploy, observer);
  if (!result) {
    return explain(result.takeError(), diagnostics);
  }
  if (llvm::Error error = dump.check()) {
    return error;
  }
  llvm::json::Object report = result->isKnown ? llvm::json::Object() : describeResult(*result, deploy);
  if (deploy.compile.instrument) {
    report["forms"] = describe(result->forms);
    report["contents"] = result->contents;
    report["known"] = result->isKnown;
  }
  if (deploy.compile.instrument && !result->isKnown) {
    report["network"] = top::networkOf(module);
    report["control_flow"] = result->isSplit;
    describeInstrumented(*result, report);
    for (auto &[key, value] : instrumented) {
      report[key] = std::move(value);
    }
  }
  reportResult(std::move(report));
  return llvm::Error::success();
}

llvm::Error run(const Options &options) {
  llvm::Expected<Targets> targets = createTargets(options);
  if (!targets) {
    return targets.takeError();
  }
  llvm::Expected<quant::Precision> precision = parsePrecision(options);
  if (!precision) {
    return precision.takeError();
  }
  if (llvm::Error error = checkChip(*targets->front(), options)) {
    return error;
  }
  return Deployment(options, *targets, *precision).run();
}
/// Adds the flags that control planning for chips with local memory, and which host runs beside the chip.
void addPlanning(CLI::App &sub, Options &options) {
  sub.add_option("--opt", options.deploy.compile.opt,
                 "Planning effort for chips with local memory: 0 op by op, 1 keeps tensors in local memory from op to "
                 "op, 2 takes the best of several such plans, 3 searches for better ones")
      ->check(CLI::Range(0, 3));
  sub.add_option("--plan", options.deploy.compile.plan, "Follow this plan, in the form of 'plan' in the result");
  sub.add_option("--candidates", options.deploy.compile.candidates,
                 "List this many candidate tiles in 'plan' for each contraction without a measured tile in the cache");
  sub.add_flag("--measured", options.deploy.compile.isMeasured,
               "--plan was measured on this machine's device: the cache stores its tiles");
  sub.add_flag("--tf32", options.deploy.compile.tf32,
               "f32 contractions round their operands to TF32 (10 bits of fraction) for tensor cores");
  sub.add_flag("--strict", options.deploy.strict, "An op that the chip cannot run is an error, not run on the host");
  sub.add_option("--host-chip", options.hostChip, "The chip that runs what --chip cannot run");
  sub.add_option("--buckets", options.deploy.bucket.text,
                 "For chips that support only sizes that are numbers: the sizes to which open dims are padded, e.g. "
                 "batch=1,4,8,seq=64,128");
  sub.add_option("--bucket", options.deploy.bucket.index,
                 "With --buckets: the index of the combination of sizes to compile");
  sub.add_flag("--layers", options.deploy.compile.layers, "Report the estimate of each layer");
  sub.add_option("--keep-layers", options.layers,
                 "Also store the result of each layer outside the chip, as a tensor of the model, for inspection; "
                 "the device ops are written to this .mlir, for the reference");
}

/// Adds the flags of calibration, which observes a model's tensors and tries other weights.
void addObservation(CLI::App &sub, Options &options) {
  sub.add_option("--weights", options.weights,
                 "With --observe: also write the weights of convolutions and matmuls here");
  sub.add_option("--replaced-weights", options.replacedWeights,
                 "With --observe: f32 weights in place of the model's, as --weights writes them");
  sub.add_flag("--observe", options.deploy.compile.instrument,
               "Keep every float tensor of the Top module in separate memory and list them, for calibration");
  sub.add_option("--known", options.deploy.known,
                 "With --observe: models, by 'contents' in the result, for which no .bmodel is written")
      ->delimiter(',');
  EqualizationOptions &equalization = options.equalization;
  sub.add_option("--channel-statistics", equalization.statistics,
                 "With --observe: equalise channels by these; TENSOR:low, :high and :power, f32 vectors (safetensors)");
  sub.add_option("--factors", equalization.factors, "With --channel-statistics: also write the factors here");
  sub.add_option("--equalize", equalization.kinds,
                 "With --channel-statistics: kinds of ops whose inputs are equalised, conv or matmul")
      ->delimiter(',')
      ->check(CLI::IsMember({"conv", "matmul"}));
}
} // namespace

std::function<llvm::Error()> tessera::tool::addDeploy(CLI::App &app) {
  CLI::App *sub = app.add_subcommand("deploy", "NAME_top.mlir to a .bmodel");
  auto options = std::make_shared<Options>();
  codegen::DeployOptions &deploy = options->deploy;
  codegen::CompileOptions &compile = deploy.compile;
  sub->add_option("--mlir", options->mlir, "NAME_top.mlir, with its weights beside it")->required();
  sub->add_option("--chip", options->chip,
                  llvm::join(codegen::knownChips(), ", ") + " or the path of a chip description (.json); '" +
                      codegen::defaultHost() + "' is this machine");
  sub->add_option("--chip-set", options->chipSet,
                  "Change a field of the chip's description, if it has one: memories.ddr.gbps=8");
  sub->add_option("--quantize", options->quantize, quant::precisionNames());
  sub->add_option("--calibration-table", options->calibrationTable,
                  "NAME_cali.json: required for INT8 and INT16; F16 uses it to find tensors beyond its range");
  sub->add_option("--quantize-table", options->quantizeTable, "NAME_qtable.json: precision per op");
  sub->add_option("--group-size", options->groupSize, "Weights that share a scale in W4, a multiple of 16");
  sub->add_option(
         "--requantize", deploy.requantisation,
         "How integer sums become narrow integers: float, fixed or tflite; by default the chip's preferred mode")
      ->check(CLI::IsMember({"float", "fixed", "tflite"}));
  sub->add_option("--output", deploy.output, "The .bmodel")->required();
  sub->add_option_function<std::string>(
      "--cache-dir", [&compile](const std::string &text) { compile.cacheFolder = text == "none" ? "" : text; },
      "Folder of compiled kernels, or none");
  sub->add_option("--jobs", options->jobs, "Threads that compile, 0: one per core");
  sub->add_option("--device-mlir", deploy.deviceMlir, "Also write the device IR to this file");
  sub->add_option("--dump-ir", options->dumpIr,
                  "Also write the IR after every pass to this folder, as input for tessera-opt");
  sub->add_flag("--quant-input", deploy.inputsOutputs.quantInputs, "Make inputs that integer ops read integers");
  sub->add_flag("--quant-output", deploy.inputsOutputs.quantOutputs, "Make f32 outputs with a range integers");
  sub->add_option(
      "--pixels", deploy.inputsOutputs.pixels,
      "Make inputs with pre-processing u8 pixels: packed or planar, with rgb_ or bgr_ before it for another order");
  addPlanning(*sub, *options);
  addObservation(*sub, *options);
  return [options] { return run(*options); };
}
