//===- ResidualWeights.cpp - Weights as the sum of two i8 constants -------===//
// SPDX-License-Identifier: Apache-2.0
#include "quant/Transforms/Weights/ResidualWeights.h"

#include "quant/Transforms/Precision/OpKinds.h"
#include "quant/Transforms/Weights/Weights.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/TopOps.h"
#include <algorithm>
#include <cmath>

using namespace mlir;

namespace tessera::quant {
namespace {

top::DequantizeOp dequantizedWeight(Operation *op) {
  return weightOf(op).operand->get().getDefiningOp<top::DequantizeOp>();
}

/// Calls visit(element, output channel, integer, scale of the channel) for all i8 weights of a contraction.
template <typename Visit>
void forEachWeight(Operation *op, Visit visit) {
  top::DequantizeOp weight = dequantizedWeight(op);
  std::optional<top::TensorData> integers = top::getConstantData(weight.getX()),
                                 scales = top::getConstantData(weight.getScale());
  ArrayRef<int8_t> q = integers->data<int8_t>();
  ArrayRef<float> steps = scales->data<float>();
  channelsOf(integers->type, weightOf(op).channelDim).forEach(q.size(), [&](int64_t i, int64_t channel) {
    visit(i, channel, q[i], steps[channel]);
  });
}

/// Returns `whole` minus the values of the i8 weights of `op`; empty if the difference is zero.
std::vector<float> restOf(Operation *op, top::TensorData whole) {
  ArrayRef<float> exact = whole.data<float>();
  std::vector<float> rest(exact.size());
  forEachWeight(op, [&](int64_t i, int64_t, int8_t q, float scale) {
    rest[i] = static_cast<float>(double(exact[i]) - double(q) * scale);
  });
  return llvm::all_of(rest, [](float v) { return v == 0; }) ? std::vector<float>() : rest;
}

/// Returns the largest magnitude that a result of `op`, which must not have a bias, can reach for inputs of `form`. The
/// groups of a transposed convolution count as if their results were added.
double largestResult(Operation *op, const IntegerForm &form) {
  const double least = form.isWide() ? -double(form.qmax) : -128.0 - form.zeroPoint;
  const double most = form.isWide() ? double(form.qmax) : 127.0 - form.zeroPoint;
  SmallVector<double> lowest(countChannels(op)), highest(countChannels(op));
  forEachWeight(op, [&](int64_t, int64_t channel, int8_t q, float scale) {
    const double step = double(q) * scale * form.scale;
    lowest[channel] += std::min(step * least, step * most);
    highest[channel] += std::max(step * least, step * most);
  });
  double largest = 0;
  for (auto [low, high] : llvm::zip(lowest, highest)) {
    largest = std::max({largest, -low, high});
  }
  return largest;
}

/// Inserts a copy of `op` before it, with another weight and without bias, clamp and tensor names.
Operation *cloneWith(OpBuilder &builder, Operation *op, Value weight) {
  Operation *copy = builder.clone(*op);
  copy->removeAttr(top::TopDialect::kOutputsAttr);
  copy->setAttr("relu", builder.getBoolAttr(false));
  weightOf(copy).operand->set(weight);
  if (biasOf(copy)) {
    copy->eraseOperand(2);
  }
  return copy;
}

/// Quantises `v` to i16, whose range is [-largest, largest], and dequantises it.
Value throughWords(OpBuilder &builder, Value v, double largest) {
  Location loc = v.getLoc();
  auto type = cast<RankedTensorType>(v.getType());
  Type i16 = builder.getI16Type();
  // The next larger float keeps the largest sum unclipped.
  const float scale = std::nextafter(static_cast<float>(largest / kMaxInt16), INFINITY);
  Value steps = top::createScalar(builder, loc, builder.getF32Type(), scale);
  Value zero = top::createScalar(builder, loc, i16, 0);
  Value q = top::QuantizeOp::create(builder, loc, type.clone(i16), v, steps, zero, kMaxInt16);
  return top::DequantizeOp::create(builder, loc, type, q, steps, zero, kMaxInt16);
}

} // namespace

bool hasResidualWeights(const Range *ofResult) { return ofResult && ofResult->weightTerms == 2; }

Operation *splitWeight(OpBuilder &builder, Operation *op, const IntegerForm &form) {
  std::optional<top::TensorData> whole = top::getConstantData(weightOf(op).operand->get());
  quantizeWeight(builder, op, form.finestScale);
  std::vector<float> rest = restOf(op, *whole);
  if (rest.empty()) {
    return nullptr;
  }
  builder.setInsertionPoint(op);
  Value weight =
      top::createConstant(builder, op->getLoc(), whole->type,
                          ArrayRef(reinterpret_cast<const char *>(rest.data()), rest.size() * sizeof(float)), "rest");
  Operation *second = cloneWith(builder, op, weight);
  quantizeWeight(builder, second, form.finestScale);
  builder.setInsertionPointAfter(second);
  Value left = throughWords(builder, second->getResult(0), largestResult(second, form));
  builder.setInsertionPointAfter(op);
  Value first = op->getResult(0);
  auto sum = top::AddOp::create(builder, op->getLoc(), first.getType(), first, left);
  Value result = rectified(builder, op, sum);
  op->setAttr("relu", builder.getBoolAttr(false));
  first.replaceAllUsesExcept(result, sum);
  if (Attribute names = op->removeAttr(top::TopDialect::kOutputsAttr)) {
    result.getDefiningOp()->setAttr(top::TopDialect::kOutputsAttr, names);
  }
  return second;
}

} // namespace tessera::quant
