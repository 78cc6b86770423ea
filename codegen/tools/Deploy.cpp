//===- Deploy.cpp - The deploy subcommand: NAME_top.mlir to .bmodel --------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Pipelines/NpuDeploy.h"
#include "codegen/Pipelines/X86Deploy.h"
#include "codegen/X86/KernelCache.h"
#include "codegen/tools/Equalization.h"
#include "codegen/tools/Events.h"
#include "codegen/tools/NpuPlanFile.h"
#include "codegen/tools/Products.h"
#include "codegen/tools/QuantTables.h"
#include "codegen/tools/Subcommand.h"
#include "top_dialect/IR/ModuleIO.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/RegularFile.h"
#include "top_dialect/IR/TensorNames.h"
#include "top_dialect/IR/Unsupported.h"
#include "top_dialect/Transforms/Passes.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ThreadPool.h"
#include <cmath>

using namespace mlir;
using namespace tessera;
using namespace tessera::tool;

namespace {
struct Options {
  std::string mlir;
  std::string chip = "x86";
  std::vector<std::string> chipSet;
  unsigned opt = 2;
  std::string plan;
  bool layers = false;
  bool strict = false;
  std::string hostChip = "x86";
  std::string quantize = "F32";
  std::string output;
  std::string cacheFolder;
  std::string deviceMlir;
  std::string calibrationTable;
  std::string quantizeTable;
  std::string requantize = "float";
  int64_t groupSize = quant::kGroupSize;
  unsigned jobs = 0;
  std::string weights, replacedWeights;
  bool observe = false;
  EqualizationOptions equalization{"", "", {"conv", "matmul"}};
  quant::InputsOutputs inputsOutputs;
};

llvm::Error fail(ExitCode code, const llvm::Twine &text) { return llvm::make_error<CodedError>(code, text.str()); }

/// Diagnostics by ONNX name: warnings are reported at once, errors collected for the final message.
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

llvm::json::Array describe(ArrayRef<codegen::ObservedTensor> tensors) {
  llvm::json::Array list;
  for (const codegen::ObservedTensor &tensor : tensors) {
    list.push_back(llvm::json::Object{{"name", llvm::json::fixUTF8(tensor.name)},
                                      {"op", tensor.op},
                                      {"shape", llvm::json::Array(tensor.shape)},
                                      {"constant", tensor.isConstant},
                                      {"source", llvm::json::fixUTF8(tensor.source)}});
  }
  return list;
}

/// Along which of their dims the tensors that products read and make have their channels.
llvm::json::Object describeChannels(ModuleOp module) {
  llvm::json::Object axes;
  auto function = module.lookupSymbol<func::FuncOp>("main");
  if (!function) {
    return axes;
  }
  for (Operation &op : function.getBody().front()) {
    if (std::optional<quant::ProductChannels> product = quant::productChannels(&op)) {
      for (auto [value, axis] : {std::pair<Value, int64_t>(op.getOperand(0), product->inputAxis),
                                 std::pair<Value, int64_t>(op.getResult(0), product->outputAxis)}) {
        if (StringRef name = top::getTensorName(value); !name.empty()) {
          axes[llvm::json::fixUTF8(name)] = axis;
        }
      }
    }
  }
  return axes;
}

struct Npu {
  bmodel::npu::Chip chip;
  std::string description;
};

struct Target {
  x86::X86Target chip; ///< with |npu| its host
  std::optional<Npu> npu;
  quant::Precision precision;
};

/// A built-in chip, or that of a file, with the fields of --chip-set changed.
llvm::Expected<std::optional<Npu>> parseNpu(const Options &options) {
  Npu npu;
  if (std::optional<std::string> known = codegen::findNpuChip(options.chip)) {
    npu.description = *known;
  } else if (StringRef(options.chip).ends_with(".json")) {
    auto file = top::readRegularFile(options.chip);
    if (!file) {
      return fail(kError, "cannot read '" + options.chip + "': " + llvm::toString(file.takeError()));
    }
    npu.description = (*file)->getBuffer().str();
  } else if (!options.chipSet.empty()) {
    return fail(kUsage, "--chip-set is for NPUs: '" + options.chip + "' is none");
  } else {
    return std::nullopt;
  }
  std::string error;
  for (const std::string &assignment : options.chipSet) {
    if (!bmodel::npu::setField(npu.description, assignment, error)) {
      return fail(kUsage, "--chip-set " + error);
    }
  }
  if (!bmodel::npu::parseChip(npu.description, options.chip, npu.chip, error)) {
    return fail(options.chipSet.empty() ? kError : kUsage, error);
  }
  return npu;
}

llvm::Expected<Target> parseTarget(const Options &options) {
  llvm::Expected<std::optional<Npu>> npu = parseNpu(options);
  if (!npu) {
    return npu.takeError();
  }
  std::optional<x86::X86Target> target = x86::X86Target::parse(*npu ? options.hostChip : options.chip);
  if (!target && *npu) {
    return fail(kUsage, "unknown --host-chip '" + options.hostChip +
                            "': allowed are x86, x86-v2, x86-avx2, "
                            "x86-avx512, x86-avx512vnni");
  }
  if (!*npu && (options.strict || options.hostChip != "x86")) {
    return fail(kUsage, std::string(options.strict ? "--strict" : "--host-chip") + " is for NPUs: '" + options.chip +
                            "' is none");
  }
  if (!target) {
    return fail(kUsage, "unknown chip '" + options.chip +
                            "': allowed are x86, x86-v2, x86-avx2, x86-avx512, x86-avx512vnni, npu-edge, npu-base, "
                            "npu-pro and the path of an NPU's .json");
  }
  std::optional<quant::Precision> precision = quant::parsePrecision(StringRef(options.quantize).upper());
  if (!precision) {
    return fail(kUsage, "precision '" + options.quantize + "' is not available on " + options.chip + ": allowed are " +
                            quant::precisionNames());
  }
  bool integers = precision == quant::Precision::INT8 || precision == quant::Precision::INT16;
  if (*npu && options.requantize != "float" && options.requantize != (*npu)->chip.requantise) {
    return fail(kUnsupported, "--requantize " + options.requantize + ": " + (*npu)->chip.name + " requantises in " +
                                  (*npu)->chip.requantise);
  }
  if (*npu && options.observe) {
    return fail(kUnsupported, "--observe is for x86: NPUs do not show what they compute");
  }
  if (integers && options.calibrationTable.empty()) {
    return fail(kUsage, quant::toString(*precision).str() +
                            " needs --calibration-table: the ranges that run_calibration measures");
  }
  if (precision == quant::Precision::F32 && !(options.calibrationTable.empty() && options.quantizeTable.empty())) {
    return fail(kUsage, "--calibration-table and --quantize-table are for precisions other than F32");
  }
  if (options.groupSize < 16 || options.groupSize % 16) {
    return fail(kUsage, "--group-size " + llvm::Twine(options.groupSize) + ": allowed are multiples of 16");
  }
  if (precision != quant::Precision::F32 && options.observe) {
    return fail(kUsage, "--observe is for F32: it shows what the ranges are measured on");
  }
  if (!options.observe && !(options.weights.empty() && options.replacedWeights.empty())) {
    return fail(kUsage, "--weights and --replaced-weights are for --observe");
  }
  if (options.equalization.statistics.empty() != options.equalization.factors.empty() ||
      (!options.equalization.factors.empty() && !options.observe)) {
    return fail(kUsage, "--channel-statistics, --factors and --observe belong together");
  }
  if (precision == quant::Precision::F32 && (options.inputsOutputs.quantInputs || options.inputsOutputs.quantOutputs)) {
    return fail(kUsage, "--quant-input and --quant-output are for quantised models");
  }
  return Target{*target, std::move(*npu), *precision};
}

llvm::json::Array describe(ArrayRef<quant::KeptOp> ops) {
  llvm::json::Array list;
  for (const quant::KeptOp &op : ops) {
    list.push_back(llvm::json::Object{{"name", llvm::json::fixUTF8(op.name)},
                                      {"op", op.op},
                                      {"reason", llvm::json::fixUTF8(op.reason)},
                                      {"products", op.products}});
  }
  return list;
}

llvm::json::Object describe(const quant::QuantizeReport &report) {
  llvm::json::Array ops;
  for (const quant::DecidedOp &op : report.ops) {
    ops.push_back(llvm::json::Object{{"name", llvm::json::fixUTF8(op.name)},
                                     {"op", op.op},
                                     {"type", quant::toString(op.precision)},
                                     {"moves", op.moves},
                                     {"products", op.products},
                                     {"weights", op.weights},
                                     {"reads", op.reads},
                                     {"writes", op.writes}});
  }
  return llvm::json::Object{{"ops", std::move(ops)},
                            {"float_inputs_outputs", llvm::json::Array(report.floatInputsOutputs)},
                            {"learned_weights", report.learnedWeights},
                            {"integer_ops", report.integerOps},
                            {"narrow_ops", report.narrowOps},
                            {"narrow_products", report.narrowProducts},
                            {"weight_ops", report.weightOps},
                            {"weight_products", report.weightProducts},
                            {"products", report.products},
                            {"integer_products", report.integerProducts},
                            {"wide_products", report.wideProducts},
                            {"wide_ops", describe(report.wide)},
                            {"float_ops", describe(report.kept)}};
}

/// The model that is observed gets the factors that suit its statistics; what was expected of them.
llvm::Expected<llvm::json::Object> equalize(ModuleOp module, const EqualizationOptions &options) {
  auto function = module.lookupSymbol<func::FuncOp>("main");
  if (options.statistics.empty() || !function) {
    return llvm::json::Object();
  }
  top::nameEveryTensor(function);
  PassManager passes(module.getContext());
  passes.addPass(top::createWidenFloatsPass());
  if (failed(passes.run(module))) {
    return llvm::createStringError("failed to widen f16 values");
  }
  return equalizeByStatistics(function, options);
}

double micro(double seconds) { return std::round(seconds * 1e9) / 1e3; }

/// Which part of the model runs where, and why. Times of the host are those of a model.
llvm::json::Object describePartition(const codegen::NpuDeployResult &result) {
  llvm::json::Array subnets, ops;
  int64_t products = 0, onNpu = 0;
  double npuSeconds = 0, hostSeconds = 0;
  for (const codegen::SubnetResult &subnet : result.subnets) {
    products += subnet.products, onNpu += subnet.onHost ? 0 : subnet.products;
    (subnet.onHost ? hostSeconds : npuSeconds) += subnet.seconds;
    subnets.push_back(llvm::json::Object{{"name", subnet.name},
                                         {"device", subnet.onHost ? "host" : "npu"},
                                         {"ops", int64_t(subnet.ops)},
                                         {"products", subnet.products},
                                         {"input_bytes", int64_t(subnet.inputBytes)},
                                         {"output_bytes", int64_t(subnet.outputBytes)},
                                         {"microseconds", micro(subnet.seconds)}});
  }
  for (const codegen::HostOpResult &op : result.hostOps) {
    ops.push_back(llvm::json::Object{{"name", llvm::json::fixUTF8(op.name)},
                                     {"op", op.op},
                                     {"subnet", op.subnet},
                                     {"reason", llvm::json::fixUTF8(op.reason)},
                                     {"refused", op.isRefused},
                                     {"products", op.products}});
  }
  return llvm::json::Object{{"subnets", std::move(subnets)},
                            {"host_ops", std::move(ops)},
                            {"products", products},
                            {"npu_products", onNpu},
                            {"transferred_bytes", int64_t(result.transferredBytes)},
                            {"npu_microseconds", micro(npuSeconds)},
                            {"host_microseconds", micro(hostSeconds)},
                            {"hand_over_microseconds", micro(result.handOverSeconds)},
                            {"total_microseconds", micro(npuSeconds + hostSeconds + result.handOverSeconds)}};
}

/// Nodes that make engines differ, null where the model promises no bits.
llvm::json::Value describeExactness(const std::optional<std::vector<std::string>> &exceptions) {
  return exceptions ? llvm::json::Value(llvm::json::Array(*exceptions)) : nullptr;
}

/// What the user is told of a model for an NPU.
llvm::Expected<llvm::json::Object> deployNpu(ModuleOp module, const Npu &npu, const x86::X86Target &host,
                                             const Options &options, std::optional<codegen::Quantization> quantization,
                                             const codegen::PhaseObserver &observer) {
  std::optional<npu::Decisions> plan;
  if (!options.plan.empty()) {
    llvm::Expected<npu::Decisions> read = readPlan(options.plan);
    if (!read) {
      return read.takeError();
    }
    plan = std::move(*read);
  }
  codegen::NpuDeployOptions deploy{.chip = npu.chip,
                                   .description = npu.description,
                                   .output = options.output,
                                   .deviceMlir = options.deviceMlir,
                                   .quantization = std::move(quantization),
                                   .inputsOutputs = options.inputsOutputs,
                                   .opt = options.opt,
                                   .plan = std::move(plan),
                                   .strict = options.strict,
                                   .host = host,
                                   .cacheFolder = options.cacheFolder};
  llvm::Expected<codegen::NpuDeployResult> result = codegen::deployNpu(module, deploy, observer);
  if (!result) {
    return result.takeError();
  }
  llvm::Expected<llvm::json::Value> report =
      llvm::json::parse(bmodel::npu::reportJson(result->report, npu.chip, result->layers));
  if (!report) {
    return report.takeError();
  }
  if (!options.layers) {
    report->getAsObject()->erase("layers");
  }
  llvm::json::Object told{{"bmodel", llvm::json::fixUTF8(options.output)},
                          {"chip", npu.chip.name},
                          {"workspace_bytes", int64_t(result->workspaceBytes)},
                          {"workspace_lower_bound", int64_t(result->workspaceLowerBound)},
                          {"code_bytes", int64_t(result->codeBytes)},
                          {"constant_bytes", int64_t(result->constantBytes)},
                          {"commands", int64_t(result->commands)},
                          {"local_peak_bytes", int64_t(result->localPeak)},
                          {"plan", describePlan(result->plan)},
                          {"partition", describePartition(*result)},
                          {"estimate", std::move(*report)}};
  told["bit_equal_except"] = describeExactness(result->exceptions);
  if (result->quantization) {
    told["quantization"] = describe(*result->quantization);
  }
  return told;
}

llvm::Error run(const Options &options) {
  auto target = parseTarget(options);
  if (!target) {
    return target.takeError();
  }
  DialectRegistry registry;
  codegen::registerX86Deploy(registry);
  npu::registerNpuModels(registry);
  llvm::DefaultThreadPool threads(llvm::hardware_concurrency(options.jobs));
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.setThreadPool(threads);
  context.loadAllAvailableDialects();
  DiagnosticCollector diagnostics(&context);
  std::optional<Step> step;
  int index = 0;
  codegen::PhaseObserver observer;
  observer.begin = [&](StringRef name) { step.emplace(name, ++index); };
  observer.end = [&] { step.reset(); };
  observer.progress = [](const codegen::Progress &at) { reportProgress(at.done, at.total, at.part, at.parts); };

  observer.begin("read");
  llvm::Expected<OwningOpRef<ModuleOp>> module = top::readModule(options.mlir, context);
  observer.end();
  if (!module) {
    return module.takeError();
  }
  std::string hash = options.observe ? top::hashModule(**module) : "";
  auto quantization = loadTables(target->precision, options.calibrationTable, options.quantizeTable, **module);
  if (!quantization) {
    return quantization.takeError();
  }
  if (*quantization) {
    (*quantization)->groupSize = options.groupSize;
  }
  llvm::Expected<llvm::json::Object> equalization = equalize(**module, options.equalization);
  if (!equalization) {
    return equalization.takeError();
  }
  llvm::json::Array products;
  if (auto function = (**module).lookupSymbol<func::FuncOp>("main"); function && !options.weights.empty()) {
    top::nameEveryTensor(function);
    llvm::Expected<llvm::json::Array> written = writeProducts(function, options.weights, options.groupSize);
    if (!written) {
      return written.takeError();
    }
    products = std::move(*written);
  }
  if (auto function = (**module).lookupSymbol<func::FuncOp>("main"); function && !options.replacedWeights.empty()) {
    top::nameEveryTensor(function);
    if (llvm::Error error = replaceProducts(function, options.replacedWeights)) {
      return error;
    }
  }
  llvm::json::Object channels = options.observe ? describeChannels(**module) : llvm::json::Object();
  auto explain = [&](llvm::Error error) {
    bool refused = error.isA<top::UnsupportedError>();
    std::string text = llvm::toString(std::move(error));
    if (!diagnostics.errors().empty()) {
      text += ": " + diagnostics.errors();
    }
    bool internal = StringRef(text).contains("internal error");
    return fail(internal ? kInternal : refused ? kUnsupported : kError, text);
  };
  if (target->npu) {
    llvm::Expected<llvm::json::Object> told =
        deployNpu(**module, *target->npu, target->chip, options, std::move(*quantization), observer);
    if (!told) {
      return explain(told.takeError());
    }
    reportResult(std::move(*told));
    return llvm::Error::success();
  }
  codegen::X86DeployOptions deploy{target->chip,          options.output,    options.cacheFolder,
                                   options.deviceMlir,    options.observe,   std::move(*quantization),
                                   options.inputsOutputs, options.requantize};
  llvm::Expected<codegen::X86DeployResult> result = codegen::deployX86(**module, deploy, observer);
  if (!result) {
    return explain(result.takeError());
  }
  llvm::json::Object object{{"bmodel", llvm::json::fixUTF8(options.output)},
                            {"chip", target->chip.name()},
                            {"workspace_bytes", int64_t(result->workspaceBytes)},
                            {"workspace_lower_bound", int64_t(result->workspaceLowerBound)},
                            {"code_bytes", int64_t(result->codeBytes)},
                            {"constant_bytes", int64_t(result->constantBytes)},
                            {"steps", int64_t(result->steps)},
                            {"kernels", int64_t(result->kernels)},
                            {"cache_hits", int64_t(result->cacheHits)}};
  object["bit_equal_except"] = describeExactness(result->exceptions);
  if (result->quantization) {
    object["quantization"] = describe(*result->quantization);
  }
  if (options.observe) {
    object["model_hash"] = hash;
    object["network"] = top::networkOf(**module);
    object["tensors"] = describe(result->observed);
    object["products"] = std::move(products);
    object["channels"] = std::move(channels);
    object["equalization"] = std::move(*equalization);
  }
  reportResult(std::move(object));
  return llvm::Error::success();
}
} // namespace

std::function<llvm::Error()> tessera::tool::addDeploy(CLI::App &app) {
  CLI::App *sub = app.add_subcommand("deploy", "NAME_top.mlir to a .bmodel");
  auto options = std::make_shared<Options>();
  options->cacheFolder = x86::KernelCache::defaultFolder();
  sub->add_option("--mlir", options->mlir, "NAME_top.mlir, its weights beside it")->required();
  sub->add_option("--chip", options->chip,
                  "x86 (this machine), x86-v2, x86-avx2, x86-avx512, x86-avx512vnni, npu-edge, npu-base, npu-pro or an "
                  "NPU's .json");
  sub->add_option("--chip-set", options->chipSet, "Change a field of an NPU's description: memories.ddr.gbps=8");
  sub->add_option("--quantize", options->quantize, quant::precisionNames());
  sub->add_option("--calibration-table", options->calibrationTable,
                  "NAME_cali.json: needed for INT8, tells F16 what it cannot hold");
  sub->add_option("--quantize-table", options->quantizeTable, "NAME_qtable.json: precision per op");
  sub->add_option("--group-size", options->groupSize, "Products that share a scale in W4, a multiple of 16");
  sub->add_option("--requantize", options->requantize,
                  "How integer sums become integers of few bits: float, fixed or tflite")
      ->check(CLI::IsMember({"float", "fixed", "tflite"}));
  sub->add_option("--output", options->output, "The .bmodel")->required();
  sub->add_option("--cache-dir", options->cacheFolder, "Folder of compiled kernels, or none")
      ->transform([](const std::string &text) { return text == "none" ? std::string() : text; });
  sub->add_option("--jobs", options->jobs, "Threads that compile, 0: one per core");
  sub->add_option("--device-mlir", options->deviceMlir, "Also write the device IR to this file");
  sub->add_option("--weights", options->weights,
                  "With --observe: also write the weights of convolutions and matmuls here");
  sub->add_option("--opt", options->opt,
                  "On NPUs: 0 op by op, 1 keeps tensors in local memory from op to op, 2 takes the best of "
                  "several such plans, 3 searches for better ones")
      ->check(CLI::Range(0, 3));
  sub->add_option("--plan", options->plan, "On NPUs: follow this plan, as 'plan' in the result tells it");
  sub->add_flag("--strict", options->strict, "On NPUs: what the chip cannot run is an error; else it runs on the host");
  sub->add_option("--host-chip", options->hostChip, "On NPUs: the x86 variant that runs what they cannot");
  sub->add_flag("--layers", options->layers, "On NPUs: tell the estimate of each layer");
  sub->add_option("--replaced-weights", options->replacedWeights,
                  "With --observe: f32 weights in place of the model's, as --weights writes them");
  sub->add_flag("--quant-input", options->inputsOutputs.quantInputs, "Inputs that integer ops read are integers");
  sub->add_flag("--quant-output", options->inputsOutputs.quantOutputs, "f32 outputs with a range are integers");
  sub->add_option(
      "--pixels", options->inputsOutputs.pixels,
      "Inputs with pre-processing are u8 pixels: packed or planar, with rgb_ or bgr_ before it for another order");
  sub->add_flag("--observe", options->observe,
                "Keep every float tensor of the Top module in memory of its own and list them: for calibration");
  EqualizationOptions &equalization = options->equalization;
  sub->add_option(
      "--channel-statistics", equalization.statistics,
      "With --observe: equalise channels by these; TENSOR:low, :high and :power, f32 vectors (safetensors)");
  sub->add_option("--factors", equalization.factors, "With --channel-statistics: also write the factors here");
  sub->add_option("--equalize", equalization.kinds, "With --channel-statistics: the inputs of what, conv or matmul")
      ->delimiter(',')
      ->check(CLI::IsMember({"conv", "matmul"}));
  return [options] { return run(*options); };
}
