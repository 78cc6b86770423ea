//===- OnnxTraining.cpp - Handlers of operators in training graphs --------===//
// SPDX-License-Identifier: Apache-2.0
//
// Losses, and batch normalisation with the statistics of the batch. Exporters write the latter for modules without
// running statistics and for modules that normalise their own weights.
#include "top_dialect/Import/Onnx/NodeImporter.h"
#include "top_dialect/Import/Onnx/Operators/OpBuilders.h"

#include "llvm/Support/FormatVariadic.h"

#include <numeric>

using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

/// Reshapes [C] to [C, 1, ...] so that it broadcasts along the dims after dim 1 of a tensor of |rank|.
Value perChannel(NodeImporter &n, Value v, int64_t rank) {
  Ints dims(rank - 1, 1);
  dims[0] = NodeImporter::dim(v, 0);
  return n.reshape(v, dims);
}

/// Returns old * momentum + current * (1 - momentum), as [C].
Value runningMean(NodeImporter &n, Value old, Value current, double momentum) {
  Value first = n.create<MulOp>(old, n.scalarLike(old, momentum));
  Value next = n.cast(n.reshape(current, {NodeImporter::dim(current, 1)}), NodeImporter::elementType(old));
  return n.create<AddOp>(first, n.create<MulOp>(next, n.scalarLike(old, 1.0 - momentum)));
}

} // namespace

void makeTrainingBatchNorm(NodeImporter &n) {
  Value x = n.input(0), scale = n.input(1), bias = n.input(2), mean = n.input(3), variance = n.input(4);
  int64_t rank = NodeImporter::rank(x), channels = NodeImporter::dim(x, 1);
  double epsilon = n.floatAttr("epsilon", 1e-5), momentum = n.floatAttr("momentum", 0.9);
  if (!n.failed() && (rank < 2 || mlir::ShapedType::isDynamic(channels))) {
    n.fail("its input needs rank 2 or more and a static channel dim");
  }
  for (Value parameter : {scale, bias, mean, variance}) {
    if (!n.failed() && (NodeImporter::rank(parameter) != 1 || NodeImporter::dim(parameter, 0) != channels)) {
      n.fail(llvm::formatv("scale, bias, mean and variance need one number for each of the {0} channels", channels));
    }
  }
  if (n.failed()) {
    return;
  }
  Ints axes{0};
  for (int64_t d = 2; d < rank; ++d) {
    axes.push_back(d);
  }
  mlir::Type element = NodeImporter::elementType(x), f32 = n.b.getF32Type();
  bool wide = element.isF64();
  Value exact = wide ? x : n.cast(x, f32);
  mlir::Type computed = NodeImporter::elementType(exact);
  Value current = n.create<ReduceOp>(exact, ReduceKind::mean, axes, true);
  Value centred = n.create<SubOp>(exact, current);
  Value spread = n.create<ReduceOp>(n.create<MulOp>(centred, centred), ReduceKind::mean, axes, true);
  if (NodeImporter::dim(x, 0) == 1 && rank > 2 && !isConstant(x)) {
    // The statistics of a batch of one are those of each channel. Files list the running statistics, but few use them.
    n.setOutput(
        0, n.create<GroupNormOp>(x, n.cast(scale, element), n.cast(bias, element), channels, llvm::APFloat(epsilon)));
  } else {
    Value factor = n.create<RsqrtOp>(n.create<AddOp>(spread, n.scalarLike(spread, epsilon)));
    factor = n.create<MulOp>(factor, perChannel(n, n.cast(scale, computed), rank));
    Value y = n.create<AddOp>(n.create<MulOp>(centred, factor), perChannel(n, n.cast(bias, computed), rank));
    n.setOutput(0, n.cast(y, element));
  }
  if (n.wantsOutput(1)) {
    n.setOutput(1, runningMean(n, mean, current, momentum));
  }
  if (n.wantsOutput(2)) {
    n.setOutput(2, runningMean(n, variance, spread, momentum));
  }
}

namespace {

//===----------------------------------------------------------------------===//
// Losses
//===----------------------------------------------------------------------===//

/// Returns the loss for class log probabilities [N, C, D...] and |target| [N, D...].
Value negativeLogLikelihood(NodeImporter &n, Value logs, Value target, Value weight) {
  int64_t rank = NodeImporter::rank(logs);
  Ints dims(NodeImporter::shape(target)), column(dims);
  if (!n.failed() && (rank < 2 || NodeImporter::rank(target) != rank - 1 ||
                      llvm::any_of(NodeImporter::shape(logs), mlir::ShapedType::isDynamic) ||
                      llvm::any_of(dims, mlir::ShapedType::isDynamic))) {
    n.unsupported(llvm::formatv("a target of rank {0} for an input of rank {1}; expected one less, with static dims",
                                NodeImporter::rank(target), rank));
  }
  if (n.failed()) {
    return logs;
  }
  Value ignored;
  if (n.hasAttr("ignore_index")) {
    // An ignored target may be outside the range of classes, so it is replaced by 0.
    auto index = static_cast<double>(n.intAttr("ignore_index", 0));
    ignored = n.create<CompareOp>(target, n.scalarLike(target, index), CompareKind::eq);
    target = n.create<WhereOp>(ignored, n.scalarLike(target, 0), target);
  }
  column.insert(column.begin() + 1, 1);
  Value picked = n.reshape(n.create<GatherElementsOp>(logs, n.reshape(target, column), 1), dims);
  Value loss = n.create<NegOp>(picked), zero = n.scalarLike(loss, 0);
  Value weights = weight ? n.create<GatherOp>(weight, target, 0) : Value();
  if (ignored) {
    weights = n.create<WhereOp>(ignored, zero, weights ? weights : n.scalarLike(loss, 1));
  }
  loss = weights ? n.create<MulOp>(loss, weights) : loss;
  std::string reduction = n.stringAttr("reduction", "mean");
  if (reduction == "none") {
    return loss;
  }
  Ints all(dims.size());
  std::iota(all.begin(), all.end(), 0);
  if (reduction == "mean" && !weights) {
    return n.create<ReduceOp>(loss, ReduceKind::mean, all, false);
  }
  if (reduction != "mean" && reduction != "sum") {
    n.fail(llvm::formatv("reduction '{0}' is unknown; allowed are none, sum and mean", reduction));
  }
  Value sum = n.create<ReduceOp>(loss, ReduceKind::sum, all, false);
  return reduction == "sum" ? sum : n.create<DivOp>(sum, n.create<ReduceOp>(weights, ReduceKind::sum, all, false));
}

void nllLoss(NodeImporter &n) { n.setOutput(0, negativeLogLikelihood(n, n.input(0), n.input(1), n.optionalInput(2))); }

void softmaxCrossEntropyLoss(NodeImporter &n) {
  Value scores = n.input(0);
  if (!n.failed() && NodeImporter::rank(scores) < 2) {
    n.fail("its scores have no dim of classes");
  }
  Value logs = n.create<SoftmaxOp>(scores, 1, true);
  n.setOutput(0, negativeLogLikelihood(n, logs, n.input(1), n.optionalInput(2)));
  n.setOutput(1, logs);
}

//===----------------------------------------------------------------------===//
// Steps of optimisers
//===----------------------------------------------------------------------===//

/// Returns operand |list| of tensor |i| of an optimiser. The inputs are a rate, a step count, and then lists with one
/// entry for each tensor to update.
Value operandOf(NodeImporter &n, unsigned lists, unsigned list, unsigned i) {
  return n.input(2 + list * ((n.numInputs() - 2) / lists) + i);
}

unsigned countTensors(NodeImporter &n, unsigned lists) {
  if (n.numInputs() < 2 + lists || (n.numInputs() - 2) % lists != 0) {
    n.fail(llvm::formatv("it has {0} inputs; expected two and {1} for each tensor", n.numInputs(), lists));
    return 0;
  }
  return (n.numInputs() - 2) / lists;
}

Value scaled(NodeImporter &n, Value x, double factor) { return n.create<MulOp>(x, n.scalarLike(x, factor)); }
Value sum(NodeImporter &n, Value a, Value b) { return n.create<AddOp>(a, b); }

/// Returns the gradient including the penalty for large weights.
Value regularised(NodeImporter &n, Value x, Value gradient) {
  return sum(n, scaled(n, x, n.floatAttr("norm_coefficient", 0)), gradient);
}

/// Returns |after| if at least one step has been made, else |first|.
Value afterFirstStep(NodeImporter &n, Value after, Value first) {
  Value steps = n.input(1);
  return n.create<WhereOp>(n.create<CompareOp>(steps, n.scalarLike(steps, 0), CompareKind::gt), after, first);
}

void adagrad(NodeImporter &n) {
  unsigned count = countTensors(n, 3);
  for (unsigned i = 0; i < count; ++i) {
    Value x = operandOf(n, 3, 0, i), gradient = regularised(n, x, operandOf(n, 3, 1, i));
    Value decay = scaled(n, n.cast(n.input(1), NodeImporter::elementType(x)), n.floatAttr("decay_factor", 0));
    Value rate = n.create<DivOp>(n.cast(n.input(0), NodeImporter::elementType(x)), sum(n, decay, n.scalarLike(x, 1)));
    Value squares = sum(n, operandOf(n, 3, 2, i), n.create<MulOp>(gradient, gradient));
    Value divisor = sum(n, n.create<SqrtOp>(squares), n.scalarLike(x, n.floatAttr("epsilon", 1e-6)));
    n.setOutput(i, n.create<SubOp>(x, n.create<DivOp>(n.create<MulOp>(rate, gradient), divisor)));
    n.setOutput(count + i, squares);
  }
}

void adam(NodeImporter &n) {
  unsigned count = countTensors(n, 4);
  double alpha = n.floatAttr("alpha", 0.9), beta = n.floatAttr("beta", 0.999);
  for (unsigned i = 0; i < count; ++i) {
    Value x = operandOf(n, 4, 0, i), gradient = regularised(n, x, operandOf(n, 4, 1, i));
    Value mean = sum(n, scaled(n, operandOf(n, 4, 2, i), alpha), scaled(n, gradient, 1 - alpha));
    Value square = n.create<MulOp>(gradient, gradient);
    Value spread = sum(n, scaled(n, operandOf(n, 4, 3, i), beta), scaled(n, square, 1 - beta));
    Value divisor = sum(n, n.create<SqrtOp>(spread), n.scalarLike(x, n.floatAttr("epsilon", 1e-6)));
    mlir::Type element = NodeImporter::elementType(x);
    Value steps = n.cast(n.input(1), element), rate = n.cast(n.input(0), element), one = n.scalar(element, 1);
    auto rest = [&](double base) { return n.create<SubOp>(one, n.create<PowOp>(n.scalar(element, base), steps)); };
    Value corrected = n.create<DivOp>(n.create<MulOp>(rate, n.create<SqrtOp>(rest(beta))), rest(alpha));
    rate = afterFirstStep(n, corrected, rate);
    Value next = n.create<SubOp>(x, n.create<DivOp>(n.create<MulOp>(rate, mean), divisor));
    n.setOutput(i, scaled(n, next, 1 - n.floatAttr("norm_coefficient_post", 0)));
    n.setOutput(count + i, mean);
    n.setOutput(2 * count + i, spread);
  }
}

void momentum(NodeImporter &n) {
  unsigned count = countTensors(n, 3);
  std::string mode = n.stringAttr("mode", "");
  if (!n.failed() && mode != "standard" && mode != "nesterov") {
    n.fail(llvm::formatv("mode '{0}' is unknown; allowed are standard and nesterov", mode));
  }
  double alpha = n.floatAttr("alpha", 0), beta = n.floatAttr("beta", 0);
  for (unsigned i = 0; i < count; ++i) {
    Value x = operandOf(n, 3, 0, i), gradient = regularised(n, x, operandOf(n, 3, 1, i));
    Value factor = afterFirstStep(n, n.scalarLike(x, beta), n.scalarLike(x, 1));
    Value speed = sum(n, scaled(n, operandOf(n, 3, 2, i), alpha), n.create<MulOp>(factor, gradient));
    Value step = mode == "standard" ? speed : sum(n, gradient, scaled(n, speed, alpha));
    n.setOutput(i, n.create<SubOp>(x, n.create<MulOp>(n.cast(n.input(0), NodeImporter::elementType(x)), step)));
    n.setOutput(count + i, speed);
  }
}

constexpr llvm::StringLiteral kTraining = "ai.onnx.preview.training";
constexpr HandlerEntry kHandlers[] = {
    {kTraining, "Adagrad", adagrad},
    {kTraining, "Adam", adam},
    {kTraining, "Momentum", momentum},
    {"", "NegativeLogLikelihoodLoss", nllLoss, 12},
    {"", "SoftmaxCrossEntropyLoss", softmaxCrossEntropyLoss, 12},
};

} // namespace

llvm::ArrayRef<HandlerEntry> trainingHandlers() { return kHandlers; }

} // namespace tessera::top::onnx_import
