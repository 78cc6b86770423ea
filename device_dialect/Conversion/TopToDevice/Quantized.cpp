//===- Quantized.cpp - Integer form of quantised ops ----------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/Conversion/TopToDevice/Quantized.h"
#include "top_dialect/IR/Names.h"
#include <cmath>
#include <limits>

using namespace mlir;

namespace tessera::device {

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

int64_t Scaling::lowest() const {
  if (qmax != 0) {
    return -qmax;
  }
  return element.isUnsignedInteger() ? 0 : -(int64_t(1) << (element.getIntOrFloatBitWidth() - 1));
}

int64_t Scaling::highest() const {
  if (qmax != 0) {
    return qmax;
  }
  unsigned bits = element.getIntOrFloatBitWidth();
  return (int64_t(1) << (element.isUnsignedInteger() ? bits : bits - 1)) - 1;
}

int64_t Scaling::quantize(double r) const {
  float steps = std::nearbyint(static_cast<float>(r) / static_cast<float>(scale)) + static_cast<float>(zero);
  return static_cast<int64_t>(std::clamp<double>(steps, lowest(), highest()));
}

static std::optional<Scaling> readScaling(Value scale, Value zeroPoint, Type element, int64_t qmax) {
  if (knownNumElements(scale) != 1 || knownNumElements(zeroPoint) != 1) {
    return std::nullopt;
  }
  std::optional<SmallVector<double>> s = top::getConstantDoubles(scale), z = top::getConstantDoubles(zeroPoint);
  if (!s || !z || !(s->front() > 0) || std::isinf(s->front())) {
    return std::nullopt;
  }
  return Scaling{s->front(), static_cast<int64_t>(z->front()), element, qmax};
}

std::optional<Scaling> getScaling(top::QuantizeOp op) {
  return readScaling(op.getScale(), op.getZeroPoint(), Lowering::element(op.getY()),
                     static_cast<int64_t>(op.getLevels()));
}

std::optional<Scaling> getScaling(top::DequantizeOp op) {
  return readScaling(op.getScale(), op.getZeroPoint(), Lowering::element(op.getX()),
                     static_cast<int64_t>(op.getLevels()));
}

std::optional<QuantizedTensor> matchQuantized(Value value) {
  auto op = value.getDefiningOp<top::DequantizeOp>();
  std::optional<Scaling> scaling = op ? getScaling(op) : std::nullopt;
  if (!scaling || !(scaling->element.isInteger(8) || scaling->element.isSignlessInteger(16))) {
    return std::nullopt;
  }
  return QuantizedTensor{op.getX(), *scaling};
}

/// Returns the parameter's values per entry of dim `axis` of `shape`, or one for all; nothing for other broadcasts.
static std::optional<SmallVector<double>> readAlong(Value parameter, ArrayRef<int64_t> shape, int64_t axis) {
  ArrayRef<int64_t> dims = Lowering::dims(parameter);
  int64_t missing = shape.size() - dims.size();
  for (auto [d, dim] : llvm::enumerate(dims)) {
    if (dim != 1 && static_cast<int64_t>(d) + missing != axis) {
      return std::nullopt;
    }
  }
  return top::getConstantDoubles(parameter);
}

std::optional<QuantizedWeights> matchWeights(Value value, int64_t axis) {
  auto op = value.getDefiningOp<top::DequantizeOp>();
  if (!op || !Lowering::element(op.getX()).isInteger(8)) {
    return std::nullopt;
  }
  std::optional<top::TensorData> data = top::getConstantData(op.getX());
  if (!data || !Shape(op.getScale()).isKnown() || !Shape(op.getZeroPoint()).isKnown()) {
    return std::nullopt;
  }
  RankedTensorType type = Lowering::type(op.getX());
  ArrayRef<int64_t> shape = Lowering::dims(op.getX());
  std::optional<SmallVector<double>> scales = readAlong(op.getScale(), shape, axis);
  std::optional<SmallVector<double>> zeros = readAlong(op.getZeroPoint(), shape, axis);
  if (!scales || !zeros || llvm::any_of(*scales, [](double s) { return !(s > 0) || std::isinf(s); })) {
    return std::nullopt;
  }
  Type i8 = IntegerType::get(value.getContext(), 8);
  QuantizedWeights weights{withElement(type, i8), std::vector<char>(numElements(type)), *scales, 0,
                           std::vector<int64_t>(shape[axis], 0)};
  int64_t inner = 1;
  for (int64_t dim : shape.drop_front(axis + 1)) {
    inner *= dim;
  }
  // There may be millions of weights: check facts that hold for a run of one channel only once.
  const bool isUnsigned = Lowering::element(op.getX()).isUnsignedInteger();
  const auto channels = static_cast<int64_t>(weights.sums.size()), count = static_cast<int64_t>(data->bytes.size());
  for (int64_t begin = 0, channel = 0; begin < count; begin += inner, channel = (channel + 1) % channels) {
    const auto zero = static_cast<int64_t>(zeros->size() == 1 ? zeros->front() : (*zeros)[channel]);
    int64_t sum = 0;
    for (int64_t i = begin; i < begin + inner; ++i) {
      const char byte = data->bytes[i];
      int64_t stored = isUnsigned ? int64_t(static_cast<uint8_t>(byte)) : int64_t(static_cast<int8_t>(byte));
      int64_t centred = stored - zero;
      if (centred < -128 || centred > 127) {
        return std::nullopt;
      }
      weights.values[i] = static_cast<char>(centred);
      weights.largest = std::max(weights.largest, std::abs(centred));
      sum += std::abs(centred);
    }
    weights.sums[channel] += sum;
  }
  return weights;
}

std::optional<std::vector<int64_t>> matchBias(Value bias, ArrayRef<double> scales) {
  SmallVector<double> own{1.0}; // scale of the stored values
  Value values = bias;
  bool integers = false;
  if (auto op = bias.getDefiningOp<top::DequantizeOp>()) {
    std::optional<SmallVector<double>> scale = readAlong(op.getScale(), Lowering::dims(bias), 0);
    std::optional<SmallVector<double>> zero = readAlong(op.getZeroPoint(), Lowering::dims(bias), 0);
    if (!scale || !zero || llvm::any_of(*zero, [](double z) { return z != 0; })) {
      return std::nullopt;
    }
    own = *scale, values = op.getX(), integers = true;
  }
  std::optional<SmallVector<double>> stored = top::getConstantDoubles(values);
  if (!stored) {
    return std::nullopt;
  }
  std::vector<int64_t> result;
  for (auto [c, value] : llvm::enumerate(*stored)) {
    double ratio = own[own.size() == 1 ? 0 : c] / scales[scales.size() == 1 ? 0 : c];
    // Both scales were rounded to single precision, so a difference this small is insignificant.
    bool same = integers && std::fabs(ratio - 1) < 1e-6;
    double rounded = same ? value : std::nearbyint(value * ratio);
    if (!(std::fabs(rounded) <= std::numeric_limits<int32_t>::max())) {
      return std::nullopt;
    }
    result.push_back(static_cast<int64_t>(rounded));
  }
  return result;
}

bool sumFits(const Scaling &x, int64_t steps, int64_t largest, ArrayRef<int64_t> bias) {
  int64_t reach = std::max(x.highest() - x.zero, x.zero - x.lowest()), most = 0;
  for (int64_t value : bias) {
    most = std::max(most, std::abs(value));
  }
  // The op sums stored values, with weights down to -128, before the bias corrects for the zero points.
  int64_t stored = x.reach() * (x.element.isInteger(8) ? 128 : largest) * steps,
          centred = reach * largest * steps + most;
  return std::max(stored, centred) <= std::numeric_limits<int32_t>::max();
}

SumProof::SumProof(const Scaling &x, const QuantizedWeights &weights, int64_t steps, ArrayRef<int64_t> bias) {
  if (x.element.isInteger(8)) {
    holds = sumFits(x, steps, weights.largest, bias);
    return;
  }
  int64_t channels = weights.sums.size(), most = 0;
  for (int64_t c = 0; c < std::max<int64_t>(channels, bias.size()); ++c) {
    // Bounds the sum of stored values, the correcting bias, and both together.
    int64_t centred = std::max(x.highest() - x.zero, x.zero - x.lowest()), own = bias.empty() ? 0 : std::abs(bias[c]);
    most = std::max(most, std::max(x.reach(), centred) * weights.sums[c % channels] + own);
  }
  bound = most;
  holds = most <= std::numeric_limits<int32_t>::max();
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

ContractionTail::ContractionTail(Operation *contraction, bool relu, double limit)
    : last(contraction), low(-std::numeric_limits<double>::infinity()), high(std::numeric_limits<double>::infinity()),
      chain{contraction} {
  if (relu) {
    low = 0;
    high = limit > 0 ? limit : high;
  }
  double lowHere = low, highHere = high;
  for (Operation *op = contraction; op->hasOneUse();) {
    op = *op->user_begin();
    chain.push_back(op);
    if (isa<top::ReluOp>(op)) {
      lowHere = std::max(lowHere, 0.0), highHere = std::max(highHere, 0.0);
    } else if (auto clip = dyn_cast<top::ClipOp>(op)) {
      double lo = clip.getLo().convertToDouble(), hi = clip.getHi().convertToDouble();
      lowHere = std::min(std::max(lowHere, lo), hi), highHere = std::min(std::max(highHere, lo), hi);
    } else if (auto quantize = dyn_cast<top::QuantizeOp>(op)) {
      output = getScaling(quantize);
      if (output && quantize.getX().getDefiningOp() == chain[chain.size() - 2]) {
        last = op, low = lowHere, high = highHere;
        return;
      }
      output.reset();
      break;
    } else {
      break;
    }
  }
  chain.resize(1);
}

void replaceTail(Lowering &lower, const ContractionTail &tail, Value result) {
  Operation *made = result.getDefiningOp();
  top::copyNames(ArrayRef<Operation *>(tail.chain), made);
  lower.rewriter.replaceOp(tail.last, result);
  for (Operation *op : llvm::reverse(tail.chain)) {
    if (op != tail.last) {
      lower.rewriter.eraseOp(op);
    }
  }
}

} // namespace tessera::device
