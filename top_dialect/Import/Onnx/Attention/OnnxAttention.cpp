//===- OnnxAttention.cpp - Handlers of Attention, RotaryEmbedding and TensorScatter ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/Attention/AttentionBuilder.h"

#include "llvm/Support/FormatVariadic.h"

#include <limits>
#include <numeric>

using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

/// Returns the mask to add to the scores. Keys beyond the length of the mask are hidden.
Value additiveMask(NodeImporter &n, Value mask, mlir::Type element, Dim keys) {
  mask = NodeImporter::elementType(mask).isInteger(1) ? maskOf(n, mask, element, -kInf) : n.cast(mask, element);
  llvm::SmallVector<Dim> sizes = NodeImporter::sizes(mask);
  if (n.failed() || sizes.empty() || sizes.back().is(1) || !sizes.back().isKnown() || !keys.isKnown() ||
      sizes.back().value() >= keys.value()) {
    return mask; // open sizes must be equal
  }
  sizes.back() = keys - sizes.back();
  Value hidden = n.expandTo(n.floatConstant(element, Ints(sizes.size(), 1), {-kInf}), sizes);
  return n.create<ConcatOp>(mlir::ValueRange{mask, hidden}, static_cast<int64_t>(sizes.size()) - 1);
}

/// Reads the attributes is_causal, left_window_size and right_window_size.
KeyWindow readWindow(NodeImporter &n) {
  KeyWindow window{n.intAttr("left_window_size", -1), n.intAttr("right_window_size", -1)};
  if (window.left < -1 || window.right < -1) {
    n.fail(llvm::formatv("left_window_size is {0} and right_window_size {1}; allowed are -1 and sizes", window.left,
                         window.right));
  }
  window.right = n.intAttr("is_causal", 0) != 0 ? 0 : window.right;
  return window;
}

/// Returns the type in which the softmax must be computed if AttentionOp does not use it, else null.
mlir::Type readSoftmaxType(NodeImporter &n, mlir::Type element) {
  int64_t given = n.intAttr("softmax_precision", 0);
  mlir::Type type = given != 0 ? n.typeOf(given) : mlir::Type();
  return type && type != element && !type.isF32() ? type : mlir::Type();
}

void attention(NodeImporter &n) {
  bool isFlat = NodeImporter::rank(n.input(0)) == 3;
  llvm::SmallVector<Value> given;
  for (unsigned i = 0; i < 7; ++i) {
    given.push_back(n.optionalInput(i));
  }
  bool hasSizes = given[6] ? requireStaticDims(n, given) : requireSizes(n, given);
  if (!hasSizes) {
    return;
  }
  int64_t queryHeads = n.intAttr("q_num_heads", 0), keyHeads = n.intAttr("kv_num_heads", 0);
  Attention a;
  a.q = splitHeads(n, n.input(0), queryHeads, "q_num_heads");
  a.k = splitHeads(n, n.input(1), keyHeads, "kv_num_heads");
  a.v = splitHeads(n, n.input(2), keyHeads, "kv_num_heads");
  Value past = given[4], lengths = given[6];
  if ((past && !given[5]) || (!past && given[5]) || (past && lengths)) {
    n.fail("past_key and past_value must be given together and without nonpad_kv_seqlen");
  }
  if (past) {
    a.k = n.create<ConcatOp>(mlir::ValueRange{past, a.k}, 2);
    a.v = n.create<ConcatOp>(mlir::ValueRange{given[5], a.v}, 2);
  }
  if (n.failed()) {
    return;
  }
  mlir::Type element = NodeImporter::elementType(a.q);
  Dim queries = NodeImporter::sizes(a.q)[2], keys = NodeImporter::sizes(a.k)[2];
  a.mayHideRows = given[3] || lengths;
  a.bias = given[3] ? additiveMask(n, given[3], element, keys) : Value();
  KeyWindow window = readWindow(n);
  if (lengths) {
    lengths = n.cast(lengths, n.b.getI64Type());
    a.bias = plus(n, a.bias, lengthMask(n, element, keys.value(), lengths, -kInf));
  }
  if (!window.isOpen() && lengths) {
    Value offsets = n.create<SubOp>(lengths, n.scalarLike(lengths, static_cast<double>(queries.value())));
    a.bias = plus(n, a.bias, windowMask(n, element, queries.value(), keys.value(), window, offsets));
  } else if (!window.isOpen()) {
    Dim offset = past ? NodeImporter::sizes(past)[2] : Dim(0);
    a.bias = plus(n, a.bias, windowMask(n, element, queries, keys, window, offset));
    a.mayHideRows |= window.left >= 0; // the last queries may have no keys in their window
  }
  a.setScale(n.floatAttr("scale", 0));
  a.softcap = n.floatAttr("softcap", 0);
  a.softmaxType = readSoftmaxType(n, element);
  int64_t mode = n.intAttr("qk_matmul_output_mode", 0);
  if (n.wantsOutput(3) && (mode < 0 || mode > 3)) {
    n.fail(llvm::formatv("qk_matmul_output_mode is {0}; allowed are 0 to 3", mode));
  }
  a.wanted = n.wantsOutput(3) ? static_cast<Attention::Scores>(Attention::products + mode) : Attention::none;
  AttentionResults results = makeAttention(n, a);
  n.setOutput(0, isFlat ? joinHeads(n, results.y) : results.y);
  n.setOutput(1, a.k);
  n.setOutput(2, a.v);
  n.setOutput(3, results.scores);
}

void rotaryEmbedding(NodeImporter &n) {
  Value x = n.input(0), cos = n.input(1), sin = n.input(2), positions = n.optionalInput(3);
  if (!requireSizes(n, {x, cos, sin, positions})) {
    return;
  }
  bool isFlat = NodeImporter::rank(x) == 3;
  x = splitHeads(n, x, n.intAttr("num_heads", 0), "num_heads");
  if (positions) {
    cos = gatherAngles(n, cos, positions);
    sin = gatherAngles(n, sin, positions);
  }
  Value y = makeRotary(n, x, cos, sin, n.intAttr("rotary_embedding_dim", 0), n.intAttr("interleaved", 0) != 0);
  n.setOutput(0, isFlat ? joinHeads(n, y) : y);
}

/// Writes the rows of an update to index write_indices[batch] + row of a cache, modulo its size in circular mode.
void tensorScatter(NodeImporter &n) {
  Value cache = n.input(0), update = n.input(1), starts = n.optionalInput(2);
  if (!requireStaticDims(n, {cache, update, starts})) {
    return;
  }
  int64_t rank = NodeImporter::rank(cache), axis = n.normalizeAxis(n.intAttr("axis", -2), rank);
  std::string mode = n.stringAttr("mode", "linear");
  Ints dims(NodeImporter::shape(cache)), rows(NodeImporter::shape(update));
  if (!n.failed() && (axis == 0 || (mode != "linear" && mode != "circular") || rows.size() != dims.size() ||
                      rows[axis] > dims[axis])) {
    n.fail(llvm::formatv("axis {0}, mode '{1}' and an update of {2} rows do not match a cache of rank {3}", axis, mode,
                         rows.size() == dims.size() ? rows[axis] : 0, rank));
  }
  if (n.failed()) {
    return;
  }
  Ints shape(rank, 1), numbers(rows[axis]);
  shape[axis] = rows[axis];
  std::iota(numbers.begin(), numbers.end(), 0);
  Value places = n.reshape(n.intVector(numbers), shape);
  if (starts) {
    Ints perBatch(rank, 1);
    perBatch[0] = NodeImporter::dim(starts, 0);
    places = n.create<AddOp>(places, n.reshape(n.cast(starts, n.b.getI64Type()), perBatch));
  }
  if (mode == "circular") {
    places = n.create<ModOp>(places, n.scalarLike(places, static_cast<double>(dims[axis])), false);
  }
  places = n.create<ExpandOp>(places, Value(), rows);
  n.setOutput(0, n.create<ScatterElementsOp>(cache, places, update, axis, ScatterReduction::none));
}

constexpr HandlerEntry kHandlers[] = {
    {"", "Attention", attention, 23},
    {"", "RotaryEmbedding", rotaryEmbedding, 23},
    {"", "TensorScatter", tensorScatter, 24},
};

} // namespace

llvm::ArrayRef<HandlerEntry> attentionHandlers() { return kHandlers; }

} // namespace tessera::top::onnx_import
