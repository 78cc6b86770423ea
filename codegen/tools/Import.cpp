//===- Import.cpp - The import subcommand: ONNX to NAME_top.mlir ----------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/tools/Events.h"
#include "codegen/tools/FinishImport.h"
#include "codegen/tools/ModuleInfo.h"
#include "codegen/tools/Subcommand.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "top_dialect/IR/Json.h"
#include "top_dialect/IR/State.h"
#include "top_dialect/IR/TensorNames.h"
#include "top_dialect/IR/TopCustomOps.h"
#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/Import/Onnx/OnnxImport.h"
#include "top_dialect/Import/StatePairs.h"
#include "top_dialect/Import/Tflite/TfliteImport.h"

#include "CLI/CLI.hpp"
#include "llvm/Support/Base64.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <set>

using namespace mlir;
using namespace tessera::tool;
using namespace tessera::top;

namespace {
struct Options {
  std::string onnx;
  std::string output;
  std::string inputShapes;
  std::string dims;
  std::vector<std::string> inputValues;
  std::vector<std::string> states;
  double memoryLimit = 0; // GiB
  bool fixedShapes = false;
  std::string modelName;
  std::string preprocess;
  std::string outputs;
  bool noOptimise = false;
};
} // namespace

template <typename... Args>
static llvm::Error fail(ExitCode code, const char *format, Args &&...args) {
  return llvm::make_error<CodedError>(code, llvm::formatv(format, std::forward<Args>(args)...).str());
}

// Returns true if an input of |type| takes images of the pre-processing |record|: rank 4 with as many channels.
static bool takesPictures(RankedTensorType type, const llvm::json::Object &record) {
  if (type.getRank() != 4 || !isa<FloatType>(type.getElementType())) {
    return false;
  }
  int64_t channels = record.getString("pixel_format") == "gray" ? 1 : 3;
  int64_t dim = type.getDimSize(record.getString("channel_format") == "nhwc" ? 3 : 1);
  return dim == channels || ShapedType::isDynamic(dim);
}

// Stores the pre-processing at every input that takes images; other inputs are plain tensors.
static llvm::Error attachPreprocess(ModuleOp module, StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer) {
    return fail(kError, "cannot read the pre-processing '{0}': {1}", path, buffer.getError().message());
  }
  StringRef text = (*buffer)->getBuffer().trim();
  auto json = parseJson(text);
  if (!json || !json->getAsObject()) {
    llvm::consumeError(json.takeError());
    return fail(kError, "the pre-processing '{0}' is not a JSON object", path);
  }
  auto function = module.lookupSymbol<func::FuncOp>("main");
  bool stored = false;
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes())) {
    if (!isStateArgument(function, i) && takesPictures(cast<RankedTensorType>(type), *json->getAsObject())) {
      function.setArgAttr(i, TopDialect::kPreprocessAttr, StringAttr::get(module.getContext(), text));
      stored = true;
    }
  }
  return stored ? llvm::Error::success()
                : fail(kError,
                       "pre-processing is given, but no input takes such pictures: a float tensor of rank 4 with 3 "
                       "channels, or with 1 for gray pictures");
}

// Warns of outputs with more entries than the network computes.
static void warnOfPadding(ModuleOp module) {
  auto function = module.lookupSymbol<func::FuncOp>("main");
  for (auto [i, type] : llvm::enumerate(function.getResultTypes())) {
    if (auto axis = function.getResultAttrOfType<IntegerAttr>(i, kPaddedAxisAttr)) {
      auto name = function.getResultAttrOfType<StringAttr>(i, TopDialect::kNameAttr);
      reportWarning(
          llvm::formatv("the size of output '{0}' along axis {1} is known at run time only: the output always has "
                        "the largest size, {2}; entries after the real ones hold {3}",
                        name.getValue(), axis.getInt(), cast<RankedTensorType>(type).getDimSize(axis.getInt()),
                        kPadding)
              .str());
    }
  }
}

/// Returns the custom operators of the module, e.g. "com.example::SortBy".
static llvm::json::Array listCustomOps(ModuleOp module) {
  std::set<std::string> names;
  module.walk([&](CustomOp op) { names.insert((op.getOpDomain() + "::" + op.getOpName()).str()); });
  return llvm::json::Array(names);
}

/// Inputs that differ from the file, for the result: inputs that became constants, with their bytes in base 64, inputs
/// whose open batch became 1, and the ranges of open dims.
struct ChangedInputs {
  llvm::json::Array fixed;
  llvm::json::Array assumed;
  llvm::json::Array opened;
};

static llvm::Expected<OwningOpRef<ModuleOp>> importModel(const Options &options, MLIRContext &context,
                                                         ChangedInputs &changed) {
  ImportOptions importOptions;
  importOptions.modelName = options.modelName;
  if (!options.inputShapes.empty()) {
    auto shapes = InputShapes::parse(options.inputShapes);
    if (!shapes) {
      return fail(kUsage, "{0}", llvm::toString(shapes.takeError()));
    }
    importOptions.inputShapes = std::move(*shapes);
  }
  if (!options.dims.empty()) {
    auto ranges = DimRanges::parse(options.dims);
    if (!ranges) {
      return fail(kUsage, "{0}", llvm::toString(ranges.takeError()));
    }
    importOptions.dims = std::move(*ranges);
  }
  for (const std::string &values : options.inputValues) {
    if (llvm::Error error = importOptions.inputValues.parse(values)) {
      return fail(kUsage, "{0}", llvm::toString(std::move(error)));
    }
  }
  importOptions.requireStatic = options.fixedShapes;
  importOptions.memoryLimit = static_cast<int64_t>(options.memoryLimit * (1 << 30));
  importOptions.warn = reportWarning;
  importOptions.fixed = [&](StringRef name, RankedTensorType type, ArrayRef<char> bytes) {
    changed.fixed.push_back(llvm::json::Object{{"name", llvm::json::fixUTF8(name)},
                                               {"dtype", numpyName(type.getElementType())},
                                               {"shape", llvm::json::Array(type.getShape())},
                                               {"base64", llvm::encodeBase64(bytes)}});
  };
  importOptions.assumed = [&](StringRef name, ArrayRef<int64_t> shape) {
    changed.assumed.push_back(
        llvm::json::Object{{"name", llvm::json::fixUTF8(name)}, {"shape", llvm::json::Array(shape)}});
  };
  importOptions.opened = [&](StringRef name, const DimRange &range) {
    changed.opened.push_back(llvm::json::Object{{"name", llvm::json::fixUTF8(name)},
                                                {"min", range.min},
                                                {"max", range.max},
                                                {"divisor", range.divisor},
                                                {"likely", range.likely}});
  };
  SmallVector<StringRef> outputs;
  StringRef(options.outputs).split(outputs, ',', -1, /*KeepEmpty=*/false);
  for (StringRef output : outputs) {
    importOptions.outputs.push_back(output.trim().str());
  }
  reportPhase("import");
  bool isTflite = llvm::sys::path::extension(options.onnx).equals_insensitive(".tflite");
  return isTflite ? importTflite(options.onnx, importOptions, context)
                  : importOnnx(options.onnx, importOptions, context);
}

/// Makes the inputs and outputs that the user named states, or those that look like states for "auto". Returns those
/// that look like states but stay inputs and outputs.
static llvm::Expected<std::vector<StatePair>> makeStates(ModuleOp module, ArrayRef<std::string> texts) {
  auto function = module.lookupSymbol<func::FuncOp>("main");
  std::vector<StatePair> wanted;
  bool findsOthers = true;
  for (const std::string &text : texts) {
    if (text == "auto" || text == "none") {
      findsOthers = false;
      llvm::append_range(wanted, text == "auto" ? findStatePairs(function) : std::vector<StatePair>());
      continue;
    }
    auto pairs = parseStatePairs(text);
    if (!pairs) {
      return fail(kUsage, "{0}", llvm::toString(pairs.takeError()));
    }
    llvm::append_range(wanted, *pairs);
  }
  if (llvm::Error error = markStates(function, wanted)) {
    return fail(kUsage, "{0}", llvm::toString(std::move(error)));
  }
  std::vector<StatePair> others;
  for (const StatePair &pair : findsOthers ? findStatePairs(function) : std::vector<StatePair>()) {
    if (!llvm::is_contained(llvm::make_first_range(wanted), pair.first)) {
      others.push_back(pair);
    }
  }
  return others;
}

static llvm::Error run(const Options &options) {
  DialectRegistry registry;
  registry.insert<func::FuncDialect, TopDialect>();
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  ChangedInputs changed;
  auto module = importModel(options, context, changed);
  if (!module) {
    return module.takeError();
  }
  auto others = makeStates(**module, options.states);
  if (!others) {
    return others.takeError();
  }
  if (!options.preprocess.empty()) {
    if (llvm::Error error = attachPreprocess(**module, options.preprocess)) {
      return error;
    }
  }
  warnOfPadding(**module);
  auto object = finishImport(**module, options.output, !options.noOptimise);
  if (!object) {
    return object.takeError();
  }
  llvm::json::Array candidates;
  for (const auto &[input, output] : *others) {
    candidates.push_back(llvm::json::fixUTF8(input + "=" + output));
  }
  (*object)["state_candidates"] = std::move(candidates);
  if (!changed.fixed.empty()) {
    (*object)["fixed"] = std::move(changed.fixed);
  }
  if (!changed.assumed.empty()) {
    (*object)["assumed"] = std::move(changed.assumed);
  }
  if (!changed.opened.empty()) {
    (*object)["dims"] = std::move(changed.opened);
  }
  if (llvm::json::Array custom = listCustomOps(**module); !custom.empty()) {
    (*object)["custom_ops"] = std::move(custom);
  }
  reportResult(std::move(*object));
  return llvm::Error::success();
}

std::function<llvm::Error()> tessera::tool::addImport(CLI::App &app) {
  CLI::App *sub = app.add_subcommand("import", "ONNX or TFLite to NAME_top.mlir with its weights");
  auto options = std::make_shared<Options>();
  sub->add_option("--onnx", options->onnx, "The .onnx or .tflite file")->required();
  sub->add_option("--output", options->output, "NAME_top.mlir; NAME_weights.safetensors is written beside it")
      ->required();
  sub->add_option("--input-shapes", options->inputShapes,
                  "x=1x3x224x224,y=1x8,z=scalar; 1x3x224x224,1x8 or [[1,3,224,224],[1,8]] in the order of the inputs");
  sub->add_option(
      "--dims", options->dims,
      "batch=1..8,h=32..1280:32,seq=1..2048~128: ranges of open dims, by name or INPUT.AXIS, with a divisor "
      "and a likely size; auto: usual ranges for all");
  sub->add_option("--input-values", options->inputValues,
                  "sr=16000 or x=[1,2,3],flag=true: inputs that become constants");
  sub->add_option("--state", options->states,
                  "h_in=h_out,c_in=c_out: an input that becomes a state, and the output that is its value in the next "
                  "run; auto: all inputs and outputs whose names and types fit; none: do not report these");
  sub->add_flag("--fixed-shapes", options->fixedShapes,
                "Reject inputs with open dims, except for an open batch, which becomes 1; the error proposes sizes");
  sub->add_option("--memory-limit", options->memoryLimit,
                  "GiB that one tensor, and all constants computed here together, may take (default: a tensor: this "
                  "machine's memory; constants: 2 GiB and four times the file's own)")
      ->check(CLI::PositiveNumber);
  sub->add_option("--model-name", options->modelName, "Default: the graph's name");
  sub->add_option("--preprocess", options->preprocess, "JSON file to store at the inputs that take pictures");
  sub->add_option("--output-names,--outputs", options->outputs, "Tensors to keep as outputs, comma-separated");
  sub->add_flag("--no-optimise", options->noOptimise, "Write the imported graph as it is");
  return [options] { return run(*options); };
}
