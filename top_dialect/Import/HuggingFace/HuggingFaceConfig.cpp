//===- HuggingFaceConfig.cpp - config.json of a language model ------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/HuggingFace/HuggingFaceConfig.h"

#include "top_dialect/IR/Unsupported.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>
#include <numbers>

using llvm::StringRef;
using llvm::json::Object;
using llvm::json::Value;

namespace tessera::top {
namespace {

/// A value of "model_type", and what its configuration implies if config.json does not say it.
struct Family {
  llvm::StringLiteral type, architecture;
  bool isTied = false;
  double epsilon = 1e-6;
  int64_t headSize = 0; ///< 0 = width / heads
  double rotaryBase = 10000;
  int64_t window = 0;
};

constexpr Family kFamilies[] = {
    {"llama", "llama"},
    {"mistral", "llama", false, 1e-6, 0, 10000, 4096},
    {"qwen2", "qwen2", false, 1e-6, 0, 10000, 4096},
    {"qwen3", "qwen3", false, 1e-6, 128, 10000, 4096},
    {"phi3", "phi3", false, 1e-5},
    {"gemma3_text", "gemma3", true, 1e-6, 256, 1e6, 4096},
    {"gpt2", "gpt2", true, 1e-5},
};

/// Keys that do not change the network's results, or that the tensors imply.
constexpr llvm::StringLiteral kHarmless[] = {"architectures",
                                             "attention_bias",
                                             "attention_dropout",
                                             "attn_implementation",
                                             "attn_pdrop",
                                             "auto_map",
                                             "cache_implementation",
                                             "dtype",
                                             "embd_pdrop",
                                             "embd_pdrop",
                                             "initializer_range",
                                             "intermediate_size",
                                             "mlp_bias",
                                             "n_ctx",
                                             "n_inner",
                                             "pretraining_tp",
                                             "resid_pdrop",
                                             "summary_activation",
                                             "summary_first_dropout",
                                             "summary_proj_to_labels",
                                             "summary_type",
                                             "summary_use_proj",
                                             "task_specific_params",
                                             "tie_word_embeddings",
                                             "torch_dtype",
                                             "transformers_version",
                                             "transformers.js_config",
                                             "unsloth_version",
                                             "use_cache",
                                             "is_llama_config",
                                             "vocab_size"};

bool isOff(const Value &value) { return value.kind() == Value::Null || value.getAsBoolean() == false; }

/// Reads config.json. Errors are sticky.
class ConfigReader {
public:
  ConfigReader(const Object &json, DecoderConfig &config) : json(json), config(config) {}

  llvm::Error read(std::string &architecture);

private:
  const Value *find(StringRef key) {
    read_.insert(key);
    const Value *value = json.get(key);
    return value && value->kind() != Value::Null ? value : nullptr;
  }

  /// Returns a number under the first of |keys| that is present.
  double real(llvm::ArrayRef<StringRef> keys, std::optional<double> byDefault = std::nullopt) {
    std::optional<double> found;
    for (StringRef key : keys) {
      if (const Value *value = find(key); value && !found) {
        found = value->getAsNumber().value_or(-1);
      }
    }
    found = found ? found : byDefault;
    if (!found || !(*found > 0)) {
      fail(llvm::formatv("'{0}' is {1}", keys.front(), found ? "not a positive number" : "missing"));
    }
    return found && *found > 0 ? *found : 1;
  }

  int64_t integer(llvm::ArrayRef<StringRef> keys, std::optional<int64_t> byDefault = std::nullopt) {
    const double number = real(keys, byDefault ? std::optional(double(*byDefault)) : std::nullopt);
    if (number > double(int64_t(1) << 31) || number != std::floor(number)) {
      fail(llvm::formatv("'{0}' is not a number of the expected range", keys.front()));
      return 1;
    }
    return int64_t(number);
  }

  void fail(const llvm::Twine &message) { error = error.empty() ? message.str() : error; }
  void rejectUnsupported(const llvm::Twine &message) {
    isUnsupported |= error.empty();
    fail(message);
  }

  void readActivation();
  void readWindow(const Family &family);
  void readLayerTypes(const llvm::json::Array &types);
  void readRotary(const Family &family);
  void readScaling(const Object &scaling);
  void readLlama3(const Object &scaling);
  void readYarn(const Object &scaling);
  void readLongRope(const Object &scaling);
  double of(const Object &scaling, StringRef key, std::optional<double> byDefault = std::nullopt);
  double angle(int64_t pair) const {
    return std::pow(config.rotaryBase, -2.0 * double(pair) / double(config.rotarySize));
  }

  const Object &json;
  DecoderConfig &config;
  llvm::StringSet<> read_;
  std::string error;
  bool isUnsupported = false;
};

void ConfigReader::readActivation() {
  std::string name;
  for (StringRef key : {"hidden_activation", "hidden_act", "activation_function"}) {
    const Value *value = find(key);
    name = value && name.empty() ? value->getAsString().value_or("").str() : name;
  }
  const bool fits = config.hasGelu ? name == "gelu_pytorch_tanh" || name == "gelu_new" : name == "silu";
  if (!name.empty() && !fits) {
    rejectUnsupported("the activation '" + name + "' is not supported for this architecture");
  }
}

void ConfigReader::readLayerTypes(const llvm::json::Array &types) {
  auto isWindowed = [](const Value &type) { return type.getAsString() == StringRef("sliding_attention"); };
  auto isKnown = [&](const Value &type) {
    return isWindowed(type) || type.getAsString() == StringRef("full_attention");
  };
  if (int64_t(types.size()) != config.layers || !llvm::all_of(types, isKnown)) {
    rejectUnsupported("'layer_types' must list sliding_attention or full_attention for each layer");
    return;
  }
  config.windowed.assign(llvm::map_iterator(types.begin(), isWindowed), llvm::map_iterator(types.end(), isWindowed));
}

void ConfigReader::readWindow(const Family &family) {
  constexpr int64_t kFirstOfQwen = 28;
  const bool isQwen = family.type.starts_with("qwen"), isMissing = !json.get("sliding_window");
  config.window = isMissing ? family.window : find("sliding_window") ? integer({"sliding_window"}) : 0;
  const Value *uses = find("use_sliding_window"), *layers = find("layer_types"), *full = find("max_window_layers");
  if ((uses && isOff(*uses)) || (isQwen && !uses)) {
    config.window = 0;
  } else if (layers && layers->getAsArray()) {
    readLayerTypes(*layers->getAsArray());
  } else if (family.architecture == "gemma3") {
    config.windowPeriod = integer({"sliding_window_pattern", "_sliding_window_pattern"}, 6);
  } else if (isQwen) { // the layers from max_window_layers on have windows
    const int64_t first = full ? full->getAsInteger().value_or(0) : kFirstOfQwen;
    for (int64_t layer = 0; layer < std::min(config.layers, kMostLayers); ++layer) {
      config.windowed.push_back(layer >= first);
    }
  }
  for (StringRef key : {"sliding_window_pattern", "_sliding_window_pattern"}) {
    find(key); // layer_types says the same
  }
}

double ConfigReader::of(const Object &scaling, StringRef key, std::optional<double> byDefault) {
  const Value *value = scaling.get(key);
  std::optional<double> number = value && value->kind() != Value::Null ? value->getAsNumber() : byDefault;
  if (!number || !(*number > 0)) {
    fail(llvm::formatv("'{0}' of the scaling of rotary embeddings is missing or not positive", key));
    return 1;
  }
  return *number;
}

/// Slow angles are divided by the factor, fast ones stay, and those between are mixed.
void ConfigReader::readLlama3(const Object &scaling) {
  const double factor = of(scaling, "factor"), context = of(scaling, "original_max_position_embeddings");
  const double low = of(scaling, "low_freq_factor"), high = of(scaling, "high_freq_factor");
  for (int64_t i = 0; i < config.rotarySize / 2; ++i) {
    const double turns = context * angle(i) / (2 * std::numbers::pi);
    const double share = std::clamp((turns - low) / (high - low), 0.0, 1.0); // of the unscaled angle
    config.rotaryDivisors.push_back(1 / ((1 - share) / factor + share));
  }
}

void ConfigReader::readYarn(const Object &scaling) {
  const double factor = of(scaling, "factor");
  const double context = of(scaling, "original_max_position_embeddings", double(config.context));
  const double fast = of(scaling, "beta_fast", 32), slow = of(scaling, "beta_slow", 1);
  auto pairOf = [&](double turns) {
    return double(config.rotarySize) * std::log(context / (turns * 2 * std::numbers::pi)) /
           (2 * std::log(config.rotaryBase));
  };
  const Value *truncates = scaling.get("truncate");
  const bool isWhole = !truncates || truncates->getAsBoolean().value_or(true);
  double first = pairOf(fast), last = pairOf(slow);
  first = std::max(isWhole ? std::floor(first) : first, 0.0);
  last = std::min(isWhole ? std::ceil(last) : last, double(config.rotarySize - 1));
  last += first == last ? 0.001 : 0;
  for (int64_t i = 0; i < config.rotarySize / 2; ++i) {
    const double share = 1 - std::clamp((double(i) - first) / (last - first), 0.0, 1.0); // of the unscaled angle
    config.rotaryDivisors.push_back(1 / ((1 - share) / factor + share));
  }
  if (scaling.get("mscale") || scaling.get("mscale_all_dim")) {
    rejectUnsupported("yarn scaling with mscale is not supported");
  }
  config.rotaryScale = of(scaling, "attention_factor", factor > 1 ? 0.1 * std::log(factor) + 1 : 1);
}

/// Uses the factors for short contexts, so the context becomes that of the original training.
void ConfigReader::readLongRope(const Object &scaling) {
  const llvm::json::Array *factors = scaling.getArray("short_factor");
  const double original = real({"original_max_position_embeddings"},
                               of(scaling, "original_max_position_embeddings", double(config.context)));
  if (!factors || int64_t(factors->size()) * 2 != config.rotarySize) {
    fail("'short_factor' of the scaling of rotary embeddings is not a list with a number for each pair");
    return;
  }
  for (const Value &factor : *factors) {
    config.rotaryDivisors.push_back(factor.getAsNumber().value_or(1));
  }
  const double ratio = of(scaling, "factor", double(config.context) / original);
  const double usual = ratio > 1 ? std::sqrt(1 + std::log(ratio) / std::log(original)) : 1;
  config.rotaryScale = of(scaling, "attention_factor", usual);
  config.context = std::min(config.context, int64_t(original));
}

void ConfigReader::readScaling(const Object &scaling) {
  StringRef type = scaling.getString("rope_type").value_or(scaling.getString("type").value_or("default"));
  if (type == "linear") {
    config.rotaryFactor = of(scaling, "factor");
  } else if (type == "llama3") {
    readLlama3(scaling);
  } else if (type == "yarn") {
    readYarn(scaling);
  } else if (type == "longrope" || type == "su") {
    readLongRope(scaling);
  } else if (type != "default") {
    rejectUnsupported("the scaling '" + type +
                      "' of rotary embeddings is not supported; supported are default, linear, "
                      "llama3, yarn and longrope");
  }
}

void ConfigReader::readRotary(const Family &family) {
  config.rotaryBase = real({"rope_theta"}, family.rotaryBase);
  const Value *parameters = find("rope_parameters"), *given = find("rope_scaling");
  const Object *scaling = parameters ? parameters->getAsObject() : given ? given->getAsObject() : nullptr;
  config.windowRotaryBase = family.architecture == "gemma3" ? real({"rope_local_base_freq"}, 10000) : 0;
  if (const Object *local = scaling ? scaling->getObject("sliding_attention") : nullptr) {
    config.windowRotaryBase = of(*local, "rope_theta", config.windowRotaryBase ? config.windowRotaryBase : 10000);
    if (local->getString("rope_type").value_or("default") != "default") {
      rejectUnsupported("scaled rotary embeddings of windowed layers are not supported");
    }
  }
  if (const Object *full = scaling ? scaling->getObject("full_attention") : nullptr) {
    scaling = full;
  }
  config.rotaryBase = scaling ? of(*scaling, "rope_theta", config.rotaryBase) : config.rotaryBase;
  double share = real({"partial_rotary_factor"}, 1);
  share = scaling ? of(*scaling, "partial_rotary_factor", share) : share;
  config.rotarySize = int64_t(double(config.headSize) * std::min(share, 1.0));
  if (config.rotarySize % 2 || config.rotarySize < 2 || config.headSize > 1 << 12) {
    fail(llvm::formatv("{0} of {1} elements of a head are rotated; the number must be even", config.rotarySize,
                       config.headSize));
  } else if (scaling) {
    readScaling(*scaling);
  }
  find("original_max_position_embeddings");
}

llvm::Error ConfigReader::read(std::string &architecture) {
  StringRef type = json.getString("model_type").value_or("");
  const auto *family = llvm::find_if(kFamilies, [&](const Family &each) { return each.type == type; });
  if (family == std::end(kFamilies)) {
    auto names = llvm::map_range(kFamilies, [](const Family &each) { return each.type.str(); });
    return unsupported("the model type '" + type + "' is not supported; supported are " + llvm::join(names, ", "));
  }
  find("model_type");
  architecture = family->architecture.str();
  if (llvm::Error failure = setArchitecture(architecture, config)) {
    return failure;
  }
  config.rotatesAdjacent = false; // unlike GGUF's converters, which reorder queries and keys
  config.layers = integer({"num_hidden_layers", "n_layer"}), config.width = integer({"hidden_size", "n_embd"});
  config.heads = integer({"num_attention_heads", "n_head"});
  config.keyHeads = integer({"num_key_value_heads"}, config.heads);
  config.headSize = integer({"head_dim"}, family->headSize ? family->headSize : config.width / config.heads);
  config.context = integer({"max_position_embeddings", "n_positions"});
  config.epsilon = real({"rms_norm_eps", "layer_norm_epsilon"}, family->epsilon);
  readActivation();
  readWindow(*family);
  if (type != "gpt2") {
    readRotary(*family);
  }
  if (type == "gemma3_text") {
    config.embeddingScale = std::sqrt(double(config.width));
    config.attentionScale = 1 / std::sqrt(real({"query_pre_attn_scalar"}, 256));
  }
  if (const Value *scales = find("scale_attn_weights"); scales && isOff(*scales)) {
    rejectUnsupported("'scale_attn_weights' must be true");
  }
  for (const auto &[key, value] : json) {
    StringRef name = key;
    if (!read_.contains(name) && !isOff(value) && !name.starts_with("_") && !name.ends_with("_token_id") &&
        !llvm::is_contained(kHarmless, name)) {
      rejectUnsupported("the hyperparameter '" + name + "' is not supported");
    }
  }
  return error.empty() ? llvm::Error::success() : isUnsupported ? unsupported(error) : llvm::createStringError(error);
}

} // namespace

llvm::Error readHuggingFaceConfig(const Object &json, Checkpoint &checkpoint) {
  return ConfigReader(json, checkpoint.config).read(checkpoint.architecture);
}

bool hasTiedEmbeddings(const Object &json, StringRef architecture) {
  const auto *family = llvm::find_if(kFamilies, [&](const Family &each) { return each.architecture == architecture; });
  return json.getBoolean("tie_word_embeddings").value_or(family != std::end(kFamilies) && family->isTied);
}

} // namespace tessera::top
