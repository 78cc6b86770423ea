//===- GgufCheckpoint.cpp - A GGUF file as a language model ---------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Gguf/GgufCheckpoint.h"

#include "top_dialect/IR/RegularFile.h"
#include "top_dialect/IR/Unsupported.h"
#include "top_dialect/Import/Gguf/GgufFile.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <set>

using llvm::StringRef;

namespace tessera::top {
namespace {

/// Reads the hyperparameters, whose keys begin with the architecture. Errors are sticky.
class HyperparameterReader {
public:
  HyperparameterReader(const llvm::json::Object &metadata, StringRef architecture)
      : metadata(metadata), prefix(architecture.str() + ".") {}

  int64_t integer(StringRef key, std::optional<int64_t> byDefault = std::nullopt) {
    const llvm::json::Value *value = find(key);
    if (const llvm::json::Array *each = value ? value->getAsArray() : nullptr) {
      return sameForAllLayers(key, *each);
    }
    std::optional<int64_t> number = value ? value->getAsInteger() : byDefault;
    if (!number || *number < 0 || *number > (int64_t(1) << 31)) {
      fail(llvm::formatv("'{0}{1}' is {2}", prefix, key, value ? "not a number of the expected range" : "missing"));
      return 1;
    }
    return *number;
  }

  double real(StringRef key, std::optional<double> byDefault = std::nullopt) {
    const llvm::json::Value *value = find(key);
    std::optional<double> number = value ? value->getAsNumber() : byDefault;
    if (!number || !(*number > 0)) {
      fail(llvm::formatv("'{0}{1}' is {2}", prefix, key, value ? "not a positive number" : "missing"));
      return 1;
    }
    return *number;
  }

  std::string text(StringRef key, StringRef byDefault) {
    const llvm::json::Value *value = find(key);
    return (value ? value->getAsString() : std::nullopt).value_or(byDefault).str();
  }

  bool has(StringRef key) { return find(key); }
  void ignore(StringRef key) { read.insert(prefix + key.str()); }

  void fail(const llvm::Twine &message) { error = error.empty() ? message.str() : error; }
  void rejectUnsupported(const llvm::Twine &message) {
    isUnsupported |= error.empty();
    fail(message);
  }

  /// Returns the first error. A hyperparameter that was not read is one, because it may change the network.
  llvm::Error finish() {
    for (const auto &[key, value] : metadata) {
      StringRef name = key;
      if (name.starts_with(prefix) && !read.count(name.str())) {
        rejectUnsupported("the hyperparameter '" + name + "' is not supported");
      }
    }
    return error.empty() ? llvm::Error::success() : isUnsupported ? unsupported(error) : llvm::createStringError(error);
  }

private:
  const llvm::json::Value *find(StringRef key) {
    read.insert(prefix + key.str());
    return metadata.get(prefix + key.str());
  }

  int64_t sameForAllLayers(StringRef key, const llvm::json::Array &each) {
    std::optional<int64_t> first = each.empty() ? std::nullopt : each.front().getAsInteger();
    if (!first || llvm::any_of(each, [&](const llvm::json::Value &value) { return value != each.front(); })) {
      rejectUnsupported(llvm::formatv("'{0}{1}' differs between layers, which is not supported", prefix, key));
    }
    return first.value_or(1);
  }

  const llvm::json::Object &metadata;
  std::string prefix, error;
  bool isUnsupported = false;
  std::set<std::string> read;
};

void readRotary(HyperparameterReader &reader, DecoderConfig &config) {
  config.rotarySize = reader.integer("rope.dimension_count", config.headSize);
  config.rotaryBase = reader.real("rope.freq_base", 10000);
  std::string scaling = reader.text("rope.scaling.type", "none");
  config.rotaryFactor = reader.real(reader.has("rope.scale_linear") ? "rope.scale_linear" : "rope.scaling.factor", 1);
  if (scaling != "none" && scaling != "linear") {
    reader.rejectUnsupported("rope.scaling.type '" + scaling + "' is not supported; supported are none and linear");
  }
  if (scaling == "none" && !reader.has("rope.scale_linear")) {
    config.rotaryFactor = 1;
  }
}

llvm::Error readConfig(HyperparameterReader reader, StringRef architecture, DecoderConfig &config) {
  if (llvm::Error error = setArchitecture(architecture, config)) {
    return error;
  }
  config.layers = reader.integer("block_count");
  config.width = reader.integer("embedding_length");
  config.heads = reader.integer("attention.head_count");
  config.keyHeads = reader.integer("attention.head_count_kv", config.heads);
  config.headSize = reader.integer("attention.key_length", config.width / std::max<int64_t>(config.heads, 1));
  config.context = reader.integer("context_length");
  config.epsilon = reader.real(config.isRms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon");
  if (reader.integer("attention.value_length", config.headSize) != config.headSize) {
    reader.rejectUnsupported("values of another size than keys are not supported");
  }
  if (reader.integer("expert_count", 0) != 0) {
    reader.rejectUnsupported("mixtures of experts are not supported in GGUF files");
  }
  reader.ignore("expert_used_count");
  if (architecture == "gpt2") {
    reader.ignore("rope.dimension_count"), reader.ignore("rope.freq_base");
  } else {
    readRotary(reader, config);
  }
  config.window = reader.integer("attention.sliding_window", 0);
  if (architecture == "gemma3") {
    config.windowPeriod = 6, config.windowRotaryBase = 10000;
    config.embeddingScale = std::sqrt(double(config.width));
    constexpr int64_t kLayersOf27B = 62;
    config.attentionScale =
        config.layers == kLayersOf27B ? 1 / std::sqrt(double(config.width) / double(config.heads)) : 0;
  }
  for (StringRef harmless : {"vocab_size", "feed_forward_length", "tensor_data_layout", "rope.scaling.finetuned",
                             "rope.scaling.original_context_length"}) {
    reader.ignore(harmless);
  }
  return reader.finish();
}

} // namespace

llvm::Expected<Checkpoint> readGguf(std::shared_ptr<llvm::MemoryBuffer> buffer) {
  auto file = gguf::GgufFile::parse({buffer->getBufferStart(), buffer->getBufferSize()});
  if (!file) {
    return file.takeError();
  }
  Checkpoint checkpoint;
  checkpoint.architecture = file->metadata.getString("general.architecture").value_or("").str();
  HyperparameterReader reader(file->metadata, checkpoint.architecture);
  if (llvm::Error error = readConfig(std::move(reader), checkpoint.architecture, checkpoint.config)) {
    return std::move(error);
  }
  checkpoint.tensors = std::move(file->tensors);
  checkpoint.files.push_back(std::move(buffer));
  for (auto &[key, value] : file->metadata) {
    if (StringRef(key).starts_with("tokenizer.")) {
      checkpoint.language[key] = std::move(value);
    }
  }
  return checkpoint;
}

llvm::Expected<Checkpoint> openGguf(StringRef path) {
  auto file = readRegularFile(path);
  if (!file) {
    return llvm::createStringError("cannot read '" + path + "': " + llvm::toString(file.takeError()));
  }
  auto checkpoint = readGguf(std::move(*file));
  return checkpoint ? std::move(checkpoint)
                    : llvm::Expected<Checkpoint>(prefixed(checkpoint.takeError(), "'" + path + "': "));
}

} // namespace tessera::top
