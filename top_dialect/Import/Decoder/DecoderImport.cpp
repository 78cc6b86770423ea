//===- DecoderImport.cpp - Builds the network of a language model ---------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Decoder/DecoderImport.h"

#include "top_dialect/IR/Properties.h"
#include "top_dialect/IR/Unsupported.h"
#include "top_dialect/Import/Decoder/WeightReader.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <limits>
#include <numeric>

using namespace mlir;

namespace tessera::top {
namespace {

/// The positions of tokens, as attention needs them; layers with the same window share them.
struct Positions {
  Value cos, sin; ///< [seq, rotarySize / 2]; null without rotary embedding
  Value mask;     ///< [1, 1, 1, seq, past + seq], 0 or -inf
};

class DecoderBuilder {
public:
  DecoderBuilder(const Checkpoint &checkpoint, const DecoderOptions &options, MLIRContext *context)
      : config(checkpoint.config), options(options), graph(context, options.modelName),
        weights(graph, checkpoint, options.keepsFormats) {}

  llvm::Expected<OwningOpRef<ModuleOp>> run();

private:
  void declareSizes();
  Value embed(Value tokens);
  Positions makePositions(bool isWindowed);
  Value rotaryTable(bool isWindowed, double (*function)(double));
  Value numbers(bool alongKeys);
  Value norm(Value x, const Twine &name);
  Value headNorm(Value x, const Twine &name);
  Value project(Value x, const Twine &name, int64_t outputs);
  Value splitHeads(Value x, int64_t heads);
  Value rotate(Value x, const Positions &positions);
  Value append(Value x, const Twine &kind);
  Value attend(Value x, const Positions &positions);
  Value feedForward(Value x);
  Value activate(Value x);
  bool isWindowed(int64_t layer) const {
    return config.window && (config.windowPeriod == 1 || (layer + 1) % config.windowPeriod != 0);
  }

  const DecoderConfig &config;
  const DecoderOptions &options;
  GraphBuilder graph;
  WeightReader weights;
  Dim sequence = 1, past = 0, total = 1;
  std::string block; ///< prefix of the layer's tensors: "blk.0."
  int64_t layer = 0;
  std::vector<std::pair<std::string, Value>> caches; ///< outputs
};

/// Declares the number of new tokens and of those in the caches.
void DecoderBuilder::declareSizes() {
  MLIRContext *context = graph.getBuilder().getContext();
  const int64_t capacity = options.context ? options.context : std::min(config.context, kUsualContext);
  sequence = Dim::symbol(context, "seq", 1, std::min(options.chunk, capacity), 1);
  past = Dim::symbol(context, "past", 0, capacity, capacity / 4);
  total = past + sequence;
}

Value DecoderBuilder::embed(Value tokens) {
  graph.setName("token_embd");
  const int64_t vocabulary = weights.dim("token_embd.weight", 0);
  Value x = weights.rows("token_embd.weight", {vocabulary, config.width}, tokens);
  if (config.embeddingScale != 1) {
    x = graph.mul(x, graph.scalar(graph.f32(), config.embeddingScale));
  }
  if (weights.has("position_embd.weight")) {
    graph.setName("position_embd");
    const int64_t positions = weights.dim("position_embd.weight", 0);
    if (positions < maxOf(past)) {
      graph.fail(llvm::formatv("the model has embeddings for {0} positions; choose --context up to that", positions));
    }
    std::vector<float> table = weights.floats("position_embd.weight", {positions, config.width});
    table.resize(maxOf(total) * config.width); // rows beyond the trained ones are never read
    Value rows = graph.constant({maxOf(total), config.width}, table, "position_embd");
    x = graph.add(x, graph.reshape(graph.slice(rows, 0, past, sequence), {1, sequence, config.width}));
  }
  return x;
}

//--- positions ---

/// Returns the positions of the new tokens [seq, 1], or of all tokens [1, past + seq].
Value DecoderBuilder::numbers(bool alongKeys) {
  std::vector<float> values(maxOf(total));
  std::iota(values.begin(), values.end(), 0.0F);
  if (alongKeys) {
    return graph.slice(graph.constant({1, maxOf(total)}, values, "positions"), 1, 0, total);
  }
  return graph.slice(graph.constant({maxOf(total), 1}, values, "positions"), 0, past, sequence);
}

Value DecoderBuilder::rotaryTable(bool isWindowed, double (*function)(double)) {
  const int64_t pairs = config.rotarySize / 2;
  const bool isLocal = isWindowed && config.windowRotaryBase;
  const double base = isLocal ? config.windowRotaryBase : config.rotaryBase;
  std::vector<float> divisors(pairs, 1);
  if (weights.has("rope_freqs.weight")) {
    divisors = weights.floats("rope_freqs.weight", {pairs});
  }
  std::vector<float> table(maxOf(total) * pairs);
  for (int64_t i = 0; i < pairs; ++i) {
    const double frequency = std::pow(base, -2.0 * double(i) / double(config.rotarySize)) /
                             (divisors[i] * (isLocal ? 1 : config.rotaryFactor));
    for (int64_t position = 0; position < maxOf(total); ++position) {
      table[position * pairs + i] = float(function(double(position) * frequency));
    }
  }
  return graph.slice(graph.constant({maxOf(total), pairs}, table, "rotary"), 0, past, sequence);
}

Positions DecoderBuilder::makePositions(bool isWindowed) {
  graph.setName(isWindowed ? "window" : "positions");
  Positions result;
  if (config.rotarySize) {
    result.cos = rotaryTable(isWindowed, std::cos), result.sin = rotaryTable(isWindowed, std::sin);
  }
  Value query = numbers(/*alongKeys=*/false), key = numbers(/*alongKeys=*/true);
  Value isSeen = graph.create<CompareOp>(key, query, CompareKind::le);
  if (isWindowed) {
    Value last = graph.add(key, graph.scalar(graph.f32(), double(config.window)));
    isSeen = graph.create<AndOp>(isSeen, graph.create<CompareOp>(last, query, CompareKind::gt));
  }
  Value mask = graph.create<WhereOp>(isSeen, graph.scalar(graph.f32(), 0),
                                     graph.scalar(graph.f32(), -std::numeric_limits<double>::infinity()));
  result.mask = graph.reshape(mask, {1, 1, 1, sequence, total});
  return result;
}

//--- layers ---

Value DecoderBuilder::norm(Value x, const Twine &name) {
  Value scale = weights.vector(name + ".weight", config.width);
  Value bias = config.isRms ? Value() : weights.vector(name + ".bias", config.width);
  return graph.create<LayerNormOp>(x, scale, bias, 2, llvm::APFloat(config.epsilon), config.isRms);
}

/// Normalises each head of |x| [1, seq, heads, size] if the checkpoint has the norm.
Value DecoderBuilder::headNorm(Value x, const Twine &name) {
  Value scale = weights.optionalVector(name + ".weight", config.headSize);
  return scale ? graph.create<LayerNormOp>(x, scale, Value(), 3, llvm::APFloat(config.epsilon), true) : x;
}

Value DecoderBuilder::project(Value x, const Twine &name, int64_t outputs) {
  graph.setName(block + name);
  std::string prefix = block + name.str();
  const int64_t inputs = graph.hasFailed() ? 1 : Shape(x).back().value();
  return graph.linear(x, weights.matrix(prefix + ".weight", {outputs, inputs}),
                      weights.optionalVector(prefix + ".bias", outputs));
}

Value DecoderBuilder::splitHeads(Value x, int64_t heads) {
  return graph.reshape(x, {1, sequence, heads, config.headSize});
}

/// Moves the heads before the tokens, and rotates the queries or keys |x| [1, seq, heads, size].
Value DecoderBuilder::rotate(Value x, const Positions &positions) {
  x = graph.transpose(x, {0, 2, 1, 3});
  if (!config.rotarySize) {
    return x;
  }
  if (config.rotarySize == config.headSize) {
    return graph.create<RopeOp>(x, positions.cos, positions.sin, config.rotatesAdjacent);
  }
  Value rotated = graph.slice(x, 3, 0, config.rotarySize);
  Value rest = graph.slice(x, 3, config.rotarySize, config.headSize - config.rotarySize);
  return graph.concat(graph.create<RopeOp>(rotated, positions.cos, positions.sin, config.rotatesAdjacent), rest, 3);
}

/// Appends |x| [1, heads, seq, size] to the layer's cache and returns the whole as [1, heads, 1, past + seq, size].
Value DecoderBuilder::append(Value x, const Twine &kind) {
  std::string suffix = "." + std::to_string(layer) + "." + kind.str(), after = "present" + suffix;
  graph.setName(after);
  Value before = graph.addState("past" + suffix, after, graph.f32(), {1, config.keyHeads, past, config.headSize});
  Value whole = graph.concat(before, x, 2);
  caches.emplace_back(after, whole);
  return graph.reshape(whole, {1, config.keyHeads, 1, total, config.headSize});
}

Value DecoderBuilder::attend(Value x, const Positions &positions) {
  const int64_t queries = config.heads * config.headSize, keys = config.keyHeads * config.headSize;
  Value q, k, v;
  if (weights.has(block + "attn_qkv.weight")) {
    Value all = project(x, "attn_qkv", queries + 2 * keys);
    q = graph.slice(all, 2, 0, queries), k = graph.slice(all, 2, queries, keys);
    v = graph.slice(all, 2, queries + keys, keys);
  } else {
    q = project(x, "attn_q", queries), k = project(x, "attn_k", keys), v = project(x, "attn_v", keys);
  }
  graph.setName(block + "attn_q");
  q = rotate(headNorm(splitHeads(q, config.heads), block + "attn_q_norm"), positions);
  graph.setName(block + "attn_k");
  k = append(rotate(headNorm(splitHeads(k, config.keyHeads), block + "attn_k_norm"), positions), "key");
  v = append(graph.transpose(splitHeads(v, config.keyHeads), {0, 2, 1, 3}), "value");
  graph.setName(block + "attention");
  const double scale = config.attentionScale ? config.attentionScale : 1 / std::sqrt(double(config.headSize));
  q = graph.reshape(q, {1, config.keyHeads, config.heads / config.keyHeads, sequence, config.headSize});
  Value y = graph.create<AttentionOp>(q, k, v, positions.mask, llvm::APFloat(scale), IntegerAttr());
  y = graph.transpose(graph.reshape(y, {1, config.heads, sequence, config.headSize}), {0, 2, 1, 3});
  return project(graph.reshape(y, {1, sequence, queries}), "attn_output", config.width);
}

Value DecoderBuilder::activate(Value x) {
  return config.hasGelu ? graph.create<GeluOp>(x, /*tanh=*/true) : graph.create<SiluOp>(x);
}

Value DecoderBuilder::feedForward(Value x) {
  const int64_t rows = weights.dim(block + "ffn_up.weight", 0);
  const int64_t size = weights.dim(block + "ffn_down.weight", 1);
  Value up = project(x, "ffn_up", rows);
  if (config.isGated && weights.has(block + "ffn_gate.weight")) {
    up = graph.mul(activate(project(x, "ffn_gate", size)), up);
  } else if (config.isGated) { // gate and values in one product
    up = graph.mul(activate(graph.slice(up, 2, 0, size)), graph.slice(up, 2, size, rows - size));
  } else {
    up = activate(up);
  }
  return project(up, "ffn_down", config.width);
}

llvm::Expected<OwningOpRef<ModuleOp>> DecoderBuilder::run() {
  declareSizes();
  Value tokens = graph.addInput("input_ids", graph.getBuilder().getI64Type(), {1, sequence});
  Value x = embed(tokens);
  Positions all, windowed;
  for (layer = 0; layer < config.layers && !graph.hasFailed(); ++layer) {
    Positions &positions = isWindowed(layer) ? windowed : all;
    positions = positions.mask ? positions : makePositions(isWindowed(layer));
    block = "blk." + std::to_string(layer) + ".";
    graph.setName(block + "attn_norm");
    Value y = attend(norm(x, block + "attn_norm"), positions);
    const bool hasPostNorms = weights.has(block + "post_attention_norm.weight");
    x = graph.add(x, hasPostNorms ? norm(y, block + "post_attention_norm") : y);
    graph.setName(block + "ffn_norm");
    y = feedForward(norm(x, block + "ffn_norm"));
    x = graph.add(x, hasPostNorms ? norm(y, block + "post_ffw_norm") : y);
  }
  graph.setName("output");
  if (!options.allLogits) {
    x = graph.slice(x, 1, sequence - 1, 1);
  }
  x = norm(x, "output_norm");
  const bool isTied = !weights.has("output.weight");
  const std::string output = isTied ? "token_embd.weight" : "output.weight";
  Value logits = graph.linear(x, weights.matrix(output, {weights.dim(output, 0), config.width}), Value());
  graph.addOutput("logits", logits);
  for (const auto &[name, value] : caches) {
    graph.addOutput(name, value);
  }
  if (!graph.hasFailed()) {
    graph.fail(weights.checkAllUsed());
  }
  return graph.finish();
}

llvm::Error checkConfig(const DecoderConfig &config, const DecoderOptions &options) {
  auto fail = [](auto &&...args) { return llvm::createStringError(llvm::formatv(args...).str()); };
  constexpr int64_t kMost = 1 << 16, kLargestHead = 1 << 12; // so that products and tables of sizes stay small
  if (std::max({config.layers, config.width, config.heads}) > kMost || config.headSize > kLargestHead) {
    return fail(
        "{0} layers of width {1} with {2} heads of size {3} are too many; the largest are {4}, {4}, {4} and {5}",
        config.layers, config.width, config.heads, config.headSize, kMost, kLargestHead);
  }
  if (config.keyHeads < 1 || config.heads < 1 || config.heads % config.keyHeads || config.headSize < 1 ||
      config.width < 1 || config.layers < 1 || config.context < 1) {
    return fail("{0} layers of width {1} with {2} heads of size {3} and {4} heads of keys are not a decoder",
                config.layers, config.width, config.heads, config.headSize, config.keyHeads);
  }
  if (config.rotarySize % 2 || config.rotarySize > config.headSize) {
    return fail("{0} of {1} elements of a head are rotated; the number must be even and at most the size",
                config.rotarySize, config.headSize);
  }
  if (options.context > config.context) {
    return fail("--context {0}: the model was trained for {1} positions; choose at most these", options.context,
                config.context);
  }
  return llvm::Error::success();
}

} // namespace

void setLanguage(ModuleOp module, llvm::json::Value language) {
  std::string text;
  llvm::raw_string_ostream(text) << language;
  Builder builder(module.getContext());
  NamedAttribute property = builder.getNamedAttr(kLanguageProperty, builder.getStringAttr(text));
  module->setAttr(kPropertiesAttr, builder.getDictionaryAttr(property));
}

llvm::Expected<OwningOpRef<ModuleOp>> importDecoder(const Checkpoint &checkpoint, const DecoderOptions &options,
                                                    MLIRContext *context) {
  if (llvm::Error error = checkConfig(checkpoint.config, options)) {
    return std::move(error);
  }
  auto module = DecoderBuilder(checkpoint, options, context).run();
  if (module) {
    llvm::json::Object language(checkpoint.language);
    language["architecture"] = checkpoint.architecture;
    setLanguage(**module, std::move(language));
  }
  return module;
}

} // namespace tessera::top
