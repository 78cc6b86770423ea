//===- Weights.cpp - Weights of convolutions and matmuls to i8 ------------===//
// SPDX-License-Identifier: Apache-2.0
#include "quant/Transforms/Weights/Weights.h"

#include "quant/Transforms/Precision/OpKinds.h"
#include "quant/Transforms/Weights/SumKeepingRounding.h"
#include "quant/Transforms/Weights/WideVectors.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/TopOps.h"
#include "llvm/ADT/bit.h"
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <numeric>

using namespace mlir;

namespace tessera::quant {
namespace {

/// Checks that all values are finite. It does not stop early, because loops with an early exit are not vectorised.
TESSERA_WIDE_VECTORS bool areFinite(const float *values, size_t count) {
  uint32_t others = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t infinity = 0x7f800000, bits = llvm::bit_cast<uint32_t>(values[i]);
    others |= (bits & infinity) == infinity;
  }
  return others == 0;
}

/// Returns one scale per channel. The groups of a conv_transpose share the scales of the channel dim, so the largest
/// bias of all groups limits the scale.
SmallVector<float> scalesOf(ArrayRef<float> weights, Channels channels, ArrayRef<float> bias, double inputScale) {
  SmallVector<float> largest(channels.count, 0.0f), scales(channels.count);
  channels.forEach(weights.size(),
                   [&](int64_t i, int64_t c) { largest[c] = std::max(largest[c], std::abs(weights[i])); });
  SmallVector<double> least(channels.count, FLT_MIN);
  for (auto [i, b] : llvm::enumerate(bias)) {
    double &low = least[i % channels.count];
    low = std::max(low, std::abs(double(b)) / (inputScale * kMaxBias));
  }
  for (int64_t c = 0; c < channels.count; ++c) {
    // Any scale represents a channel of zeros.
    double scale = largest[c] == 0 ? 1.0 / kMaxBias : largest[c] / 127.0;
    scales[c] = static_cast<float>(std::max(scale, least[c]));
  }
  return scales;
}

/// Rounds the weights of some channels at a time, which reads and writes each weight once. The weights of one channel
/// of a matmul are a row apart from each other.
class ChannelRounding {
public:
  ChannelRounding(ArrayRef<float> weights, Channels channels, int64_t taps)
      : weights(weights), channels(channels), taps(taps), length(weights.size() / channels.count), rounding(-127, 127),
        integers(weights.size()), elements(length) {}

  std::vector<int8_t> run(ArrayRef<float> scales) {
    for (int64_t begin = 0; begin < channels.count; begin += kTogether) {
      const int64_t some = std::min(kTogether, channels.count - begin);
      gathered.resize_for_overwrite(some * length);
      rounded.resize_for_overwrite(some * length);
      forEach(begin, some, [&](int64_t from, int64_t to) { gathered[to] = weights[from]; });
      for (int64_t c = 0; c < some; ++c) {
        roundOne(ArrayRef(gathered).slice(c * length, length), scales[begin + c], rounded.data() + c * length);
      }
      forEach(begin, some, [&](int64_t to, int64_t from) { integers[to] = rounded[from]; });
    }
    return std::move(integers);
  }

private:
  static constexpr int64_t kTogether = 16; ///< channels at a time: a cache line of adjacent weights

  void roundOne(ArrayRef<float> values, float scale, int8_t *out) {
    rounding.round(values, scale);
    rounding.mendRuns(taps, length / taps);
    std::iota(elements.begin(), elements.end(), 0);
    rounding.mend(elements);
    llvm::copy(rounding.get(), out);
  }

  /// Calls visit(element, index in the buffer of the channels from `begin` on); channels are contiguous in the buffer.
  template <typename Visit>
  void forEach(int64_t begin, int64_t some, Visit visit) const {
    const int64_t inner = channels.inner, stride = channels.count * inner;
    for (int64_t row = 0; row * inner < length; ++row) {
      for (int64_t c = 0; c < some; ++c) {
        for (int64_t i = 0; i < inner; ++i) {
          visit(row * stride + (begin + c) * inner + i, c * length + row * inner + i);
        }
      }
    }
  }

  ArrayRef<float> weights;
  Channels channels;
  int64_t taps, length;
  SumKeepingRounding rounding;
  std::vector<int8_t> integers;
  SmallVector<int64_t> elements;
  SmallVector<float> gathered;
  SmallVector<int8_t> rounded;
};

/// Rounds the weights in units of their scales. The sums of kernels are preserved first, then the sums of all weights
/// of an output channel.
std::vector<int8_t> roundWeights(ArrayRef<float> weights, RankedTensorType type, Channels channels,
                                 ArrayRef<float> scales) {
  int64_t taps = 1;
  for (int64_t size : type.getShape().drop_front(2)) {
    taps *= size;
  }
  if (channels.inner % taps == 0) { // each kernel belongs to one channel
    return ChannelRounding(weights, channels, taps).run(scales);
  }
  SmallVector<double> exact(weights.size());
  std::vector<SmallVector<int64_t>> members(channels.count);
  channels.forEach(weights.size(), [&](int64_t i, int64_t c) {
    exact[i] = double(weights[i]) / scales[c];
    members[c].push_back(i);
  });
  SumKeepingRounding rounding(std::move(exact), -127, 127);
  rounding.mendRuns(taps, weights.size() / taps);
  for (SmallVector<int64_t> &channel : members) {
    rounding.mend(channel);
  }
  return rounding.get();
}

template <typename T>
Value constant(OpBuilder &builder, Location loc, RankedTensorType type, ArrayRef<T> values, const Twine &hint) {
  return top::createConstant(builder, loc, type,
                             ArrayRef(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T)),
                             hint.str());
}

/// Returns which channels adopt the learned weights: those whose bias fits with the learned scale. Sets their scales.
SmallVector<bool> adoptScales(const LearnedWeight &learned, Channels channels, ArrayRef<float> bias, double inputScale,
                              MutableArrayRef<float> scales) {
  SmallVector<bool> taken(channels.count);
  for (int64_t c = 0; c < channels.count; ++c) {
    double largest = bias.empty() ? 0.0 : std::abs(double(bias[c % bias.size()]));
    taken[c] = largest <= inputScale * learned.scales[c] * kMaxBias;
    scales[c] = taken[c] ? learned.scales[c] : scales[c];
  }
  return taken;
}

/// Returns the integers: the learned ones for channels in `taken`, rounded weights for the others.
std::vector<int8_t> integersOf(top::TensorData weight, Channels channels, ArrayRef<float> scales,
                               const std::optional<LearnedWeight> &learned, ArrayRef<bool> taken) {
  if (!taken.empty() && llvm::all_of(taken, [](bool is) { return is; })) {
    return {learned->integers.begin(), learned->integers.end()};
  }
  ArrayRef<float> weights = weight.data<float>();
  std::vector<int8_t> integers = roundWeights(weights, weight.type, channels, scales);
  if (!taken.empty()) {
    channels.forEach(weights.size(),
                     [&](int64_t i, int64_t c) { integers[i] = taken[c] ? learned->integers[i] : integers[i]; });
  }
  return integers;
}

} // namespace

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
         areFinite(data->data<float>().data(), data->data<float>().size());
}

bool hasFiniteWeights(Operation *op) {
  Value bias = biasOf(op);
  return isFinite(weightOf(op).operand->get()) && (!bias || isFinite(bias));
}

int64_t largestQmax(Operation *op, double magnitude, bool anyWeights) {
  auto [operand, dim] = weightOf(op);
  std::optional<top::TensorData> data = top::getConstantData(operand->get());
  std::optional<top::TensorData> bias = biasOf(op) ? top::getConstantData(biasOf(op)) : std::nullopt;
  ArrayRef<float> weights = data->data<float>(), biases = bias ? bias->data<float>() : ArrayRef<float>();
  Channels channels = channelsOf(data->type, dim);
  SmallVector<float> scales = scalesOf(weights, channels, biases, magnitude / kMaxInt16);
  // The most that one input level adds to a sum. Rounding moves a weight by less than 1.
  SmallVector<double> perLevel(channels.count, 0.0);
  channels.forEach(weights.size(), [&](int64_t i, int64_t c) {
    perLevel[c] += (anyWeights ? 127.0 : std::abs(double(weights[i])) / scales[c]) + 1;
  });
  double worst = 0;
  for (auto [i, b] : llvm::enumerate(biases)) {
    int64_t c = i % channels.count;
    worst = std::max(worst, perLevel[c] + std::abs(double(b)) / (magnitude * scales[c]));
  }
  worst = std::max(worst, *std::max_element(perLevel.begin(), perLevel.end()));
  constexpr double kLargestSum = std::numeric_limits<int32_t>::max() - (1 << 16); // minus the rounding of scales and
                                                                                  // bias
  return static_cast<int64_t>(std::min<double>(kMaxInt16, kLargestSum / worst));
}

int64_t countChannels(Operation *op) {
  auto [operand, dim] = weightOf(op);
  return cast<RankedTensorType>(operand->get().getType()).getDimSize(dim);
}

void addToBias(OpBuilder &builder, Operation *op, ArrayRef<float> delta) {
  Value old = biasOf(op);
  std::optional<top::TensorData> data = old ? top::getConstantData(old) : std::nullopt;
  SmallVector<float> sum(delta);
  for (auto [i, value] : llvm::enumerate(sum)) {
    value += data ? data->data<float>()[i] : 0.0f;
  }
  auto type = RankedTensorType::get({int64_t(sum.size())}, builder.getF32Type());
  Value bias = constant<float>(builder, op->getLoc(), type, sum, "bias");
  if (old) {
    op->setOperand(2, bias);
  } else {
    op->insertOperands(2, bias);
  }
}

void quantizeWeight(OpBuilder &builder, Operation *op, double inputScale, const std::optional<LearnedWeight> &learned) {
  builder.setInsertionPoint(op);
  if (learned && !learned->bias.empty()) {
    addToBias(builder, op, learned->bias);
  }
  auto [operand, dim] = weightOf(op); // after the bias: a new operand moves the operands
  std::optional<top::TensorData> data = top::getConstantData(operand->get());
  std::optional<top::TensorData> bias = biasOf(op) ? top::getConstantData(biasOf(op)) : std::nullopt;
  ArrayRef<float> biases = bias ? bias->data<float>() : ArrayRef<float>();
  Channels channels = channelsOf(data->type, dim);
  SmallVector<float> scales = scalesOf(data->data<float>(), channels, biases, inputScale);
  SmallVector<bool> taken;
  SmallVector<float> own(scales);
  if (learned) {
    taken = adoptScales(*learned, channels, biases, inputScale, scales);
  }
  std::vector<int8_t> integers = integersOf(*data, channels, own, learned, taken);
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
