//===- WeightOnly.cpp - Integer weights of ops that compute in float ------===//
// SPDX-License-Identifier: Apache-2.0
#include "quant/Transforms/Weights/WeightOnly.h"

#include "mlir/IR/Threading.h"
#include "quant/Transforms/Precision/PrecisionAttributes.h"
#include "quant/Transforms/Weights/SumKeepingRounding.h"
#include "quant/Transforms/Weights/WeightScale.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/NarrowFloats.h"
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/IR/WeightLifetime.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;

namespace tessera::quant {
namespace {

using Dims = SmallVector<int64_t>;

constexpr int64_t kBlockChannels = 16; ///< number of input channels that kernels of 4-bit weights read at once
constexpr float kSmallestHalf = 0x1p-14f, kLargestHalf = 65504; ///< magnitudes that f16 represents in full precision

/// A weight tensor seen as [before, depth, after]. Output channels run along `after` if |channelsLast|, else along
/// `before`. Products are summed over `depth` and, unless |channelsLast|, over `after`, the taps of a kernel.
struct View {
  int64_t before, depth, after;
  bool channelsLast;
  int64_t group;       ///< number of entries along depth that share a scale
  bool halves = false; ///< scales are rounded to f16, in which kernels of blocks read them

  int64_t groups() const { return llvm::divideCeil(depth, group); }
  int64_t channels() const { return channelsLast ? after : before; }
  int64_t padded() const { return groups() * group; }
  int64_t scaleAt(int64_t channel, int64_t g) const {
    return channelsLast ? g * channels() + channel : channel * groups() + g;
  }
};

struct Rounded {
  std::vector<char> integers; ///< [before, groups * group, after]
  std::vector<float> scales;  ///< [before, groups] or, with channelsLast, [groups, after]
};

/// Rounds the channels of a weight, a tile of adjacent channels at a time.
class Rounder {
public:
  /// |sums|: preserve the sums of kernels and groups.
  Rounder(ArrayRef<float> weights, const View &view, int bits, bool sums, Rounded &result)
      : weights(weights), view(view), bits(bits), taps(sums ? (view.channelsLast ? 1 : view.after) : 0),
        length(view.depth * (view.channelsLast ? 1 : view.after)), result(result) {}

  int64_t tiles() const { return llvm::divideCeil(view.channels(), kChannels); }

  void roundTile(int64_t tile) const {
    const int64_t first = tile * kChannels, count = std::min(kChannels, view.channels() - first);
    auto *to = reinterpret_cast<int8_t *>(result.integers.data());
    SumKeepingRounding rounding(-(1 << (bits - 1)), (1 << (bits - 1)) - 1);
    if (view.channelsLast) {
      roundColumns(first, count, rounding, to + first);
      return;
    }
    const int64_t step = view.group * (length / view.depth);
    for (int64_t channel = first; channel < first + count; ++channel) {
      for (int64_t group = 0; group < view.groups(); ++group) {
        ArrayRef<float> own = weights.slice(channel * length, length).drop_front(group * step);
        llvm::copy(roundGroup(channel, group, own.take_front(step), rounding),
                   to + channel * view.padded() * view.after + group * step);
      }
    }
  }

private:
  static constexpr int64_t kChannels = 64; ///< adjacent channels per tile: a cache line of integers

  /// Works group by group, so that the transposed data is small and stays in the cache.
  void roundColumns(int64_t first, int64_t count, SumKeepingRounding &rounding, int8_t *to) const {
    std::vector<float> gathered(count * view.group);
    std::vector<int8_t> integers(count * view.group);
    for (int64_t group = 0; group < view.groups(); ++group) {
      const int64_t begin = group * view.group, depth = std::min(view.group, view.depth - begin);
      const float *from = weights.data() + begin * view.after + first;
      turn(depth, count, [&](int64_t d, int64_t c) { gathered[c * depth + d] = from[d * view.after + c]; });
      for (int64_t d = begin + depth, next = d + view.group; d < std::min(next, view.depth); ++d) {
        prefetch(weights.data() + d * view.after + first, count); // the hardware does not predict such strides
      }
      for (int64_t c = 0; c < count; ++c) {
        llvm::copy(roundGroup(first + c, group, ArrayRef(gathered).slice(c * depth, depth), rounding),
                   integers.begin() + c * depth);
      }
      int8_t *rows = to + begin * view.after;
      turn(depth, count, [&](int64_t d, int64_t c) { rows[d * view.after + c] = integers[c * depth + d]; });
    }
  }

  /// Calls visit(d, c) for all pairs, in blocks: rows of 2^n elements would compete for a few cache sets.
  template <typename Visit>
  static void turn(int64_t depth, int64_t channels, Visit visit) {
    constexpr int64_t kBlock = 8;
    for (int64_t begin = 0; begin < depth; begin += kBlock) {
      for (int64_t c = 0; c < channels; ++c) {
        for (int64_t d = begin; d < std::min(begin + kBlock, depth); ++d) {
          visit(d, c);
        }
      }
    }
  }

  static void prefetch(const float *values, int64_t count) {
    constexpr int64_t kLine = 64 / sizeof(float);
    for (int64_t i = 0; i < count; i += kLine) {
      __builtin_prefetch(values + i);
    }
  }

  ArrayRef<int8_t> roundGroup(int64_t channel, int64_t group, ArrayRef<float> values,
                              SumKeepingRounding &rounding) const {
    float &scale = result.scales[view.scaleAt(channel, group)];
    scale = weightScale(values, bits);
    if (view.halves && std::fabs(scale) >= kSmallestHalf && std::fabs(scale) <= kLargestHalf) {
      scale = top::widenF16(top::roundToF16(scale));
    }
    rounding.round(values, scale);
    if (taps) { // weights that are summed up; rows of an embedding table are not
      rounding.mendRuns(taps, values.size() / taps);
      rounding.mendRuns(values.size(), 1);
    }
    return rounding.get();
  }

  ArrayRef<float> weights;
  const View &view;
  int bits;
  int64_t taps;   ///< size of a kernel whose sum is preserved; 0 for none
  int64_t length; ///< number of elements per channel
  Rounded &result;
};

Rounded roundWeights(MLIRContext *context, ArrayRef<float> weights, const View &view, int bits, bool sums) {
  Rounded result;
  result.integers.assign(view.before * view.padded() * view.after, 0);
  result.scales.resize(view.channels() * view.groups());
  const Rounder rounder(weights, view, bits, sums, result);
  parallelFor(context, 0, rounder.tiles(), [&](size_t tile) { rounder.roundTile(int64_t(tile)); });
  return result;
}

/// Returns the learned weights in the layout of `view`.
Rounded adopt(const LearnedGroups &learned, const View &view) {
  Rounded result;
  result.integers.assign(view.before * view.padded() * view.after, 0);
  result.scales.resize(learned.scales.size());
  int64_t row = view.depth * view.after;
  for (int64_t i = 0; i < view.before; ++i) {
    llvm::copy(learned.integers.slice(i * row, row), result.integers.begin() + i * view.padded() * view.after);
  }
  for (int64_t channel = 0; channel < view.channels(); ++channel) {
    for (int64_t group = 0; group < view.groups(); ++group) {
      result.scales[view.scaleAt(channel, group)] = learned.scales[channel * view.groups() + group];
    }
  }
  return result;
}

/// Returns the number of the operand with the weights: 0 for tables from which rows are gathered, else 1.
unsigned weightIndex(Operation *op) { return isa<top::GatherOp>(op) ? 0 : 1; }

/// Returns true if the output channels run along the last dim of the weight.
bool hasChannelsLast(Operation *op) {
  auto matmul = dyn_cast<top::MatMulOp>(op);
  return matmul && !matmul.getTransB();
}

View viewOf(Operation *op, int64_t group) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(op->getOperand(weightIndex(op)).getType()).getShape();
  if (hasChannelsLast(op)) {
    return {1, shape[0], shape[1], true, group};
  }
  View view{shape[0], shape[1], 1, false, group};
  for (int64_t dim : shape.drop_front(2)) {
    view.after *= dim;
  }
  return view;
}

class WeightQuantizer {
public:
  WeightQuantizer(func::FuncOp function, int64_t groupSize, const std::optional<LearnedWeights> &learned)
      : function(function), groupSize(groupSize), learned(learned), builder(function.getContext()) {}

  llvm::Expected<int64_t> run(llvm::function_ref<void(size_t, size_t)> progress) {
    const size_t total = function.getBody().front().getOperations().size(); // the rewrite adds more
    size_t done = 0;
    for (Operation &op : llvm::make_early_inc_range(function.getBody().front().without_terminator())) {
      progress(std::min(++done, total), total);
      const Precision precision = precisionOf(&op);
      if (op.hasAttr(kPrecisionAttr) && isOfWeights(precision) && top::isConstant(op.getOperand(weightIndex(&op)))) {
        if (llvm::Error error = replace(&op, precision)) {
          return std::move(error);
        }
      }
    }
    return countLearned;
  }

private:
  llvm::Error replace(Operation *op, Precision precision) {
    const unsigned index = weightIndex(op);
    Value weight = op->getOperand(index);
    auto type = cast<RankedTensorType>(weight.getType());
    WeightForm form = weightFormOf(op, hasFourBits(precision), groupSize);
    if (quantizesBlocks(precision)) { // 8 bits have blocks, too
      form.group = weightFormOf(op, /*fourBits=*/true, groupSize).group;
    }
    View view = viewOf(op, form.group);
    view.halves = quantizesBlocks(precision);
    llvm::Expected<std::optional<LearnedGroups>> own = learnedFor(op, index, type, view, form);
    if (!own) {
      return own.takeError();
    }
    countLearned += own->has_value();
    if (*own) { // learned weights are not shared: they depend on the op's inputs
      op->setOperand(index, dequantised(weight, type, view, form.bits, adopt(**own, view)));
      return llvm::Error::success();
    }
    Value &known = replaced[{weight, (form.bits * 2 + quantizesBlocks(precision)) * 4 + view.channelsLast * 2 + index}];
    if (!known) {
      known = dequantised(weight, type, view, form.bits,
                          roundWeights(function.getContext(), top::getConstantData(weight)->data<float>(), view,
                                       form.bits, index == 1));
    }
    top::releaseWeight(weight);
    op->setOperand(index, known);
    return llvm::Error::success();
  }

  /// Returns the weights learned for the op, if any.
  llvm::Expected<std::optional<LearnedGroups>> learnedFor(Operation *op, unsigned index, RankedTensorType type,
                                                          const View &view, const WeightForm &form) const {
    if (!learned || index != 1) {
      return std::nullopt;
    }
    StringRef tensor = top::getTensorName(op->getResult(0));
    if (form.bits == 8 && hasFourBits(requestedOf(op))) {
      auto wide = learned->findWide(tensor, type, view.channels());
      if (!wide || *wide) {
        return wide;
      }
    }
    return learned->findGroups(tensor, type, view.channels(), view.groups(), form.bits);
  }

  /// Creates dequantize of [before, groups, group * after] with one scale per group, and restores the shape that the op
  /// reads.
  Value dequantised(Value weight, RankedTensorType type, const View &view, int bits, Rounded rounded) {
    // Insert right after the weight, so that the result precedes all readers.
    builder.setInsertionPointAfter(weight.getDefiningOp());
    Location loc = weight.getLoc();
    bool one = view.groups() == 1;
    Dims dims = view.channelsLast ? Dims{view.groups(), view.group, view.after}
                                  : Dims{view.before, view.groups(), view.group * view.after};
    Dims scaleDims = view.channelsLast ? Dims{view.groups(), 1, view.after} : Dims{view.before, view.groups(), 1};
    if (one) {
      dims.assign(type.getShape().begin(), type.getShape().end());
      scaleDims.assign(dims.size(), 1);
      scaleDims[view.channelsLast ? dims.size() - 1 : 0] = view.channels();
    }
    auto named = weight.getDefiningOp<top::WeightOp>();
    std::string hint = named ? named.getKey().str() : "weight";
    Value q = top::createConstant(builder, loc, RankedTensorType::get(dims, builder.getI8Type()),
                                  std::move(rounded.integers), hint + (bits == 4 ? "_w4" : "_w8"));
    ArrayRef<char> scales(reinterpret_cast<const char *>(rounded.scales.data()), rounded.scales.size() * sizeof(float));
    Value scale = top::createConstant(builder, loc, RankedTensorType::get(scaleDims, builder.getF32Type()), scales,
                                      hint + "_scales");
    Value zero = top::createScalar(builder, loc, builder.getI8Type(), 0);
    Value result =
        top::DequantizeOp::create(builder, loc, RankedTensorType::get(dims, builder.getF32Type()), q, scale, zero);
    if (one) {
      return result;
    }
    Dims padded(type.getShape());
    int64_t depthDim = view.channelsLast ? 0 : 1;
    padded[depthDim] = view.groups() * view.group;
    result = reshaped(loc, result, padded);
    if (padded[depthDim] != type.getDimSize(depthDim)) {
      result = cropped(loc, result, type);
    }
    return result;
  }

  Value reshaped(Location loc, Value value, const Dims &dims) {
    auto type = RankedTensorType::get(dims, builder.getF32Type());
    return top::ReshapeOp::create(builder, loc, type, value, Value(), builder.getDenseI64ArrayAttr(dims));
  }

  /// Slices the first elements of every dim.
  Value cropped(Location loc, Value value, RankedTensorType type) {
    Dims zeros(type.getRank(), 0), ones(type.getRank(), 1);
    return top::SliceOp::create(builder, loc, type, value, builder.getDenseI64ArrayAttr(zeros),
                                builder.getDenseI64ArrayAttr(type.getShape()), builder.getDenseI64ArrayAttr(ones));
  }

  func::FuncOp function;
  int64_t groupSize;
  const std::optional<LearnedWeights> &learned;
  OpBuilder builder;
  llvm::DenseMap<std::pair<Value, int>, Value> replaced;
  int64_t countLearned = 0;
};

} // namespace

llvm::DenseSet<Operation *> lastContractions(func::FuncOp function) {
  llvm::DenseSet<Operation *> last, before; // before: ops on which a contraction depends
  for (Operation &op : llvm::reverse(function.getBody().front())) {
    bool isProduct = isa<top::ConvOp, top::ConvTransposeOp, top::MatMulOp>(op);
    bool leads = before.contains(&op);
    if (isProduct && !leads) {
      last.insert(&op);
    }
    for (Value operand : op.getOperands()) {
      if (Operation *from = operand.getDefiningOp(); from && (isProduct || leads)) {
        before.insert(from);
      }
    }
  }
  return last;
}

WeightForm weightFormOf(Operation *op, bool fourBits, int64_t groupSize) {
  auto shape = cast<RankedTensorType>(op->getOperand(weightIndex(op)).getType()).getShape();
  const int64_t depth = shape[hasChannelsLast(op) ? 0 : 1];
  if (!fourBits) {
    return {8, depth};
  }
  int64_t taps = 1;
  for (int64_t dim : shape.drop_front(2)) {
    taps *= dim;
  }
  // A group consists of whole blocks of 16 input channels with all their taps, the order in which kernels read them.
  return {4, std::min<int64_t>(llvm::alignTo(llvm::divideCeil(groupSize, taps), kBlockChannels), depth)};
}

bool hasGroups(Operation *op) {
  return isa<top::MatMulOp>(op) || cast<RankedTensorType>(op->getOperand(1).getType()).getDimSize(1) >= kBlockChannels;
}

bool keepsEightBits(Operation *op, bool isLast) {
  // Depthwise ops and first layers have few input channels, hence few weights, and their errors hardly average out.
  // Errors of the last contraction appear in the output unchanged. Entries of tables are not summed.
  return isa<top::GatherOp>(op) || isLast || !hasGroups(op);
}

llvm::Expected<bool> isLearnedInEightBits(Operation *op, int64_t groupSize, const LearnedWeights &learned) {
  StringRef tensor = top::getTensorName(op->getResult(0));
  auto type = cast<RankedTensorType>(op->getOperand(1).getType());
  const View view = viewOf(op, weightFormOf(op, /*fourBits=*/true, groupSize).group);
  auto narrow = learned.findGroups(tensor, type, view.channels(), view.groups(), 4);
  if (!narrow) {
    return narrow.takeError();
  }
  auto wide = learned.findWide(tensor, type, view.channels());
  return wide ? llvm::Expected<bool>(!*narrow && *wide) : wide.takeError();
}

llvm::Expected<int64_t> quantizeWeightsOnly(func::FuncOp function, int64_t groupSize,
                                            const std::optional<LearnedWeights> &learned,
                                            llvm::function_ref<void(size_t, size_t)> progress) {
  return WeightQuantizer(function, groupSize, learned).run(progress);
}

} // namespace tessera::quant
