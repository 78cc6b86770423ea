//===- OnnxReduce.cpp - Handlers of reductions, softmax and normalisations ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/ShapeInference.h"
#include "top_dialect/Import/Onnx/NodeImporter.h"
#include "top_dialect/Import/Onnx/Operators/OpBuilders.h"
#include "top_dialect/Import/Onnx/Shapes/RunTimeShapes.h"
#include "top_dialect/Import/Onnx/Sizes/IndexArithmetic.h"

#include "llvm/Support/FormatVariadic.h"

#include <limits>
#include <numeric>

using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

Ints allAxes(int64_t rank) {
  Ints axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

/// Returns |shape| with the dims from |axis| on merged into one.
Ints joinedFrom(llvm::ArrayRef<int64_t> shape, int64_t axis) {
  int64_t inner = 1;
  for (int64_t dim : shape.drop_front(axis)) {
    inner = detail::mulDims(inner, dim);
  }
  Ints joined(shape.take_front(axis));
  joined.push_back(inner);
  return joined;
}

/// Returns the reduction |kind| of each element of |x| alone. It differs from the element for sums of squares,
/// magnitudes and logarithms.
Value reduceNothing(NodeImporter &n, Value x, ReduceKind kind) {
  if (kind != ReduceKind::l1 && kind != ReduceKind::l2 && kind != ReduceKind::sum_square &&
      kind != ReduceKind::log_sum) {
    return n.create<ReduceOp>(x, kind, Ints(), true);
  }
  Ints single(NodeImporter::shape(x));
  if (llvm::any_of(single, mlir::ShapedType::isDynamic)) {
    n.unsupported("it reduces no axis and has open dims: fix them with --input_shapes");
    return x;
  }
  single.push_back(1);
  return n.create<ReduceOp>(n.reshape(x, single), kind, Ints{int64_t(single.size()) - 1}, false);
}

/// Reduces axes that are known at run time. Sums of squares and logarithms of sums are sums, because only sums can be
/// computed axis by axis.
void reduceAtRunTime(NodeImporter &n, Value x, ReduceKind kind) {
  bool isSum = kind == ReduceKind::sum_square || kind == ReduceKind::log_sum;
  x = kind == ReduceKind::sum_square ? n.create<MulOp>(x, x) : x;
  Value y = reduceRunTimeAxes(n, x, [&](Value from, int64_t axis) {
    return n.create<ReduceOp>(from, isSum ? ReduceKind::sum : kind, Ints{axis}, true);
  });
  n.setOutput(0, kind == ReduceKind::log_sum ? n.create<LogOp>(y) : y);
}

/// The axes are an attribute in older opsets and an input in newer ones. Without axes, all dims are reduced, or none
/// with noop_with_empty_axes. A scalar has no axes.
template <ReduceKind kind>
void reduce(NodeImporter &n) {
  Value x = n.input(0);
  int64_t rank = NodeImporter::rank(x);
  if (isRunTime(n, 1)) {
    reduceAtRunTime(n, x, kind);
    return;
  }
  Ints axes = n.hasInput(1) ? n.constantInts(1, "the list of axes") : n.intsAttr("axes");
  axes = n.normalizeAxes(axes, rank);
  if (axes.empty() && (rank == 0 || n.intAttr("noop_with_empty_axes", 0) != 0)) {
    n.setOutput(0, reduceNothing(n, x, kind));
    return;
  }
  llvm::sort(axes);
  n.setOutput(0, n.create<ReduceOp>(x, kind, axes.empty() ? allAxes(rank) : axes, n.intAttr("keepdims", 1) != 0));
}

template <bool min>
void argReduce(NodeImporter &n) {
  Value x = n.input(0);
  int64_t axis = n.normalizeAxis(n.intAttr("axis", 0), NodeImporter::rank(x));
  n.setOutput(
      0, n.create<ArgReduceOp>(x, axis, min, n.intAttr("keepdims", 1) != 0, n.intAttr("select_last_index", 0) != 0));
}

void cumSum(NodeImporter &n) {
  Value x = n.input(0);
  bool isExclusive = n.intAttr("exclusive", 0) != 0, isReverse = n.intAttr("reverse", 0) != 0;
  if (isRunTime(n, 1)) {
    n.setOutput(0, applyAlongRunTimeAxis(n, x, [&](Value from, int64_t d) {
                  return n.create<CumSumOp>(from, d, isExclusive, isReverse);
                }));
    return;
  }
  Ints axis = n.constantInts(1, "the axis");
  if (axis.size() != 1) {
    n.fail("the axis is not a single number");
    return;
  }
  n.setOutput(0, n.create<CumSumOp>(x, n.normalizeAxis(axis[0], NodeImporter::rank(x)), isExclusive, isReverse));
}

void makeTopK(NodeImporter &n, int64_t k, bool largest) {
  Value x = n.input(0);
  if (k < 0) { // top.topk sorts all elements then
    n.fail(llvm::formatv("k = {0} is negative", k));
  }
  int64_t axis = n.normalizeAxis(n.intAttr("axis", -1), NodeImporter::rank(x));
  auto results = n.createMulti<TopKOp>(2, x, k, axis, largest);
  n.setOutput(0, results[0]);
  n.setOutput(1, results[1]);
}

void topK1(NodeImporter &n) { makeTopK(n, n.requiredInt("k"), true); }

/// Sorts all elements and keeps the first k.
void topKAtRunTime(NodeImporter &n) {
  Value x = n.input(0);
  int64_t axis = n.normalizeAxis(n.intAttr("axis", -1), NodeImporter::rank(x));
  Dim dim = n.failed() ? Dim(1) : NodeImporter::sizes(x)[axis];
  auto k = n.openSizes(n.input(1));
  k = k ? k : n.bindSizes(n.input(1), maxOf(dim));
  if (dim.isUnknown() || !k) {
    n.unsupported("k is computed at run time and the dim is open: fix it with --input_shapes");
    return;
  }
  auto sorted = n.createMulti<TopKOp>(2, x, dim.isKnown() ? dim.value() : -1, axis, n.intAttr("largest", 1) != 0);
  for (unsigned i = 0; i < 2; ++i) {
    n.setOutput(i, takeFront(n, sorted[i], axis, k->front()));
  }
}

void topK(NodeImporter &n) {
  if (isRunTime(n, 1) || n.openSizes(n.input(1))) {
    topKAtRunTime(n);
    return;
  }
  Ints k = n.constantInts(1, "k");
  if (k.size() != 1) {
    n.fail("k is not a single number");
    return;
  }
  makeTopK(n, k[0], n.intAttr("largest", 1) != 0);
}

} // namespace

Value makeSoftmax(NodeImporter &n, Value x, bool log) {
  return n.create<SoftmaxOp>(x, n.normalizeAxis(n.intAttr("axis", -1), NodeImporter::rank(x)), log);
}

Value makeFlatSoftmax(NodeImporter &n, Value x, bool log) {
  int64_t rank = NodeImporter::rank(x), axis = n.intAttr("axis", 1);
  axis = axis == rank ? rank : n.normalizeAxis(axis, rank);
  llvm::ArrayRef<int64_t> shape = NodeImporter::shape(x);
  // If at most one axis has a size other than 1, the plain form gives the same result and keeps the rank.
  int64_t wide = -1, count = 0;
  for (int64_t d = axis; d < rank; ++d) {
    if (shape[d] != 1) {
      wide = d;
      ++count;
    }
  }
  if (count <= 1 && axis < rank) {
    return n.create<SoftmaxOp>(x, count ? wide : axis, log);
  }
  Ints flat = joinedFrom(shape, axis);
  auto original = NodeImporter::sizes(x);
  if (mlir::ShapedType::isDynamic(flat.back())) {
    n.unsupported("softmax over several dims needs these to be static: fix them with --input_shapes");
    return x;
  }
  Value y = n.create<SoftmaxOp>(n.reshape(x, flat), axis, log);
  return n.failed() ? y : n.reshapeTo(y, original);
}

namespace {

template <bool log>
void softmax(NodeImporter &n) {
  n.setOutput(0, makeSoftmax(n, n.input(0), log));
}

template <bool log>
void flatSoftmax(NodeImporter &n) {
  n.setOutput(0, makeFlatSoftmax(n, n.input(0), log));
}

void hardmax(NodeImporter &n) {
  Value x = n.input(0);
  int64_t rank = NodeImporter::rank(x);
  bool flatten = n.opset < 13;
  int64_t axis = n.normalizeAxis(n.intAttr("axis", flatten ? 1 : -1), rank);
  Ints shape(NodeImporter::shape(x));
  if (llvm::any_of(shape, mlir::ShapedType::isDynamic)) {
    n.unsupported("needs static dims: fix them with --input_shapes");
    return;
  }
  if (flatten) {
    x = n.reshape(x, joinedFrom(shape, axis));
  }
  Value index = n.create<ArgReduceOp>(x, axis, false, false, false);
  Value onOff = n.floatConstant(NodeImporter::elementType(x), {2}, {0.0, 1.0});
  Value y = n.create<OneHotOp>(index, onOff, NodeImporter::dim(x, axis), axis);
  n.setOutput(0, n.reshape(y, shape));
}

void batchNorm(NodeImporter &n) {
  if (n.intAttr("training_mode", 0) != 0) {
    makeTrainingBatchNorm(n);
    return;
  }
  // Outputs after the first are running statistics for training. They are left out if unused.
  n.setOutput(0, n.create<BatchNormOp>(n.input(0), n.input(1), n.input(2), n.input(3), n.input(4),
                                       llvm::APFloat(n.floatAttr("epsilon", 1e-5))));
}

/// Creates a norm with a scale and a bias (or null) that may broadcast to the dims of `x`.
Value makeLayerNorm(NodeImporter &n, Value x, Value scale, Value bias, int64_t axis, double epsilon, bool rms) {
  llvm::ArrayRef<int64_t> dims = NodeImporter::shape(x).drop_front(axis);
  auto fits = [&](Value v) { return !v || NodeImporter::shape(v) == dims; };
  bool isStatic = llvm::none_of(dims, mlir::ShapedType::isDynamic);
  if (!isStatic || (fits(scale) && fits(bias))) {
    return n.create<LayerNormOp>(x, scale, bias, axis, llvm::APFloat(epsilon), rms);
  }
  Value norm = n.create<LayerNormOp>(x, Value(), Value(), axis, llvm::APFloat(epsilon), rms);
  Value scaled = n.create<MulOp>(norm, scale);
  return bias ? Value(n.create<AddOp>(scaled, bias)) : scaled;
}

void layerNorm(NodeImporter &n) {
  Value x = n.input(0);
  int64_t axis = n.normalizeAxis(n.intAttr("axis", -1), NodeImporter::rank(x));
  double epsilon = n.floatAttr("epsilon", 1e-5);
  n.setOutput(0, makeLayerNorm(n, x, n.input(1), n.optionalInput(2), axis, epsilon, false));
  if (n.wantsOutput(1) || n.wantsOutput(2)) {
    Ints axes;
    for (int64_t d = axis; d < NodeImporter::rank(x); ++d) {
      axes.push_back(d);
    }
    Value wide = n.cast(x, n.b.getF32Type()); // stash_type 1 is the only value that exporters write
    Value mean = n.create<ReduceOp>(wide, ReduceKind::mean, axes, true);
    Value centred = n.create<SubOp>(wide, mean);
    Value variance = n.create<ReduceOp>(n.create<MulOp>(centred, centred), ReduceKind::mean, axes, true);
    n.setOutput(1, mean);
    n.setOutput(2, n.create<RsqrtOp>(n.create<AddOp>(variance, n.scalarLike(wide, epsilon))));
  }
}

void rmsNorm(NodeImporter &n) {
  Value x = n.input(0);
  int64_t axis = n.normalizeAxis(n.intAttr("axis", -1), NodeImporter::rank(x));
  n.setOutput(0, makeLayerNorm(n, x, n.input(1), Value(), axis, n.floatAttr("epsilon", 1e-5), true));
}

/// SkipLayerNormalization of com.microsoft: layer_norm(x + skip + bias). Output 3 is the sum.
template <bool rms>
void skipLayerNorm(NodeImporter &n) {
  Value sum = n.create<AddOp>(n.input(0), n.input(1));
  unsigned biasInput = rms ? 3 : 4;
  if (n.hasInput(biasInput)) {
    sum = n.create<AddOp>(sum, n.input(biasInput));
  }
  Value beta = rms ? Value() : n.optionalInput(3);
  n.setOutput(0, n.create<LayerNormOp>(sum, n.input(2), beta, NodeImporter::rank(sum) - 1,
                                       llvm::APFloat(n.floatAttr("epsilon", 1e-12)), rms));
  n.setOutput(3, sum);
}

/// Returns true, with an error, if the number of channels of `x` is known only at run time.
bool hasOpenChannels(NodeImporter &n, Value x) {
  bool isOpen = mlir::ShapedType::isDynamic(NodeImporter::shape(x)[1]);
  if (isOpen) {
    n.unsupported("its channel dim is open: fix it with --input_shapes");
  }
  return isOpen;
}

void groupNorm(NodeImporter &n) {
  Value x = n.input(0), scale = n.input(1), bias = n.input(2);
  int64_t groups = n.requiredInt("num_groups");
  if (n.failed() || NodeImporter::rank(x) < 2) {
    n.fail("its input needs rank 2 or more");
    return;
  }
  if (hasOpenChannels(n, x)) {
    return;
  }
  int64_t channels = NodeImporter::shape(x)[1];
  if (groups < 1 || channels % groups != 0) {
    n.fail(llvm::formatv("num_groups {0} does not divide the {1} channels", groups, channels));
    return;
  }
  // Up to opset 20, scale and bias are per group.
  auto perChannel = [&](Value v) {
    if (NodeImporter::rank(v) != 1 || NodeImporter::shape(v)[0] == channels) {
      return v;
    }
    Value column = n.reshape(v, {groups, 1});
    return n.reshape(n.create<ExpandOp>(column, Value(), Ints{groups, channels / groups}), {channels});
  };
  n.setOutput(0, n.create<GroupNormOp>(x, perChannel(scale), perChannel(bias), groups,
                                       llvm::APFloat(n.floatAttr("epsilon", 1e-5))));
}

void instanceNorm(NodeImporter &n) {
  Value x = n.input(0);
  if (NodeImporter::rank(x) < 3) {
    n.fail("its input needs rank 3 or more");
    return;
  }
  if (hasOpenChannels(n, x)) {
    return;
  }
  n.setOutput(0, n.create<GroupNormOp>(x, n.input(1), n.input(2), NodeImporter::shape(x)[1],
                                       llvm::APFloat(n.floatAttr("epsilon", 1e-5))));
}

void lrn(NodeImporter &n) {
  n.setOutput(0, n.create<LrnOp>(n.input(0), n.requiredInt("size"), llvm::APFloat(n.floatAttr("alpha", 1e-4)),
                                 llvm::APFloat(n.floatAttr("beta", 0.75)), llvm::APFloat(n.floatAttr("bias", 1.0))));
}

void lpNorm(NodeImporter &n) {
  Value x = n.input(0);
  int64_t axis = n.normalizeAxis(n.intAttr("axis", -1), NodeImporter::rank(x)), p = n.intAttr("p", 2);
  if (p != 1 && p != 2) {
    n.fail(llvm::formatv("p is {0}; allowed are 1 and 2", p));
    return;
  }
  Value norm = n.create<ReduceOp>(x, p == 1 ? ReduceKind::l1 : ReduceKind::l2, Ints{axis}, true);
  // If the norm is 0, the result is defined as 0.
  Value isZero = n.create<CompareOp>(norm, n.scalarLike(norm, 0.0), CompareKind::eq);
  norm = n.create<WhereOp>(isZero, n.scalarLike(norm, std::numeric_limits<double>::infinity()), norm);
  n.setOutput(0, n.create<DivOp>(x, norm));
}

void meanVarianceNorm(NodeImporter &n) {
  Value x = n.input(0);
  Ints axes = n.normalizeAxes(n.intsAttr("axes", {0, 2, 3}), NodeImporter::rank(x));
  llvm::sort(axes);
  Value centred = n.create<SubOp>(x, n.create<ReduceOp>(x, ReduceKind::mean, axes, true));
  Value variance = n.create<ReduceOp>(n.create<MulOp>(centred, centred), ReduceKind::mean, axes, true);
  Value deviation = n.create<AddOp>(n.create<SqrtOp>(variance), n.scalarLike(x, 1e-9));
  n.setOutput(0, n.create<DivOp>(centred, deviation));
}

} // namespace

llvm::ArrayRef<HandlerEntry> reduceHandlers() {
  static const HandlerEntry entries[] = {
      {"", "ReduceSum", reduce<ReduceKind::sum>},
      {"", "ReduceMean", reduce<ReduceKind::mean>},
      {"", "ReduceMax", reduce<ReduceKind::max>},
      {"", "ReduceMin", reduce<ReduceKind::min>},
      {"", "ReduceProd", reduce<ReduceKind::prod>},
      {"", "ReduceL1", reduce<ReduceKind::l1>},
      {"", "ReduceL2", reduce<ReduceKind::l2>},
      {"", "ReduceSumSquare", reduce<ReduceKind::sum_square>},
      {"", "ReduceLogSum", reduce<ReduceKind::log_sum>},
      {"", "ReduceLogSumExp", reduce<ReduceKind::log_sum_exp>},
      {"", "ArgMax", argReduce<false>},
      {"", "ArgMin", argReduce<true>},
      {"", "CumSum", cumSum},
      {"", "TopK", topK1},
      {"", "TopK", topK, 10},
      {"", "Softmax", flatSoftmax<false>},
      {"", "Softmax", softmax<false>, 13},
      {"", "LogSoftmax", flatSoftmax<true>},
      {"", "LogSoftmax", softmax<true>, 13},
      {"", "Hardmax", hardmax},
      {"", "BatchNormalization", batchNorm},
      {"", "LayerNormalization", layerNorm},
      {"", "RMSNormalization", rmsNorm},
      {"", "SimplifiedLayerNormalization", rmsNorm},
      {"com.microsoft", "SkipLayerNormalization", skipLayerNorm<false>},
      {"com.microsoft", "SkipSimplifiedLayerNormalization", skipLayerNorm<true>},
      {"", "GroupNormalization", groupNorm},
      {"", "InstanceNormalization", instanceNorm},
      {"", "LRN", lrn},
      {"", "LpNormalization", lpNorm},
      {"", "MeanVarianceNormalization", meanVarianceNorm},
  };
  return entries;
}

} // namespace tessera::top::onnx_import
