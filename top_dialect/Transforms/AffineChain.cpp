//===- AffineChain.cpp - Per-channel arithmetic after an op ----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Transforms/AffineChain.h"
#include "top_dialect/IR/Sizes.h"
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/Transforms/Rewrite.h"
#include "top_dialect/Transforms/Values.h"
#include <cmath>
#include <numeric>

namespace tessera::top {
using namespace mlir;

namespace {
/// One member of a chain, as value = a[c] * value + b[c].
struct Step {
  std::vector<double> a, b;
};
} // namespace

static std::optional<Step> batchNormStep(BatchNormOp op, int64_t channels) {
  auto scale = getConstantDoubles(op.getScale()), bias = getConstantDoubles(op.getBias()),
       mean = getConstantDoubles(op.getMean()), variance = getConstantDoubles(op.getVariance());
  if (!scale || !bias || !mean || !variance) {
    return std::nullopt;
  }
  double epsilon = op.getEpsilon().convertToDouble();
  Step step{std::vector<double>(channels), std::vector<double>(channels)};
  for (int64_t c = 0; c < channels; ++c) {
    step.a[c] = (*scale)[c] / std::sqrt((*variance)[c] + epsilon);
    step.b[c] = (*bias)[c] - (*mean)[c] * step.a[c];
  }
  return step;
}

/// Returns the step of a binary op on the running value and a per-channel constant.
static std::optional<Step> binaryStep(Operation *op, Value running, int64_t axis, int64_t channels) {
  bool runningFirst = op->getOperand(0) == running;
  Value other = op->getOperand(runningFirst ? 1 : 0);
  std::optional<SmallVector<double>> c = getPerChannel(other, typeOf(running).getRank(), axis, channels);
  if (!c || (isa<DivOp>(op) && !runningFirst)) {
    return std::nullopt;
  }
  Step step{std::vector<double>(channels, 1), std::vector<double>(channels, 0)};
  if (isa<MulOp>(op)) {
    step.a.assign(c->begin(), c->end());
  } else if (isa<DivOp>(op)) {
    llvm::transform(*c, step.a.begin(), [](double v) { return 1 / v; });
  } else if (isa<AddOp>(op)) {
    step.b.assign(c->begin(), c->end());
  } else if (runningFirst) { // running - c
    llvm::transform(*c, step.b.begin(), [](double v) { return -v; });
  } else { // c - running
    step.a.assign(channels, -1);
    step.b.assign(c->begin(), c->end());
  }
  return step;
}

static std::optional<Step> stepOf(Operation *op, Value running, const AffineChain &chain) {
  if (op->getNumResults() != 1 || !sameType(op->getResult(0), running)) {
    return std::nullopt;
  }
  if (auto norm = dyn_cast<BatchNormOp>(op)) {
    bool fits = chain.axis == 1 && norm.getX() == running;
    return fits ? batchNormStep(norm, chain.channels) : std::nullopt;
  }
  if (isa<MulOp, DivOp, AddOp, SubOp>(op)) {
    return binaryStep(op, running, chain.axis, chain.channels);
  }
  return std::nullopt;
}

/// Appends `step` to the chain's scale and shift. Fails if a factor leaves the range of f32: division by zero gives
/// infinity, while multiplication of 0 by an infinite weight gives NaN.
static bool append(const Step &step, AffineChain &chain) {
  std::vector<double> scale(chain.channels), shift(chain.channels);
  for (int64_t c = 0; c < chain.channels; ++c) {
    scale[c] = chain.scale[c] * step.a[c];
    shift[c] = chain.shift[c] * step.a[c] + step.b[c];
    if (!std::isfinite(static_cast<float>(scale[c])) || !std::isfinite(static_cast<float>(shift[c]))) {
      return false;
    }
  }
  chain.scale = std::move(scale);
  chain.shift = std::move(shift);
  return true;
}

std::optional<AffineChain> collectChain(Value start, int64_t axis, bool addsOnly, Operation *first) {
  RankedTensorType type = typeOf(start);
  if (!isa<FloatType>(type.getElementType()) || axis >= type.getRank() || type.isDynamicDim(axis) ||
      type.getDimSize(axis) == 0) {
    return std::nullopt;
  }
  AffineChain chain;
  chain.type = type;
  chain.axis = axis;
  chain.channels = type.getDimSize(axis);
  chain.scale.assign(chain.channels, 1);
  chain.shift.assign(chain.channels, 0);
  Value running = start;
  while (first || running.hasOneUse()) {
    Operation *user = first ? first : *running.user_begin();
    first = nullptr;
    if (addsOnly && !isa<AddOp, SubOp>(user)) {
      break;
    }
    std::optional<Step> step = stepOf(user, running, chain);
    if (!step || (addsOnly && step->a.front() != 1) || !append(*step, chain)) {
      break;
    }
    chain.ops.push_back(user);
    chain.scales |= !isa<AddOp>(user) && llvm::any_of(step->a, [](double a) { return a != 1; });
    running = user->getResult(0);
  }
  return chain.ops.empty() ? std::nullopt : std::optional(chain);
}

template <typename Op>
static bool takesChain(Op op, Value weight) {
  Value bias = op.getBias();
  return isReadable(weight) && (!bias || isReadable(bias)) && !op.getRelu();
}

std::optional<int64_t> foldableChannelAxis(Operation *op) {
  if (auto conv = dyn_cast<ConvOp>(op)) {
    return takesChain(conv, conv.getW()) ? std::optional<int64_t>(1) : std::nullopt;
  }
  if (auto conv = dyn_cast<ConvTransposeOp>(op)) {
    return takesChain(conv, conv.getW()) ? std::optional<int64_t>(1) : std::nullopt;
  }
  if (auto matmul = dyn_cast<MatMulOp>(op)) {
    return takesChain(matmul, matmul.getB()) ? std::optional(typeOf(matmul.getY()).getRank() - 1) : std::nullopt;
  }
  return std::nullopt;
}

/// The dims of a weight, seen as [groups, outer, channels of a group, inner].
struct ChannelView {
  int64_t groups, outer, channels, inner;
};

static ChannelView channelView(Operation *op, ArrayRef<int64_t> dims) {
  auto product = [](ArrayRef<int64_t> part) {
    return std::accumulate(part.begin(), part.end(), int64_t(1), std::multiplies<>());
  };
  if (auto conv = dyn_cast<ConvTransposeOp>(op)) { // [C, OC / groups, K...]
    int64_t groups = static_cast<int64_t>(conv.getGroups());
    return {groups, dims[0] / groups, dims[1], product(dims.drop_front(2))};
  }
  if (auto matmul = dyn_cast<MatMulOp>(op)) { // [..., K, N] or [..., N, K]
    size_t last = dims.size() - 1;
    return matmul.getTransB() ? ChannelView{1, product(dims.drop_back(2)), dims[last - 1], dims[last]}
                              : ChannelView{1, product(dims.drop_back()), dims[last], 1};
  }
  return {1, 1, dims[0], product(dims.drop_front())}; // conv: [OC, ...]
}

/// Multiplies each element by the scale of its output channel, with one rounding.
template <typename T>
static void scaleChannels(MutableArrayRef<T> values, const ChannelView &view, ArrayRef<double> scale) {
  T *value = values.data();
  for (int64_t g = 0; g < view.groups; ++g) {
    for (int64_t o = 0; o < view.outer; ++o) {
      for (int64_t c = 0; c < view.channels; ++c) {
        double factor = scale[g * view.channels + c];
        for (int64_t i = 0; i < view.inner; ++i, ++value) {
          *value = static_cast<T>(*value * factor);
        }
      }
    }
  }
}

static Value scaledWeight(RewriterBase &rewriter, Operation *op, Value weight, ArrayRef<double> scale) {
  RankedTensorType type = typeOf(weight);
  ChannelView view = channelView(op, type.getShape());
  std::string hint = constantHint(weight, "weight").str();
  if (!type.getElementType().isF32()) {
    SmallVector<double> values = *getConstantDoubles(weight);
    scaleChannels<double>(values, view, scale);
    return createFromDoubles(rewriter, weight.getLoc(), type, values, hint);
  }
  // Nearly all weights are f32: avoid the conversion to eight bytes per element.
  std::optional<TensorData> data = getConstantData(weight);
  std::vector<char> bytes(data->bytes.begin(), data->bytes.end());
  scaleChannels<float>({reinterpret_cast<float *>(bytes.data()), bytes.size() / sizeof(float)}, view, scale);
  return createConstant(rewriter, weight.getLoc(), type, std::move(bytes), hint);
}

void foldIntoWeights(RewriterBase &rewriter, Operation *op, const AffineChain &chain) {
  constexpr unsigned kWeight = 1, kBias = 2; // Operand numbers, the same in all three ops.
  Operation *last = chain.ops.back();
  rewriter.setInsertionPoint(last);
  Value weight = op->getOperand(kWeight);
  Value bias = op->getNumOperands() > kBias ? op->getOperand(kBias) : Value();
  if (chain.scales) {
    weight = scaledWeight(rewriter, op, weight, chain.scale);
  }
  std::vector<double> shift = chain.shift;
  if (bias) {
    SmallVector<double> old = *getConstantDoubles(bias);
    for (auto [c, value] : llvm::enumerate(shift)) {
      value += old[c] * chain.scale[c];
    }
  }
  RankedTensorType biasType = typeOf(weight).clone({chain.channels});
  Value newBias = createFromDoubles(rewriter, op->getLoc(), biasType, shift, constantHint(bias, "bias"));
  Operation *folded = rewriter.clone(*op);
  folded->setOperands({op->getOperand(0), weight, newBias});
  replaceFused(rewriter, last, folded);
}

void replaceByMulAdd(RewriterBase &rewriter, const AffineChain &chain) {
  Operation *last = chain.ops.back();
  rewriter.setInsertionPoint(last);
  RankedTensorType type = chain.type;
  SmallVector<int64_t> dims(type.getRank() - chain.axis, 1); // [C, 1, ...]
  dims.front() = chain.channels;
  SmallVector<Location> locations;
  for (Operation *op : chain.ops) {
    locations.push_back(op->getLoc());
  }
  Location loc = FusedLoc::get(rewriter.getContext(), locations);
  auto constant = [&](ArrayRef<double> values, StringRef hint) {
    return createFromDoubles(rewriter, loc, RankedTensorType::get(dims, type.getElementType()), values, hint);
  };
  // Read the value only now: another fold may have replaced it since the chain was collected.
  Value start = cast<BatchNormOp>(chain.ops.front()).getX();
  Value scaled = MulOp::create(rewriter, loc, type, start, constant(chain.scale, "scale"));
  auto shifted = AddOp::create(rewriter, loc, type, scaled, constant(chain.shift, "shift"));
  replaceFused(rewriter, last, shifted);
}

} // namespace tessera::top
