//===- AttentionBuilder.cpp - Shared building blocks of the attention operators --===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/Attention/AttentionBuilder.h"

#include "top_dialect/IR/MaskedRows.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <limits>
#include <numeric>

using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

/// Returns |x| with a dim of size 1 inserted at |axis|.
Value insertDim(NodeImporter &n, Value x, int64_t axis) {
  Ints shape(NodeImporter::shape(x));
  shape.insert(shape.begin() + axis, 1);
  return n.reshape(x, shape);
}

/// Returns the numbers 0 to |count| - 1 in the given |shape|.
Value iota(NodeImporter &n, int64_t count, llvm::ArrayRef<int64_t> shape) {
  Ints values(count);
  std::iota(values.begin(), values.end(), 0);
  return n.reshape(n.intVector(values), shape);
}

Value multiply(NodeImporter &n, Value a, Value b, bool transB) {
  return n.create<MatMulOp>(a, b, Value(), false, transB, false, llvm::APFloat(-1.0));
}

/// Queries, keys and values with an extra dim for the query heads that share a key head. This avoids copies of the keys
/// and values.
struct Groups {
  Value q, k, v;
  int64_t heads = 0, repeats = 1;

  Groups(NodeImporter &n, const Attention &a) : q(a.q), k(a.k), v(a.v) {
    Ints dims(NodeImporter::shape(q));
    heads = NodeImporter::dim(k, 1);
    if (!n.failed() && (heads <= 0 || dims[1] % heads != 0)) {
      n.fail(llvm::formatv("{0} query heads are not a multiple of {1} key heads", dims[1], heads));
    }
    if (n.failed() || dims[1] == heads) {
      return;
    }
    repeats = dims[1] / heads;
    q = n.reshape(q, {dims[0], heads, repeats, dims[2], dims[3]});
    k = insertDim(n, k, 2);
    v = insertDim(n, v, 2);
  }

  Value join(NodeImporter &n, Value x) const {
    Ints dims(NodeImporter::shape(x));
    return repeats == 1 || n.failed() ? x : n.reshape(x, {dims[0], heads * repeats, dims[3], dims[4]});
  }
  Value split(NodeImporter &n, Value x) const {
    Ints dims(NodeImporter::shape(x));
    return repeats == 1 || n.failed() ? x : n.reshape(x, {dims[0], heads, repeats, dims[2], dims[3]});
  }
  /// Returns a mask for [B, H, S, T] with the extra dim.
  Value splitMask(NodeImporter &n, Value mask) const {
    int64_t axis = mask ? NodeImporter::rank(mask) - 3 : -1;
    if (axis < 0 || repeats == 1 || n.failed()) {
      return mask;
    }
    Ints shape(NodeImporter::shape(mask));
    bool isShared = shape[axis] == 1;
    shape[axis] = isShared ? 1 : heads;
    shape.insert(shape.begin() + axis + 1, isShared ? 1 : repeats);
    return n.reshape(mask, shape);
  }
};

/// Returns the softmax with one more score per head, which contributes to the sum but has no column in the result.
Value softmaxWithSink(NodeImporter &n, Value scores, Value sink) {
  Ints dims(NodeImporter::shape(scores));
  if (!sink || n.failed()) {
    return n.create<SoftmaxOp>(scores, 3, false);
  }
  Value column = n.reshape(n.cast(sink, NodeImporter::elementType(scores)), {1, dims[1], 1, 1});
  column = n.create<ExpandOp>(column, Value(), Ints{dims[0], dims[1], dims[2], 1});
  Value all = n.create<SoftmaxOp>(n.create<ConcatOp>(mlir::ValueRange{scores, column}, 3), 3, false);
  return sliceRange(n, all, 3, 0, dims[3]);
}

/// Sets the rows for which |bias| hides every key to 0, as ONNX requires.
Value zeroHiddenRows(NodeImporter &n, Value probabilities, Value bias) {
  int64_t last = NodeImporter::rank(bias) - 1;
  Value most = last < 0 ? bias : n.create<ReduceOp>(bias, ReduceKind::max, Ints{last}, true);
  Value isHidden = n.create<CompareOp>(most, n.scalarLike(most, -kInf), CompareKind::eq);
  return n.create<WhereOp>(isHidden, n.scalarLike(probabilities, 0.0), probabilities);
}

AttentionResults makeInSteps(NodeImporter &n, const Attention &a, const Groups &groups) {
  mlir::Type element = NodeImporter::elementType(a.q);
  Value scores = groups.join(n, multiply(n, groups.q, groups.k, true));
  scores = n.create<MulOp>(scores, n.scalar(element, a.scale));
  AttentionResults results;
  auto keep = [&](Attention::Scores kind) { results.scores = a.wanted == kind ? scores : results.scores; };
  keep(Attention::products);
  if (a.softcap != 0) {
    Value cap = n.scalar(element, a.softcap);
    scores = n.create<MulOp>(n.create<TanhOp>(n.create<DivOp>(scores, cap)), cap);
  }
  keep(Attention::capped);
  scores = plus(n, scores, a.bias);
  keep(Attention::biased);
  scores = softmaxWithSink(n, a.softmaxType ? n.cast(scores, a.softmaxType) : scores, a.sink);
  scores = n.cast(scores, element);
  scores = a.mayHideRows && a.bias ? zeroHiddenRows(n, scores, a.bias) : scores;
  keep(Attention::probabilities);
  results.y = groups.join(n, multiply(n, groups.split(n, scores), groups.v, false));
  return results;
}

} // namespace

bool requireStaticDims(NodeImporter &n, llvm::ArrayRef<Value> values) {
  for (Value value : values) {
    if (value && llvm::any_of(NodeImporter::shape(value), mlir::ShapedType::isDynamic)) {
      n.unsupported("needs static dims: fix them with --input_shapes");
    }
  }
  return !n.failed();
}

Value splitHeads(NodeImporter &n, Value x, int64_t heads, llvm::StringRef what) {
  llvm::ArrayRef<int64_t> shape = NodeImporter::shape(x);
  if (shape.size() == 4) {
    return x;
  }
  if (!n.failed() && (shape.size() != 3 || heads <= 0 || shape[2] % heads != 0)) {
    n.fail(
        llvm::formatv("an input of rank {0} cannot be split into {1} = {2}; allowed: rank 3 with a last dim that is a "
                      "multiple of it, or rank 4",
                      shape.size(), what, heads));
  }
  if (n.failed()) {
    return x;
  }
  return n.transpose(n.reshape(x, {shape[0], shape[1], heads, shape[2] / heads}), {0, 2, 1, 3});
}

Value joinHeads(NodeImporter &n, Value x) {
  Ints dims(NodeImporter::shape(x));
  return n.failed() ? x : n.reshape(n.transpose(x, {0, 2, 1, 3}), {dims[0], dims[2], dims[1] * dims[3]});
}

Value sliceRange(NodeImporter &n, Value x, int64_t axis, int64_t begin, int64_t end) {
  Ints sizes(NodeImporter::shape(x)), starts(sizes.size(), 0), steps(sizes.size(), 1);
  if (n.failed() || (begin == 0 && end == sizes[axis])) {
    return x;
  }
  starts[axis] = begin;
  sizes[axis] = end - begin;
  return n.create<SliceOp>(x, starts, sizes, steps);
}

Value maskOf(NodeImporter &n, Value allowed, mlir::Type element, double hidden) {
  return n.create<WhereOp>(allowed, n.scalar(element, 0.0), n.scalar(element, hidden));
}

Value plus(NodeImporter &n, Value a, Value b) { return !a ? b : !b ? a : n.create<AddOp>(a, b); }

Value windowMask(NodeImporter &n, mlir::Type element, int64_t queries, int64_t keys, KeyWindow window, int64_t offset) {
  llvm::SmallVector<double> values;
  for (int64_t i = 0; i < queries; ++i) {
    for (int64_t j = 0; j < keys; ++j) {
      int64_t ahead = j - (i + offset);
      bool isHidden = (window.right >= 0 && ahead > window.right) || (window.left >= 0 && -ahead > window.left);
      values.push_back(isHidden ? -kInf : 0.0);
    }
  }
  return n.floatConstant(element, {queries, keys}, values);
}

Value windowMask(NodeImporter &n, mlir::Type element, int64_t queries, int64_t keys, KeyWindow window, Value offsets) {
  Value position =
      n.create<AddOp>(iota(n, queries, {queries, 1}), n.reshape(offsets, {NodeImporter::dim(offsets, 0), 1, 1, 1}));
  Value ahead = n.create<SubOp>(iota(n, keys, {1, keys}), position), allowed;
  if (window.right >= 0) {
    allowed = n.create<CompareOp>(ahead, n.scalarLike(ahead, static_cast<double>(window.right)), CompareKind::le);
  }
  if (window.left >= 0) {
    Value near = n.create<CompareOp>(ahead, n.scalarLike(ahead, -static_cast<double>(window.left)), CompareKind::ge);
    allowed = allowed ? n.create<AndOp>(allowed, near) : near;
  }
  return maskOf(n, allowed, element, -kInf);
}

Value lengthMask(NodeImporter &n, mlir::Type element, int64_t keys, Value lengths, double hidden) {
  Value ends = n.reshape(lengths, {NodeImporter::dim(lengths, 0), 1, 1, 1});
  return maskOf(n, n.create<CompareOp>(iota(n, keys, {keys}), ends, CompareKind::lt), element, hidden);
}

void Attention::setScale(double given) {
  scale = given != 0 ? given : 1.0 / std::sqrt(static_cast<double>(NodeImporter::dim(q, 3)));
}

AttentionResults makeAttention(NodeImporter &n, const Attention &a) {
  Groups groups(n, a);
  if (n.failed()) {
    return {a.q, {}};
  }
  if (a.softcap != 0 || a.sink || a.softmaxType || a.wanted != Attention::none) {
    return makeInSteps(n, a, groups);
  }
  Value y = n.create<AttentionOp>(groups.q, groups.k, groups.v, groups.splitMask(n, a.bias), llvm::APFloat(a.scale),
                                  /*levels=*/mlir::IntegerAttr());
  if (auto op = y.getDefiningOp<AttentionOp>()) {
    setZeroMaskedRows(op, a.mayHideRows);
  }
  return {groups.join(n, y), {}};
}

Value makeRotary(NodeImporter &n, Value x, Value cos, Value sin, int64_t dims, bool interleaved) {
  if (n.failed()) {
    return x;
  }
  Ints shape(NodeImporter::shape(x));
  dims = dims == 0 ? shape[3] : dims;
  Ints angles(NodeImporter::shape(cos));
  if ((dims < 2 || dims % 2 != 0 || dims > shape[3] || angles.size() != 3 || angles.back() != dims / 2 ||
       NodeImporter::shape(sin) != llvm::ArrayRef<int64_t>(angles))) {
    n.fail(llvm::formatv("cos and sin of rank {0} with a last dim of {1} do not fit heads of {2} elements of which {3} "
                         "are rotated; allowed are last dims of {4}",
                         angles.size(), angles.empty() ? 0 : angles.back(), shape[3], dims, dims / 2));
  }
  if (n.failed()) {
    return x;
  }
  angles.insert(angles.begin() + 1, 1);
  mlir::Type element = NodeImporter::elementType(x);
  Value c = n.cast(n.reshape(cos, angles), element), s = n.cast(n.reshape(sin, angles), element);
  Value y = n.create<RopeOp>(sliceRange(n, x, 3, 0, dims), c, s, interleaved);
  return dims == shape[3] ? y : n.create<ConcatOp>(mlir::ValueRange{y, sliceRange(n, x, 3, dims, shape[3])}, 3);
}

Value gatherAngles(NodeImporter &n, Value table, Value positions) {
  if (!n.failed() && (NodeImporter::rank(table) != 2 || NodeImporter::rank(positions) != 2)) {
    n.fail(llvm::formatv("tables of angles of rank {0} and positions of rank {1}; both must have rank 2",
                         NodeImporter::rank(table), NodeImporter::rank(positions)));
  }
  return n.create<GatherOp>(table, positions, 0);
}

} // namespace tessera::top::onnx_import
