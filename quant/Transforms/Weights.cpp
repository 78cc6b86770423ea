//===- Weights.cpp - Constants of convolutions and matmuls to i8 -----------===//
// SPDX-License-Identifier: Apache-2.0
#include "quant/Transforms/Weights.h"

#include "quant/Transforms/OpKinds.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/TopOps.h"
#include <algorithm>
#include <cfloat>
#include <cmath>

using namespace mlir;

namespace tessera::quant {
namespace {

/// Which output channel each element of a weight belongs to: (linear / inner) % count.
struct Channels {
  int64_t count = 1, inner = 1;
  int64_t of(int64_t linear) const { return linear / inner % count; }
};

Channels channelsOf(RankedTensorType type, int64_t dim) {
  Channels channels;
  channels.count = type.getDimSize(dim);
  for (int64_t size : type.getShape().drop_front(dim + 1)) {
    channels.inner *= size;
  }
  return channels;
}

bool isFinite(Value constant) {
  std::optional<top::TensorData> data = top::getConstantData(constant);
  return data && data->type.getElementType().isF32() &&
         llvm::all_of(data->data<float>(), [](float v) { return std::isfinite(v); });
}

/// One scale per channel. A conv_transpose's groups share those of its channel dim, so that one bias per group counts.
SmallVector<float> scalesOf(ArrayRef<float> weights, Channels channels, ArrayRef<float> bias, double inputScale) {
  SmallVector<float> largest(channels.count, 0.0f), scales(channels.count);
  for (auto [i, w] : llvm::enumerate(weights)) {
    float &most = largest[channels.of(i)];
    most = std::max(most, std::abs(w));
  }
  SmallVector<double> least(channels.count, FLT_MIN);
  for (auto [i, b] : llvm::enumerate(bias)) {
    double &low = least[i % channels.count];
    low = std::max(low, std::abs(double(b)) / (inputScale * kMaxBias));
  }
  for (int64_t c = 0; c < channels.count; ++c) {
    // A channel of zeros is exact in any scale.
    double scale = largest[c] == 0 ? 1.0 / kMaxBias : largest[c] / 127.0;
    scales[c] = static_cast<float>(std::max(scale, least[c]));
  }
  return scales;
}

template <typename T>
Value constant(OpBuilder &builder, Location loc, RankedTensorType type, ArrayRef<T> values, const Twine &hint) {
  return top::createConstant(builder, loc, type,
                             ArrayRef(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T)),
                             hint.str());
}

} // namespace

bool hasFiniteWeights(Operation *op) {
  Value bias = biasOf(op);
  return isFinite(weightOf(op).operand->get()) && (!bias || isFinite(bias));
}

void quantizeWeight(OpBuilder &builder, Operation *op, double inputScale) {
  auto [operand, dim] = weightOf(op);
  std::optional<top::TensorData> data = top::getConstantData(operand->get());
  std::optional<top::TensorData> bias = biasOf(op) ? top::getConstantData(biasOf(op)) : std::nullopt;
  ArrayRef<float> weights = data->data<float>();
  Channels channels = channelsOf(data->type, dim);
  SmallVector<float> scales = scalesOf(weights, channels, bias ? bias->data<float>() : ArrayRef<float>(), inputScale);
  std::vector<int8_t> integers(weights.size());
  for (auto [i, w] : llvm::enumerate(weights)) {
    integers[i] = static_cast<int8_t>(std::clamp(std::nearbyint(double(w) / scales[channels.of(i)]), -127.0, 127.0));
  }
  builder.setInsertionPoint(op);
  Location loc = operand->get().getLoc();
  auto weight = operand->get().getDefiningOp<top::WeightOp>();
  std::string key = weight ? weight.getKey().str() : "weight";
  Type i8 = builder.getI8Type();
  SmallVector<int64_t> scaleDims(data->type.getRank(), 1);
  scaleDims[dim] = channels.count;
  auto scaleType = RankedTensorType::get(scaleDims, builder.getF32Type());
  Value q = constant<int8_t>(builder, loc, data->type.clone(i8), integers, key + "_i8");
  Value s = constant<float>(builder, loc, scaleType, scales, key + "_scale");
  Value z = top::createScalar(builder, loc, i8, 0);
  operand->set(top::DequantizeOp::create(builder, loc, data->type, q, s, z));
}

} // namespace tessera::quant
