//===- ImportDecoder.cpp - The import-decoder subcommand: a language model to NAME_top.mlir ---===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/tools/Events.h"
#include "codegen/tools/FinishImport.h"
#include "codegen/tools/Subcommand.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "top_dialect/IR/Json.h"
#include "top_dialect/IR/Properties.h"
#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/Import/Decoder/DecoderImport.h"
#include "top_dialect/Import/Gguf/GgufCheckpoint.h"
#include "top_dialect/Import/HuggingFace/HuggingFaceCheckpoint.h"
#include "top_dialect/Import/Onnx/OnnxDecoder.h"

#include "CLI/CLI.hpp"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace tessera::tool;
using namespace tessera::top;

namespace {
struct Options {
  std::string model, output, language;
  bool isDequantised = false;
  DecoderOptions decoder;
};
} // namespace

/// A module, and the architecture of its network for the result.
struct Imported {
  OwningOpRef<ModuleOp> module;
  std::string architecture;
};

/// Returns the tokenizer and the chat template that the user gives.
static llvm::Expected<llvm::json::Object> readLanguage(const Options &options) {
  if (options.language.empty()) {
    return llvm::json::Object();
  }
  auto text = llvm::MemoryBuffer::getFile(options.language);
  if (!text) {
    return llvm::createStringError("failed to read '" + options.language + "': " + text.getError().message());
  }
  auto parsed = parseJson((*text)->getBuffer());
  if (!parsed) {
    return parsed.takeError();
  }
  llvm::json::Object *object = parsed->getAsObject();
  return object ? llvm::Expected<llvm::json::Object>(std::move(*object))
                : llvm::createStringError("'" + options.language + "' is not a JSON object");
}

static llvm::Expected<Imported> importCheckpoint(const Options &options, MLIRContext &context) {
  const bool isFolder = llvm::sys::fs::is_directory(options.model);
  auto checkpoint = isFolder ? openHuggingFace(options.model, &context) : openGguf(options.model);
  if (!checkpoint) {
    return checkpoint.takeError();
  }
  if (isFolder) {
    auto language = readLanguage(options);
    if (!language) {
      return language.takeError();
    }
    checkpoint->language = std::move(*language);
  }
  auto module = importDecoder(*checkpoint, options.decoder, &context);
  if (!module) {
    return module.takeError();
  }
  return Imported{std::move(*module), checkpoint->architecture};
}

static llvm::Expected<Imported> importFromOnnx(const Options &options, MLIRContext &context) {
  if (options.decoder.sequences || options.decoder.cacheType != CacheType::F32) {
    return llvm::createStringError("--sequences and --kv: the graph of an .onnx file has caches of its own");
  }
  auto language = readLanguage(options);
  if (!language) {
    return language.takeError();
  }
  auto module = importOnnxDecoder(options.model, options.decoder, reportWarning, context);
  if (!module) {
    return module.takeError();
  }
  setLanguage(**module, std::move(*language));
  return Imported{std::move(*module), "onnx"};
}

static llvm::Error run(Options options) {
  DialectRegistry registry;
  registry.insert<func::FuncDialect, TopDialect>();
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  reportPhase("import");
  if (options.decoder.modelName.empty()) {
    options.decoder.modelName = llvm::sys::path::stem(options.model).str();
  }
  options.decoder.keepsFormats = !options.isDequantised;
  const bool isOnnx = llvm::sys::path::extension(options.model) == ".onnx";
  auto imported = isOnnx ? importFromOnnx(options, context) : importCheckpoint(options, context);
  if (!imported) {
    return imported.takeError();
  }
  auto object = finishImport(*imported->module, options.output, /*optimises=*/true);
  if (!object) {
    return object.takeError();
  }
  (*object)["architecture"] = imported->architecture;
  reportResult(std::move(*object));
  return llvm::Error::success();
}

std::function<llvm::Error()> tessera::tool::addImportDecoder(CLI::App &app) {
  CLI::App *sub = app.add_subcommand("import-decoder", "A language model to NAME_top.mlir with its weights");
  auto options = std::make_shared<Options>();
  sub->add_option("--model", options->model, "The .gguf or .onnx file, or a Hugging Face folder")->required();
  sub->add_option("--output", options->output, "NAME_top.mlir; NAME_weights.safetensors is written beside it")
      ->required();
  sub->add_option("--language", options->language,
                  "JSON file with the tokenizer and the chat template of an .onnx file or a folder, by GGUF's keys");
  sub->add_option("--model-name", options->decoder.modelName, "Default: the file's name");
  sub->add_option("--context", options->decoder.context,
                  "Number of positions of the caches (default: that of the model, at most " +
                      std::to_string(kUsualContext) + ")")
      ->check(CLI::PositiveNumber);
  sub->add_option("--chunk", options->decoder.chunk, "Largest number of tokens of a run")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 16));
  sub->add_option("--sequences", options->decoder.sequences,
                  "Number of sequences with caches of their own (default: one, without the input `rows`)")
      ->check(CLI::Range(int64_t(1), kMostSequences));
  static const std::map<std::string, CacheType> kCacheTypes = {
      {"f32", CacheType::F32}, {"bf16", CacheType::BF16}, {"int8", CacheType::I8}};
  sub->add_option("--kv", options->decoder.cacheType, "Type of keys and values in the caches")
      ->transform(CLI::CheckedTransformer(kCacheTypes));
  sub->add_flag("--dequantise", options->isDequantised, "Make all weights f32, e.g. to quantise them in another way");
  sub->add_flag("--all-logits", options->decoder.allLogits,
                "Return the logits of all tokens of a run, not of the last");
  return [options] { return run(*options); };
}
