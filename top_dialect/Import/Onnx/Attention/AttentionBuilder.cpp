//===- AttentionBuilder.cpp - Shared building blocks of the attention operators --===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/Attention/AttentionBuilder.h"

#include "top_dialect/IR/MaskedRows.h"
#include "top_dialect/Import/Onnx/GraphImporter.h"
#include "top_dialect/Import/Onnx/Sizes/SizeValues.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <limits>
#include <numeric>

using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

using Sizes = llvm::SmallVector<Dim>;

/// Returns |x| with a dim of size 1 inserted at |axis|.
Value insertDim(NodeImporter &n, Value x, int64_t axis) {
  Sizes sizes = NodeImporter::sizes(x);
  sizes.insert(sizes.begin() + axis, 1);
  return reshapeTo(n, x, sizes);
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
    Sizes dims = NodeImporter::sizes(q);
    int64_t queryHeads = NodeImporter::dim(q, 1);
    heads = NodeImporter::dim(k, 1);
    if (!n.failed() && (heads <= 0 || queryHeads <= 0 || queryHeads % heads != 0)) {
      n.fail(llvm::formatv("{0} query heads are not a multiple of {1} key heads", queryHeads, heads));
    }
    if (n.failed() || queryHeads == heads) {
      return;
    }
    repeats = queryHeads / heads;
    q = reshapeTo(n, q, {dims[0], heads, repeats, dims[2], dims[3]});
    k = insertDim(n, k, 2);
    v = insertDim(n, v, 2);
  }

  Value join(NodeImporter &n, Value x) const {
    Sizes dims = NodeImporter::sizes(x);
    return repeats == 1 || n.failed() ? x : reshapeTo(n, x, {dims[0], heads * repeats, dims[3], dims[4]});
  }
  Value split(NodeImporter &n, Value x) const {
    Sizes dims = NodeImporter::sizes(x);
    return repeats == 1 || n.failed() ? x : reshapeTo(n, x, {dims[0], heads, repeats, dims[2], dims[3]});
  }
  /// Returns a mask for [B, H, S, T] with the extra dim.
  Value splitMask(NodeImporter &n, Value mask) const {
    int64_t axis = mask ? NodeImporter::rank(mask) - 3 : -1;
    if (axis < 0 || repeats == 1 || n.failed()) {
      return mask;
    }
    Sizes sizes = NodeImporter::sizes(mask);
    bool isShared = sizes[axis].is(1);
    sizes[axis] = isShared ? 1 : heads;
    sizes.insert(sizes.begin() + axis + 1, isShared ? 1 : repeats);
    return reshapeTo(n, mask, sizes);
  }
};

/// Returns the softmax with one more score per head, which contributes to the sum but has no column in the result.
Value softmaxWithSink(NodeImporter &n, Value scores, Value sink) {
  Sizes dims = NodeImporter::sizes(scores);
  if (!sink || n.failed()) {
    return n.create<SoftmaxOp>(scores, 3, false);
  }
  Value column = reshapeTo(n, n.cast(sink, NodeImporter::elementType(scores)), {1, dims[1], 1, 1});
  column = n.expandTo(column, {dims[0], dims[1], dims[2], 1});
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

bool requireSizes(NodeImporter &n, llvm::ArrayRef<Value> values) {
  if (llvm::any_of(values, [](Value value) { return value && !Shape(value).isDetermined(); })) {
    n.unsupported("needs static dims, or ranges for open ones: fix them with --input_shapes, or use --dims");
  }
  return !n.failed();
}

bool makeEqual(NodeImporter &n, Dim a, Dim b, Value user) {
  mlir::Operation *op = user.getDefiningOp();
  detail::UnequalSizes sizes{a, b};
  ImportState &state = *n.graph.model.state;
  return sameSize(a, b) ||
         (op && (assumeEqual(sizes, op, state.replacedSymbols) || assumeEqual(sizes, op, state.regions)));
}

/// Returns true if an op that reads |value|, possibly through other ops, binds the symbol |name|.
static bool bindsSymbol(Value value, llvm::StringRef name, unsigned depth = 4) {
  return llvm::any_of(value.getUsers(), [&](mlir::Operation *user) {
    auto bind = mlir::dyn_cast<BindOp>(user);
    return bind ? bind.getSymbol().getName() == name
                : depth > 0 && user->getNumResults() == 1 && bindsSymbol(user->getResult(0), name, depth - 1);
  });
}

void requireEqual(NodeImporter &n, Value values, Value expected, llvm::StringRef difference) {
  std::string name = llvm::formatv("2 * ({0})", difference);
  if (n.failed() || bindsSymbol(values, name)) {
    return; // another layer requires it
  }
  // A symbol has at least two values, of which twice a difference takes only 0.
  Value twice = n.create<SubOp>(n.cast(values, n.b.getI64Type()), expected);
  twice = n.create<AddOp>(twice, twice);
  auto none = SizeSymbolAttr::get(n.b.getContext(), name, 0, 1, 0);
  for (int64_t i = 0; i < knownNumElements(twice).value_or(0) && !n.failed(); ++i) {
    BindOp::create(n.b, n.loc, twice, i, none);
  }
}

Value reshapeTo(NodeImporter &n, Value x, llvm::ArrayRef<Dim> sizes) {
  return n.failed() || NodeImporter::hasSizes(x, sizes) ? x : n.reshapeTo(x, sizes);
}

Value numbers(NodeImporter &n, Dim start, Dim limit, llvm::ArrayRef<Dim> sizes) {
  if (!start.isKnown() || !limit.isKnown()) {
    return reshapeTo(n, openRange(n, start, limit, n.b.getI64Type()), sizes);
  }
  Ints values(std::max<int64_t>(limit.value() - start.value(), 0));
  std::iota(values.begin(), values.end(), start.value());
  return reshapeTo(n, n.intVector(values), sizes);
}

Value splitHeads(NodeImporter &n, Value x, int64_t heads, llvm::StringRef what) {
  Sizes sizes = NodeImporter::sizes(x);
  if (sizes.size() == 4) {
    return x;
  }
  if (!n.failed() && (sizes.size() != 3 || heads <= 0 || !sizes[2].isKnown() || sizes[2].value() % heads != 0)) {
    n.fail(
        llvm::formatv("an input of rank {0} cannot be split into {1} = {2}; allowed: rank 3 with a last dim that is a "
                      "multiple of it, or rank 4",
                      sizes.size(), what, heads));
  }
  if (n.failed()) {
    return x;
  }
  return n.transpose(reshapeTo(n, x, {sizes[0], sizes[1], heads, sizes[2].value() / heads}), {0, 2, 1, 3});
}

Value joinHeads(NodeImporter &n, Value x) {
  Sizes dims = NodeImporter::sizes(x);
  return n.failed() ? x : reshapeTo(n, n.transpose(x, {0, 2, 1, 3}), {dims[0], dims[2], dims[1] * dims[3]});
}

Value sliceRange(NodeImporter &n, Value x, int64_t axis, Dim begin, Dim end) {
  Sizes sizes = NodeImporter::sizes(x), starts(sizes.size(), 0);
  if (n.failed() || (begin.is(0) && sameSize(end, sizes[axis]))) {
    return x;
  }
  starts[axis] = begin;
  sizes[axis] = end - begin;
  return n.slice(x, starts, sizes, Ints(sizes.size(), 1));
}

Value maskOf(NodeImporter &n, Value allowed, mlir::Type element, double hidden) {
  return n.create<WhereOp>(allowed, n.scalar(element, 0.0), n.scalar(element, hidden));
}

Value plus(NodeImporter &n, Value a, Value b) { return !a ? b : !b ? a : n.create<AddOp>(a, b); }

/// Returns the mask of a window for |ahead|, the distances of keys from their queries.
static Value maskOfDistances(NodeImporter &n, mlir::Type element, Value ahead, KeyWindow window) {
  Value allowed;
  if (window.right >= 0) {
    allowed = n.create<CompareOp>(ahead, n.scalarLike(ahead, static_cast<double>(window.right)), CompareKind::le);
  }
  if (window.left >= 0) {
    Value near = n.create<CompareOp>(ahead, n.scalarLike(ahead, -static_cast<double>(window.left)), CompareKind::ge);
    allowed = allowed ? n.create<AndOp>(allowed, near) : near;
  }
  return maskOf(n, allowed, element, -kInf);
}

Value windowMask(NodeImporter &n, mlir::Type element, Dim queries, Dim keys, KeyWindow window, Dim offset) {
  if (!queries.isKnown() || !keys.isKnown() || !offset.isKnown()) {
    Value position = numbers(n, offset, offset + queries, {queries, 1});
    return maskOfDistances(n, element, n.create<SubOp>(numbers(n, 0, keys, {1, keys}), position), window);
  }
  llvm::SmallVector<double> values;
  for (int64_t i = 0; i < queries.value(); ++i) {
    for (int64_t j = 0; j < keys.value(); ++j) {
      int64_t ahead = j - (i + offset.value());
      bool isHidden = (window.right >= 0 && ahead > window.right) || (window.left >= 0 && -ahead > window.left);
      values.push_back(isHidden ? -kInf : 0.0);
    }
  }
  return n.floatConstant(element, {queries.value(), keys.value()}, values);
}

Value windowMask(NodeImporter &n, mlir::Type element, int64_t queries, int64_t keys, KeyWindow window, Value offsets) {
  Value position = n.create<AddOp>(numbers(n, 0, queries, {queries, 1}),
                                   n.reshape(offsets, {NodeImporter::dim(offsets, 0), 1, 1, 1}));
  return maskOfDistances(n, element, n.create<SubOp>(numbers(n, 0, keys, {1, keys}), position), window);
}

Value lengthMask(NodeImporter &n, mlir::Type element, int64_t keys, Value lengths, double hidden) {
  Value ends = n.reshape(lengths, {NodeImporter::dim(lengths, 0), 1, 1, 1});
  return maskOf(n, n.create<CompareOp>(numbers(n, 0, keys, {keys}), ends, CompareKind::lt), element, hidden);
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
  int64_t size = NodeImporter::dim(x, 3);
  dims = dims == 0 ? size : dims;
  Sizes angles = NodeImporter::sizes(cos);
  if (dims < 2 || dims % 2 != 0 || dims > size || angles.size() != 3 || !angles.back().is(dims / 2) ||
      !NodeImporter::hasSizes(sin, angles)) {
    n.fail(llvm::formatv("cos and sin of rank {0} with a last dim of {1} do not fit heads of {2} elements of which {3} "
                         "are rotated; allowed are last dims of {4}",
                         angles.size(), angles.empty() ? "0" : toText(angles.back()), size, dims, dims / 2));
  }
  if (n.failed()) {
    return x;
  }
  angles.insert(angles.begin() + 1, 1);
  mlir::Type element = NodeImporter::elementType(x);
  Value c = n.cast(reshapeTo(n, cos, angles), element), s = n.cast(reshapeTo(n, sin, angles), element);
  Value y = n.create<RopeOp>(sliceRange(n, x, 3, 0, dims), c, s, interleaved);
  return dims == size ? y : n.create<ConcatOp>(mlir::ValueRange{y, sliceRange(n, x, 3, dims, size)}, 3);
}

Value gatherAngles(NodeImporter &n, Value table, Value positions) {
  if (!n.failed() && (NodeImporter::rank(table) != 2 || NodeImporter::rank(positions) != 2)) {
    n.fail(llvm::formatv("tables of angles of rank {0} and positions of rank {1}; both must have rank 2",
                         NodeImporter::rank(table), NodeImporter::rank(positions)));
  }
  return n.create<GatherOp>(table, positions, 0);
}

} // namespace tessera::top::onnx_import
