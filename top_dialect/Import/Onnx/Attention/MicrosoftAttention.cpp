//===- MicrosoftAttention.cpp - Handlers of onnxruntime's attention operators --===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/Attention/AttentionBuilder.h"

#include "llvm/Support/FormatVariadic.h"

#include <array>
#include <limits>
#include <numeric>

using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

/// Rejects each attribute in |names| unless its value is 0.
void rejectAttributes(NodeImporter &n, llvm::ArrayRef<const char *> names) {
  for (const char *name : names) {
    if (n.intAttr(name, 0) != 0) {
      n.unsupported(llvm::formatv("attribute '{0}' is {1}; supported is 0", name, n.intAttr(name, 0)));
    }
  }
}

/// Returns the additive mask [B, 1, 1 or S, T] for the input |mask|. The mask is the number of real keys per batch
/// entry (right padding), or the ends and starts of the real keys (left padding), or 0 for each key to hide.
Value paddingMask(NodeImporter &n, Value mask, mlir::Type element, int64_t batch, int64_t queries, int64_t keys,
                  double hidden) {
  llvm::ArrayRef<int64_t> shape = NodeImporter::shape(mask);
  mlir::Type i64 = n.b.getI64Type();
  if (shape.size() == 1 && shape[0] == batch) {
    return lengthMask(n, element, keys, n.cast(mask, i64), hidden);
  }
  if (shape.size() == 1 && shape[0] == 2 * batch) {
    Value wide = n.cast(mask, i64);
    Value ends = sliceRange(n, wide, 0, 0, batch), starts = sliceRange(n, wide, 0, batch, 2 * batch);
    Value behind = lengthMask(n, element, keys, ends, hidden), before = lengthMask(n, element, keys, starts, hidden);
    Value isReal = n.create<CompareOp>(before, n.scalar(element, 0.0), CompareKind::ne);
    return n.create<WhereOp>(isReal, behind, n.scalar(element, hidden));
  }
  Value allowed = n.create<CompareOp>(mask, n.scalarLike(mask, 0), CompareKind::gt);
  if (shape == llvm::ArrayRef<int64_t>({batch, keys})) {
    return maskOf(n, n.reshape(allowed, {batch, 1, 1, keys}), element, hidden);
  }
  if (shape == llvm::ArrayRef<int64_t>({batch, queries, keys})) {
    return maskOf(n, n.reshape(allowed, {batch, 1, queries, keys}), element, hidden);
  }
  n.unsupported(
      llvm::formatv("a mask of rank {0} with dims that do not match {1} sequences of {2} queries and {3} keys; "
                    "supported are [{1}], [{4}], [{1}, {3}] and [{1}, {2}, {3}]",
                    shape.size(), batch, queries, keys, 2 * batch));
  return {};
}

/// Adds the bias of input |bias|, the mask of input |mask| and the mask of unidirectional attention to the scores.
void addMasks(NodeImporter &n, Attention &a, unsigned mask, unsigned bias, int64_t past) {
  int64_t batch = NodeImporter::dim(a.q, 0), queries = NodeImporter::dim(a.q, 2), keys = NodeImporter::dim(a.k, 2);
  mlir::Type element = NodeImporter::elementType(a.q);
  double hidden = n.floatAttr("mask_filter_value", -10000.0);
  a.bias = n.optionalInput(bias);
  if (n.hasInput(mask) && !n.failed()) {
    a.bias = plus(n, a.bias, paddingMask(n, n.input(mask), element, batch, queries, keys, hidden));
  }
  if (n.intAttr("unidirectional", 0) != 0 && !n.failed()) {
    if (keys != past + queries) {
      n.unsupported(
          llvm::formatv("unidirectional attention of {0} queries to {1} new keys; supported are equal numbers", queries,
                        keys - past));
    }
    a.bias = plus(n, a.bias, windowMask(n, element, queries, keys, KeyWindow{-1, 0}, past));
  }
}

void appendPast(NodeImporter &n, Attention &a, Value pastKey, Value pastValue) {
  a.k = n.create<ConcatOp>(mlir::ValueRange{pastKey, a.k}, 2);
  a.v = n.create<ConcatOp>(mlir::ValueRange{pastValue, a.v}, 2);
}

llvm::SmallVector<Value> givenInputs(NodeImporter &n) {
  llvm::SmallVector<Value> given;
  for (unsigned i = 0; i < n.numInputs(); ++i) {
    given.push_back(n.optionalInput(i));
  }
  return given;
}

bool requireStaticInputs(NodeImporter &n) { return requireStaticDims(n, givenInputs(n)); }

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// Multiplies the input by the joined weights of queries, keys and values, and splits the product into the three.
std::array<Value, 3> project(NodeImporter &n) {
  Value x = n.input(0), w = n.input(1);
  int64_t total = NodeImporter::dim(w, 1);
  Ints sizes = n.intsAttr("qkv_hidden_sizes", {total / 3, total / 3, total / 3});
  if (!n.failed() && (NodeImporter::rank(x) != 3 || NodeImporter::rank(w) != 2 || sizes.size() != 3 ||
                      sizes[0] + sizes[1] + sizes[2] != total || sizes[0] != sizes[1])) {
    n.fail(llvm::formatv("an input of rank {0} and weights of rank {1} with {2} columns do not match qkv_hidden_sizes",
                         NodeImporter::rank(x), NodeImporter::rank(w), total));
  }
  if (n.failed()) {
    return {x, x, x};
  }
  Value joined = n.create<MatMulOp>(x, w, n.optionalInput(2), false, false, false, llvm::APFloat(-1.0));
  std::array<Value, 3> parts;
  int64_t begin = 0;
  for (int i = 0; i < 3; ++i) {
    parts[i] = sliceRange(n, joined, 2, begin, begin + sizes[i]);
    begin += sizes[i];
  }
  return parts;
}

void attention(NodeImporter &n) {
  n.allowOnly({"do_rotary", "mask_filter_value", "num_heads", "past_present_share_buffer", "qkv_hidden_sizes",
               "rotary_embedding_dim", "scale", "unidirectional"},
              6);
  rejectAttributes(n, {"do_rotary", "past_present_share_buffer"});
  int64_t heads = n.requiredInt("num_heads");
  if (n.failed() || !requireStaticInputs(n)) {
    return;
  }
  std::array<Value, 3> parts = project(n);
  Attention a;
  a.q = splitHeads(n, parts[0], heads, "num_heads");
  a.k = splitHeads(n, parts[1], heads, "num_heads");
  a.v = splitHeads(n, parts[2], heads, "num_heads");
  if (n.hasInput(4) && !n.failed()) {
    Ints dims(NodeImporter::shape(n.input(4)));
    if (dims.size() != 5 || dims[0] != 2) {
      n.fail(llvm::formatv("its past has rank {0}; expected [2, batch, heads, keys, size]", dims.size()));
      return;
    }
    dims.erase(dims.begin());
    Value keys = n.reshape(sliceRange(n, n.input(4), 0, 0, 1), dims),
          values = n.reshape(sliceRange(n, n.input(4), 0, 1, 2), dims);
    appendPast(n, a, keys, values);
  }
  addMasks(n, a, 3, 5, NodeImporter::dim(a.k, 2) - NodeImporter::dim(a.q, 2));
  a.setScale(n.floatAttr("scale", 0));
  n.setOutput(0, joinHeads(n, makeAttention(n, a).y));
  if (n.wantsOutput(1) && !n.failed()) {
    Ints dims(NodeImporter::shape(a.k));
    if (NodeImporter::shape(a.v) != llvm::ArrayRef<int64_t>(dims)) {
      n.unsupported("its output 1, 'present', for keys and values of different sizes is not supported");
    }
    dims.insert(dims.begin(), 1);
    n.setOutput(1, n.create<ConcatOp>(mlir::ValueRange{n.reshape(a.k, dims), n.reshape(a.v, dims)}, 0));
  }
}

//===----------------------------------------------------------------------===//
// MultiHeadAttention
//===----------------------------------------------------------------------===//

/// Extracts part |i| of a tensor [B, S, heads, parts, E] as [B, heads, S, E].
Value unpackHeads(NodeImporter &n, Value x, int64_t i) {
  Ints dims(NodeImporter::shape(x));
  return n.transpose(n.reshape(sliceRange(n, x, 3, i, i + 1), {dims[0], dims[1], dims[2], dims[4]}), {0, 2, 1, 3});
}

/// Adds the entries of the joined bias from |begin| on to |x| [B, S, E]. Returns the index of the first entry for the
/// next tensor.
int64_t addBias(NodeImporter &n, Value &x, int64_t begin) {
  int64_t size = NodeImporter::dim(x, 2);
  if (n.hasInput(3) && !n.failed()) {
    x = n.create<AddOp>(x, sliceRange(n, n.input(3), 0, begin, begin + size));
  }
  return begin + size;
}

void multiHeadAttention(NodeImporter &n) {
  n.allowOnly({"mask_filter_value", "num_heads", "scale", "unidirectional"}, 8);
  if (n.wantsOutput(3)) {
    n.unsupported("its output 3, 'qk', is not supported");
  }
  int64_t heads = n.requiredInt("num_heads");
  if (n.failed() || !requireStaticInputs(n)) {
    return;
  }
  Value q = n.input(0), k = n.optionalInput(1), v = n.optionalInput(2);
  int64_t ranks[] = {NodeImporter::rank(q), k ? NodeImporter::rank(k) : 0, v ? NodeImporter::rank(v) : 0};
  Attention a;
  if (ranks[0] == 5 && !k && !v && !n.hasInput(3)) {
    a.q = unpackHeads(n, q, 0);
    a.k = unpackHeads(n, q, 1);
    a.v = unpackHeads(n, q, 2);
  } else if (ranks[0] == 3 && ranks[1] == 5 && !v && !n.hasInput(3)) {
    a.q = splitHeads(n, q, heads, "num_heads");
    a.k = unpackHeads(n, k, 0);
    a.v = unpackHeads(n, k, 1);
  } else if (ranks[0] == 3 && ranks[1] == ranks[2] && (ranks[1] == 3 || ranks[1] == 4)) {
    int64_t next = addBias(n, q, 0);
    if (ranks[1] == 3) { // keys of rank 4 come from a cache and already contain the bias
      addBias(n, v, addBias(n, k, next));
    }
    a.q = splitHeads(n, q, heads, "num_heads");
    a.k = splitHeads(n, k, heads, "num_heads");
    a.v = splitHeads(n, v, heads, "num_heads");
  } else {
    n.unsupported(
        llvm::formatv("query, key and value have rank {0}, {1} and {2} (0: missing){3}; supported are 3, 3, 3 "
                      "and 3, 4, 4, and without bias 5, 0, 0 and 3, 5, 0",
                      ranks[0], ranks[1], ranks[2], n.hasInput(3) ? " with a bias" : ""));
    return;
  }
  if (n.hasInput(6) != n.hasInput(7)) {
    n.fail("past_key and past_value must be given together");
  } else if (n.hasInput(6) && !n.failed()) {
    appendPast(n, a, n.input(6), n.input(7));
  }
  addMasks(n, a, 4, 5, n.hasInput(6) ? NodeImporter::dim(n.input(6), 2) : 0);
  a.setScale(n.floatAttr("scale", 0));
  n.setOutput(0, joinHeads(n, makeAttention(n, a).y));
  n.setOutput(1, a.k);
  n.setOutput(2, a.v);
}

//===----------------------------------------------------------------------===//
// GroupQueryAttention
//===----------------------------------------------------------------------===//

/// Keys and values are in a cache that each call extends. The number of tokens of a batch entry is known at run time.
class GroupQuery {
public:
  explicit GroupQuery(NodeImporter &n) : n(n) {}

  void run() {
    reject();
    heads = n.requiredInt("num_heads");
    keyHeads = n.requiredInt("kv_num_heads");
    llvm::SmallVector<Value> given = givenInputs(n);
    if (n.failed() || !requireSizes(n, given)) {
      return;
    }
    bool isOpen = llvm::any_of(given, [](Value value) { return value && !Shape(value).isKnown(); });
    if (!(isOpen ? attendOpen() : attendStatic())) {
      return;
    }
    a.setScale(n.floatAttr("scale", 0));
    a.softcap = n.floatAttr("softcap", 0);
    a.sink = n.optionalInput(11);
    if (!a.sink && n.intAttr("smooth_softmax", 0) > 0) {
      a.sink = n.floatConstant(n.b.getF32Type(), {heads}, llvm::SmallVector<double>(heads, 0.0));
    }
    n.setOutput(0, joinHeads(n, makeAttention(n, a).y));
    n.setOutput(1, a.k);
    n.setOutput(2, a.v);
  }

private:
  bool attendStatic() {
    sharesBuffers = n.hasInput(3) && !getConstantInts(n.input(6));
    Ints total = sharesBuffers ? Ints{NodeImporter::dim(n.input(3), 2)} : n.constantInts(6, "total_sequence_length");
    if (n.failed() || !readOperands() || total.size() != 1) {
      return false;
    }
    tokens = total.front();
    batch = NodeImporter::dim(a.q, 0);
    findPlaces();
    normalise();
    rotate(n.hasInput(9) ? n.input(9) : positionsFrom(starts, NodeImporter::dim(a.q, 2)));
    a.k = extend(n.optionalInput(3), a.k);
    a.v = extend(n.optionalInput(4), a.v);
    addBias();
    return true;
  }

  /// Appends the new tokens to the cache. All sequences must have the same number of tokens.
  bool attendOpen() {
    if (!readOperands()) {
      return false;
    }
    Dim before = n.hasInput(3) ? NodeImporter::sizes(n.input(3))[2] : Dim(0), count = NodeImporter::sizes(a.q)[2];
    normalise();
    rotate(n.hasInput(9) ? n.input(9) : numbers(n, before, before + count, {1, count}));
    if (n.hasInput(3)) {
      appendPast(n, a, n.input(3), n.input(4));
    }
    requireTotal(before + count);
    requireLengths(before + count);
    int64_t window = n.intAttr("local_window_size", -1);
    KeyWindow keys{window > 0 ? window - 1 : -1, n.intAttr("causal", 1) != 0 ? 0 : -1};
    if (!keys.isOpen()) {
      a.bias = windowMask(n, NodeImporter::elementType(a.q), count, before + count, keys, before);
    }
    a.bias = plus(n, a.bias, n.optionalInput(10));
    return !n.failed();
  }

  /// Makes total_sequence_length (input 6) the size |tokens|.
  void requireTotal(Dim tokens) {
    llvm::SmallVector<Dim> total = n.sizesInput(6, "total_sequence_length");
    if (!n.failed() && (total.size() != 1 || !makeEqual(n, total.front(), tokens, a.k))) {
      n.unsupported(llvm::formatv("total_sequence_length is {0}; with open dims, it must be the length of past_key and "
                                  "that of query: {1}",
                                  total.size() == 1 ? toText(total.front()) : "no number", toText(tokens)));
    }
  }

  /// Lets runs fail in which seqlens_k (input 5), the numbers of tokens - 1, differs from |tokens| - 1.
  void requireLengths(Dim tokens) {
    Value lengths = n.input(5);
    if (auto known = n.openSizes(lengths);
        n.failed() || (known && llvm::all_of(*known, [&](Dim last) { return sameSize(last + 1, tokens); }))) {
      return;
    }
    requireEqual(n, lengths, numbers(n, tokens - 1, tokens, {1}),
                 llvm::formatv("seqlens_k + 1 - ({0})", toText(tokens)).str());
  }

  /// Sets |starts| and |ends|. In the first call, all sequences start at 0, even if they end before the last query.
  void findPlaces() {
    int64_t queries = NodeImporter::dim(a.q, 2);
    mlir::Type i64 = n.b.getI64Type();
    ends = n.create<AddOp>(n.cast(n.reshape(n.input(5), {batch}), i64), n.scalar(i64, 1));
    Value count = n.scalar(i64, static_cast<double>(queries)), zeros = n.create<MulOp>(ends, n.scalar(i64, 0));
    starts = !sharesBuffers && tokens == queries ? zeros : n.create<SubOp>(ends, count);
    if (sharesBuffers) {
      Value isFirst =
          n.create<CompareOp>(n.reshape(n.cast(n.input(6), i64), {1}), n.reshape(count, {1}), CompareKind::eq);
      starts = n.create<WhereOp>(isFirst, zeros, starts);
    }
  }

  void reject() {
    n.allowOnly({"causal", "do_rotary", "k_norm_epsilon", "k_quant_type", "kv_cache_bit_width", "kv_num_heads",
                 "local_window_size", "num_heads", "q_norm_epsilon", "qk_norm_epsilon", "qk_output",
                 "rotary_interleaved", "scale", "sliding_window_cache", "smooth_softmax", "softcap", "v_quant_type"},
                16);
    rejectAttributes(n, {"sliding_window_cache", "kv_cache_bit_width", "qk_output"});
    if (n.hasInput(12) || n.hasInput(13)) {
      n.unsupported("k_scale and v_scale (inputs 12 and 13) are not supported");
    }
    for (const char *name : {"k_quant_type", "v_quant_type"}) {
      if (n.stringAttr(name, "NONE") != "NONE") {
        n.unsupported(llvm::formatv("attribute '{0}' is '{1}'; supported is NONE", name, n.stringAttr(name, "NONE")));
      }
    }
    if (n.hasInput(14) != n.hasInput(15)) {
      n.fail("q_norm_weight and k_norm_weight must be given together");
    }
    if (n.hasInput(3) != n.hasInput(4)) {
      n.fail("past_key and past_value must be given together");
    }
  }

  bool readOperands() {
    Value q = n.input(0), k = n.optionalInput(1), v = n.optionalInput(2);
    int64_t width = NodeImporter::dim(q, 2);
    if (NodeImporter::rank(q) != 3 || heads < 1 || keyHeads < 1 || !k != !v) {
      n.fail("query must have rank 3, num_heads and kv_num_heads must be positive, and key and value must be given "
             "together");
      return false;
    }
    if (!k) {
      int64_t size = width / (heads + 2 * keyHeads);
      v = sliceRange(n, q, 2, (heads + keyHeads) * size, width);
      k = sliceRange(n, q, 2, heads * size, (heads + keyHeads) * size);
      q = sliceRange(n, q, 2, 0, heads * size);
    }
    a.q = splitHeads(n, q, heads, "num_heads");
    a.k = splitHeads(n, k, keyHeads, "kv_num_heads");
    a.v = splitHeads(n, v, keyHeads, "kv_num_heads");
    return !n.failed();
  }

  void normalise() {
    if (!n.hasInput(14)) {
      return;
    }
    double shared = n.floatAttr("qk_norm_epsilon", 1e-6);
    auto norm = [&](Value x, unsigned weight, double epsilon) {
      return n.create<LayerNormOp>(x, n.input(weight), Value(), 3, llvm::APFloat(epsilon), true);
    };
    a.q = norm(a.q, 14, n.floatAttr("q_norm_epsilon", shared));
    a.k = norm(a.k, 15, n.floatAttr("k_norm_epsilon", shared));
  }

  /// Returns |first| + 0, 1, ... for each batch entry, as [B, |count|].
  Value positionsFrom(Value first, int64_t count) {
    Ints numbers(count);
    std::iota(numbers.begin(), numbers.end(), 0);
    return n.create<AddOp>(n.reshape(first, {batch, 1}), n.intVector(numbers));
  }

  void rotate(Value positions) {
    if (n.intAttr("do_rotary", 0) == 0 || n.failed()) {
      return;
    }
    Value cos = gatherAngles(n, n.input(7), positions), sin = gatherAngles(n, n.input(8), positions);
    bool interleaved = n.intAttr("rotary_interleaved", 0) != 0;
    int64_t dims = 2 * NodeImporter::dim(cos, 2);
    a.q = makeRotary(n, a.q, cos, sin, dims, interleaved);
    a.k = makeRotary(n, a.k, cos, sin, dims, interleaved);
  }

  /// Returns |past| with |rows| written from index |starts| of each batch entry on. If past and present share a buffer,
  /// its size is the largest number of tokens and the rest does not change; otherwise there are zeros after the tokens.
  Value extend(Value past, Value rows) {
    int64_t count = NodeImporter::dim(rows, 2), old = past ? NodeImporter::dim(past, 2) : 0;
    int64_t size = std::max(old, tokens);
    if (old == 0 || n.failed()) {
      return pad(rows, size - count);
    }
    Value cache = pad(past, size - old);
    Value places = n.reshape(positionsFrom(starts, count), {batch, 1, count, 1});
    places = n.create<ExpandOp>(places, Value(), Ints(NodeImporter::shape(rows)));
    Value extended = n.create<ScatterElementsOp>(cache, places, rows, 2, ScatterReduction::none);
    if (sharesBuffers || (batch == 1 && size == tokens)) {
      return extended; // the cache has no space after the tokens, or keeps what is there
    }
    Ints numbers(size);
    std::iota(numbers.begin(), numbers.end(), 0);
    Value isToken = n.create<CompareOp>(n.reshape(n.intVector(numbers), {size, 1}), n.reshape(ends, {batch, 1, 1, 1}),
                                        CompareKind::lt);
    return n.create<WhereOp>(isToken, extended, n.scalarLike(extended, 0));
  }

  Value pad(Value x, int64_t more) {
    Ints pads(8, 0);
    pads[6] = more;
    return more == 0 || n.failed() ? x : n.create<PadOp>(x, pads, PadMode::constant, llvm::APFloat(0.0));
  }

  void addBias() {
    mlir::Type element = NodeImporter::elementType(a.q);
    int64_t queries = NodeImporter::dim(a.q, 2), keys = NodeImporter::dim(a.k, 2);
    int64_t window = n.intAttr("local_window_size", -1);
    if (n.failed()) {
      return;
    }
    if (n.intAttr("causal", 1) != 0) {
      a.bias = windowMask(n, element, queries, keys, KeyWindow{window > 0 ? window - 1 : -1, 0}, starts);
    } else {
      a.bias = lengthMask(n, element, keys, ends, -std::numeric_limits<double>::infinity());
    }
    if (n.hasInput(10)) {
      Value given = n.input(10);
      a.bias = n.create<AddOp>(a.bias, pad3(given, keys - NodeImporter::dim(given, 3)));
    }
  }

  /// Returns |x| with |more| zeros appended in the last dim.
  Value pad3(Value x, int64_t more) {
    Ints pads(8, 0);
    pads[7] = more;
    return more <= 0 || n.failed() ? x : n.create<PadOp>(x, pads, PadMode::constant, llvm::APFloat(0.0));
  }

  NodeImporter &n;
  Attention a;
  Value starts, ends; ///< the number of tokens of each batch entry before and after the call, i64 [B]
  int64_t heads = 0, keyHeads = 0, batch = 0, tokens = 0;
  bool sharesBuffers = false; ///< the number of tokens, at most the size of past, is known at run time only
};

void groupQueryAttention(NodeImporter &n) { GroupQuery(n).run(); }

//===----------------------------------------------------------------------===//
// RotaryEmbedding
//===----------------------------------------------------------------------===//

void rotaryEmbedding(NodeImporter &n) {
  n.allowOnly({"interleaved", "is_packed_batching", "num_heads", "rotary_embedding_dim", "scale"}, 4);
  rejectAttributes(n, {"is_packed_batching"});
  if (n.floatAttr("scale", 1.0) != 1.0) {
    n.unsupported(llvm::formatv("attribute 'scale' is {0}; supported is 1", n.floatAttr("scale", 1.0)));
  }
  Value x = n.input(0), positions = n.input(1), cos = n.input(2), sin = n.input(3);
  if (!requireSizes(n, {x, positions, cos, sin})) {
    return;
  }
  int64_t dims = n.intAttr("rotary_embedding_dim", 0), heads = n.intAttr("num_heads", 0);
  bool isFlat = NodeImporter::rank(x) == 3;
  if (isFlat && heads == 0) { // whole heads are rotated
    heads = NodeImporter::dim(x, 2) / std::max<int64_t>(2 * NodeImporter::dim(cos, 1), 1);
  }
  x = splitHeads(n, x, heads, "num_heads");
  if (n.failed()) {
    return;
  }
  Dim batch = NodeImporter::sizes(x)[0], count = NodeImporter::sizes(x)[2];
  if (NodeImporter::rank(positions) == 1 && NodeImporter::dim(positions, 0) == 1) { // of the first token
    positions = n.create<AddOp>(n.cast(positions, n.b.getI64Type()), numbers(n, 0, count, {count}));
    positions = n.expandTo(positions, {batch, count});
  }
  Value y = makeRotary(n, x, gatherAngles(n, cos, positions), gatherAngles(n, sin, positions), dims,
                       n.intAttr("interleaved", 0) != 0);
  n.setOutput(0, isFlat ? joinHeads(n, y) : y);
}

constexpr llvm::StringLiteral kDomain = "com.microsoft";
constexpr HandlerEntry kHandlers[] = {
    {kDomain, "Attention", attention},
    {kDomain, "MultiHeadAttention", multiHeadAttention},
    {kDomain, "GroupQueryAttention", groupQueryAttention},
    {kDomain, "RotaryEmbedding", rotaryEmbedding},
};

} // namespace

llvm::ArrayRef<HandlerEntry> microsoftAttentionHandlers() { return kHandlers; }

} // namespace tessera::top::onnx_import
