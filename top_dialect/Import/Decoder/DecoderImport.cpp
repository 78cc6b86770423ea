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
  Value cos, sin;           ///< [rows, rotarySize / 2]; null without rotary embedding
  SmallVector<Value> masks; ///< for each sequence, [1, 1, 1, seq, past + seq], 0 or -inf
};

/// A sequence of tokens with caches of its own. The new tokens of all sequences are the rows of a run.
struct Sequence {
  std::string suffix;                ///< of the names of its tensors; empty if there is only one sequence
  Dim first = 0;                     ///< row of its first new token
  Dim size = 1, past = 0, total = 1; ///< new tokens, tokens in the caches, and their sum
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
  Value rowsOf(Value table);
  Value mask(const Sequence &sequence, bool isWindowed);
  Value norm(Value x, const Twine &name);
  Value headNorm(Value x, const Twine &name);
  Value project(Value x, const Twine &name, int64_t outputs);
  Value splitHeads(Value x, int64_t heads);
  Value join(ArrayRef<Value> parts, int64_t axis) {
    return parts.size() == 1 ? parts[0] : graph.create<ConcatOp>(ValueRange(parts), axis);
  }
  Value rotate(Value x, const Positions &positions);
  Value store(Value x, const Sequence &sequence, const Twine &kind);
  Value append(Value x, const Sequence &sequence, const Twine &kind);
  Value attendWithin(const Sequence &sequence, Value q, Value k, Value v, Value mask);
  Value attend(Value x, const Positions &positions);
  Value logits(Value x);
  Value feedForward(Value x);
  Value activate(Value x);
  bool isWindowed(int64_t layer) const {
    const bool isListed = !config.windowed.empty();
    return config.window && (isListed                   ? bool(config.windowed[layer])
                             : config.windowPeriod == 1 ? true
                                                        : (layer + 1) % config.windowPeriod != 0);
  }

  const DecoderConfig &config;
  const DecoderOptions &options;
  GraphBuilder graph;
  WeightReader weights;
  SmallVector<Sequence> sequences;
  Dim rows = 0;
  int64_t capacity = 0, positionCount = 0; ///< of the caches, and of tables of positions
  std::string block;                       ///< prefix of the layer's tensors: "blk.0."
  int64_t layer = 0;
  std::vector<std::pair<std::string, Value>> caches; ///< outputs
};

/// Declares the numbers of new tokens and of those in the caches.
void DecoderBuilder::declareSizes() {
  MLIRContext *context = graph.getBuilder().getContext();
  capacity = options.context ? options.context : std::min(config.context, kUsualContext);
  const bool isOne = !options.sequences;
  const int64_t chunk = std::min(options.chunk, capacity);
  positionCount = capacity + chunk;
  for (int64_t i = 0; i < std::max<int64_t>(options.sequences, 1); ++i) {
    Sequence sequence;
    sequence.suffix = isOne ? "" : "." + std::to_string(i);
    sequence.first = rows;
    sequence.size = Dim::symbol(context, "seq" + sequence.suffix, isOne ? 1 : 0, chunk, 1);
    sequence.past = Dim::symbol(context, "past" + sequence.suffix, 0, capacity, capacity / 4);
    sequence.total = sequence.past + sequence.size;
    rows += sequence.size;
    sequences.push_back(sequence);
  }
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
    if (positions < capacity) {
      graph.fail(llvm::formatv("the model has embeddings for {0} positions; choose --context up to that", positions));
    }
    std::vector<float> table = weights.floats("position_embd.weight", {positions, config.width});
    table.resize(positionCount * config.width); // rows beyond the trained ones are never read
    Value all = graph.constant({positionCount, config.width}, table, "position_embd");
    x = graph.add(x, graph.reshape(rowsOf(all), {1, rows, config.width}));
  }
  return x;
}

//--- positions ---

/// Returns the rows of |table|, which has one row for each position, for the new tokens.
Value DecoderBuilder::rowsOf(Value table) {
  SmallVector<Value> parts;
  for (const Sequence &sequence : sequences) {
    parts.push_back(graph.slice(table, 0, sequence.past, sequence.size));
  }
  return join(parts, 0);
}

/// Returns the mask of the attention of a sequence: a token sees itself and the tokens before it.
Value DecoderBuilder::mask(const Sequence &sequence, bool isWindowed) {
  std::vector<float> values(positionCount);
  std::iota(values.begin(), values.end(), 0.0F);
  Value key = graph.slice(graph.constant({1, positionCount}, values, "positions"), 1, 0, sequence.total);
  Value query = graph.slice(graph.constant({positionCount, 1}, values, "positions"), 0, sequence.past, sequence.size);
  Value isSeen = graph.create<CompareOp>(key, query, CompareKind::le);
  if (isWindowed && config.window < positionCount) {
    Value last = graph.add(key, graph.scalar(graph.f32(), double(config.window)));
    isSeen = graph.create<AndOp>(isSeen, graph.create<CompareOp>(last, query, CompareKind::gt));
  }
  Value added = graph.create<WhereOp>(isSeen, graph.scalar(graph.f32(), 0),
                                      graph.scalar(graph.f32(), -std::numeric_limits<double>::infinity()));
  return graph.reshape(added, {1, 1, 1, sequence.size, sequence.total});
}

Value DecoderBuilder::rotaryTable(bool isWindowed, double (*function)(double)) {
  const int64_t pairs = config.rotarySize / 2;
  const bool isLocal = isWindowed && config.windowRotaryBase;
  const double base = isLocal ? config.windowRotaryBase : config.rotaryBase;
  std::vector<double> divisors(pairs, 1);
  if (weights.has("rope_freqs.weight")) {
    llvm::copy(weights.floats("rope_freqs.weight", {pairs}), divisors.begin());
  } else if (!isLocal && !config.rotaryDivisors.empty()) {
    divisors = config.rotaryDivisors;
  }
  const double scale = isLocal ? 1 : config.rotaryScale;
  std::vector<float> table(positionCount * pairs);
  for (int64_t i = 0; i < pairs; ++i) {
    const double frequency = std::pow(base, -2.0 * double(i) / double(config.rotarySize)) /
                             (divisors[i] * (isLocal ? 1 : config.rotaryFactor));
    for (int64_t position = 0; position < positionCount; ++position) {
      table[position * pairs + i] = float(scale * function(double(position) * frequency));
    }
  }
  return rowsOf(graph.constant({positionCount, pairs}, table, "rotary"));
}

Positions DecoderBuilder::makePositions(bool isWindowed) {
  graph.setName(isWindowed ? "window" : "positions");
  Positions result;
  if (config.rotarySize) {
    result.cos = rotaryTable(isWindowed, std::cos), result.sin = rotaryTable(isWindowed, std::sin);
  }
  for (const Sequence &sequence : sequences) {
    result.masks.push_back(mask(sequence, isWindowed));
  }
  return result;
}

//--- layers ---

Value DecoderBuilder::norm(Value x, const Twine &name) {
  Value scale = weights.vector(name + ".weight", config.width);
  Value bias = config.isRms ? Value() : weights.vector(name + ".bias", config.width);
  return graph.create<LayerNormOp>(x, scale, bias, 2, llvm::APFloat(config.epsilon), config.isRms);
}

/// Normalises each head of |x| [1, rows, heads, size] if the checkpoint has the norm.
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

Value DecoderBuilder::splitHeads(Value x, int64_t heads) { return graph.reshape(x, {1, rows, heads, config.headSize}); }

/// Moves the heads before the tokens, and rotates the queries or keys |x| [1, rows, heads, size].
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

/// Appends |x| [1, heads, seq, n] to a state and returns the whole as [1, heads, past + seq, n].
Value DecoderBuilder::store(Value x, const Sequence &sequence, const Twine &kind) {
  std::string suffix = ("." + Twine(layer) + "." + kind + sequence.suffix).str(), after = "present" + suffix;
  graph.setName(after);
  Value before = graph.addState("past" + suffix, after, getElementTypeOrSelf(x),
                                {1, config.keyHeads, sequence.past, Shape(x).back()});
  Value whole = graph.concat(before, x, 2);
  caches.emplace_back(after, whole);
  return whole;
}

/// Appends |x| [1, heads, seq, size] to the layer's cache and returns the whole as [1, heads, 1, past + seq, size].
Value DecoderBuilder::append(Value x, const Sequence &sequence, const Twine &kind) {
  OpBuilder &b = graph.getBuilder();
  Value whole;
  if (graph.hasFailed()) {
    return x;
  }
  if (options.cacheType == CacheType::F32) {
    whole = store(x, sequence, kind);
  } else if (options.cacheType == CacheType::BF16) {
    whole = graph.create<CastOp>(store(graph.create<CastOp>(x, b.getBF16Type()), sequence, kind), graph.f32());
  } else {
    constexpr double kSmallestScale = 1e-30; // of zeros
    Value largest = graph.create<ReduceOp>(graph.create<AbsOp>(x), ReduceKind::max, ArrayRef<int64_t>{3}, true);
    Value scale = graph.mul(largest, graph.scalar(graph.f32(), 1.0 / 127));
    scale = graph.create<MaxOp>(scale, graph.scalar(graph.f32(), kSmallestScale));
    Value rounded = graph.create<RoundOp>(graph.create<DivOp>(x, scale));
    Value integers =
        graph.create<CastOp>(graph.create<ClipOp>(rounded, llvm::APFloat(-127.0), llvm::APFloat(127.0)), b.getI8Type());
    integers = graph.create<CastOp>(store(integers, sequence, kind), graph.f32());
    whole = graph.mul(integers, store(scale, sequence, kind + "_scale"));
  }
  return graph.reshape(whole, {1, config.keyHeads, 1, sequence.total, config.headSize});
}

/// Returns the attention of a sequence's new tokens as [1, seq, heads * size]. The others are [1, heads, rows, size].
Value DecoderBuilder::attendWithin(const Sequence &sequence, Value q, Value k, Value v, Value mask) {
  if (sequences.size() > 1) {
    q = graph.slice(q, 2, sequence.first, sequence.size);
    k = graph.slice(k, 2, sequence.first, sequence.size), v = graph.slice(v, 2, sequence.first, sequence.size);
  }
  k = append(k, sequence, "key"), v = append(v, sequence, "value");
  graph.setName(block + "attention" + sequence.suffix);
  const double scale = config.attentionScale ? config.attentionScale : 1 / std::sqrt(double(config.headSize));
  q = graph.reshape(q, {1, config.keyHeads, config.heads / config.keyHeads, sequence.size, config.headSize});
  Value y = graph.create<AttentionOp>(q, k, v, mask, llvm::APFloat(scale), IntegerAttr());
  y = graph.transpose(graph.reshape(y, {1, config.heads, sequence.size, config.headSize}), {0, 2, 1, 3});
  return graph.reshape(y, {1, sequence.size, config.heads * config.headSize});
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
  k = rotate(headNorm(splitHeads(k, config.keyHeads), block + "attn_k_norm"), positions);
  graph.setName(block + "attn_v");
  v = graph.transpose(splitHeads(v, config.keyHeads), {0, 2, 1, 3});
  SmallVector<Value> parts;
  for (auto [sequence, mask] : llvm::zip(sequences, positions.masks)) {
    parts.push_back(attendWithin(sequence, q, k, v, mask));
  }
  graph.setName(block + "attention");
  return project(join(parts, 1), "attn_output", config.width);
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

/// Computes the logits of the last row, of all rows, or of those that the input `rows` lists.
Value DecoderBuilder::logits(Value x) {
  graph.setName("output");
  if (options.sequences) {
    Dim count = Dim::symbol(graph.getBuilder().getContext(), "wanted", 1, maxOf(rows), options.sequences);
    x = graph.create<GatherOp>(x, graph.addInput("rows", graph.getBuilder().getI64Type(), {count}), 1);
  } else if (!options.allLogits) {
    x = graph.slice(x, 1, rows - 1, 1);
  }
  x = norm(x, "output_norm");
  const bool isTied = !weights.has("output.weight");
  const std::string output = isTied ? "token_embd.weight" : "output.weight";
  return graph.linear(x, weights.matrix(output, {weights.dim(output, 0), config.width}), Value());
}

llvm::Expected<OwningOpRef<ModuleOp>> DecoderBuilder::run() {
  declareSizes();
  SmallVector<Value> inputs;
  for (const Sequence &sequence : sequences) {
    inputs.push_back(
        graph.addInput("input_ids" + sequence.suffix, graph.getBuilder().getI64Type(), {1, sequence.size}));
  }
  Value x = embed(join(inputs, 1));
  Positions all, windowed;
  for (layer = 0; layer < config.layers && !graph.hasFailed(); ++layer) {
    Positions &positions = isWindowed(layer) ? windowed : all;
    positions = positions.masks.empty() ? makePositions(isWindowed(layer)) : positions;
    block = "blk." + std::to_string(layer) + ".";
    graph.setName(block + "attn_norm");
    Value y = attend(norm(x, block + "attn_norm"), positions);
    const bool hasPostNorms = weights.has(block + "post_attention_norm.weight");
    x = graph.add(x, hasPostNorms ? norm(y, block + "post_attention_norm") : y);
    graph.setName(block + "ffn_norm");
    y = feedForward(norm(x, block + "ffn_norm"));
    x = graph.add(x, hasPostNorms ? norm(y, block + "post_ffw_norm") : y);
  }
  graph.addOutput("logits", logits(x));
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
  constexpr int64_t kMost = kMostLayers, kLargestHead = 1 << 12; // so that products and tables of sizes stay small
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
