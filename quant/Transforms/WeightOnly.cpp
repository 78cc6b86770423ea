//===- WeightOnly.cpp - Integer weights of ops that compute in float ------===//
// SPDX-License-Identifier: Apache-2.0
#include "quant/Transforms/WeightOnly.h"

#include "mlir/IR/Threading.h"
#include "quant/Transforms/SumKeepingRounding.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/IR/WeightLifetime.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"
#include <cfloat>
#include <cmath>
#include <limits>

using namespace mlir;

namespace tessera::quant {
namespace {

using Dims = SmallVector<int64_t>;

/// A weight tensor as [before, depth, after]: elements of one place in `before` and, where |channelsLast|, in `after`
/// belong to one output channel, whose products are summed over `depth` (and else over `after`, the taps of a kernel).
struct View {
  int64_t before, depth, after;
  bool channelsLast;
  int64_t group; ///< entries of depth that share a scale

  int64_t groups() const { return llvm::divideCeil(depth, group); }
  int64_t channels() const { return channelsLast ? after : before; }
  int64_t padded() const { return groups() * group; }
  int64_t scaleAt(int64_t channel, int64_t g) const {
    return channelsLast ? g * channels() + channel : channel * groups() + g;
  }
};

/// Adding it and taking it away again rounds floats of less than 2^22 to the nearest integer, ties to even.
constexpr float kRounder = 0x1.8p23f;

/// How integers in [-2^(bits - 1), 2^(bits - 1) - 1] stand for weights.
struct Range {
  explicit Range(int bits) : high(static_cast<float>((1 << (bits - 1)) - 1)), low(-high - 1) {}
  float round(float value, float scale) const {
    float scaled = value / scale;
    scaled = scaled < low ? low : scaled; // as std::clamp(), but without references
    scaled = scaled > high ? high : scaled;
    return (scaled + kRounder) - kRounder;
  }
  float high, low;
};

constexpr size_t kAtOnce = 64; ///< divisions, which do not wait for each other, before their results are summed

/// |values| in units of |scale|, rounded.
TESSERA_WIDE_VECTORS void roundEach(Range range, const float *values, size_t count, float scale, float *rounded) {
  for (size_t i = 0; i < count; ++i) {
    rounded[i] = range.round(values[i], scale);
  }
}

TESSERA_WIDE_VECTORS void squareErrors(Range range, const float *values, size_t count, float scale, double *squares) {
  for (size_t i = 0; i < count; ++i) {
    double off = double(range.round(values[i], scale)) * scale - values[i];
    squares[i] = off * off;
  }
}

/// The squared error of |values| with |scale|, summed in their order.
double errorOf(const Range &range, ArrayRef<float> values, float scale) {
  double error = 0, squares[kAtOnce];
  for (; !values.empty(); values = values.drop_front(std::min(kAtOnce, values.size()))) {
    const size_t count = std::min(kAtOnce, values.size());
    squareErrors(range, values.data(), count, scale, squares);
    for (size_t i = 0; i < count; ++i) {
      error += squares[i];
    }
  }
  return error;
}

/// Adds the sums of |a| times |b| and of the squares of |a|; several partial sums, which do not wait for each other.
TESSERA_WIDE_VECTORS void addProducts(const float *a, const float *b, size_t count, double &products, double &squares) {
  constexpr size_t kLanes = 8;
  double product[kLanes] = {}, square[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      product[lane] += double(a[i + lane]) * b[i + lane], square[lane] += double(a[i + lane]) * a[i + lane];
    }
  }
  for (; i < count; ++i) {
    product[0] += double(a[i]) * b[i], square[0] += double(a[i]) * a[i];
  }
  for (size_t lane = 0; lane < kLanes; ++lane) {
    products += product[lane], squares += square[lane];
  }
}

TESSERA_WIDE_VECTORS void multiplyEach(const float *values, size_t count, float factor, float *results) {
  for (size_t i = 0; i < count; ++i) {
    results[i] = values[i] * factor;
  }
}

/// Adds the squared errors of the values with each of several scales, of which |inverses| are 1 over. In f32, without
/// divisions: it tells good scales from bad ones, most of what W4 costs is this loop.
TESSERA_WIDE_VECTORS void addErrors(Range range, const float *values, size_t valueCount, const float *scales,
                                    const float *inverses, size_t scaleCount, float *errors) {
  for (size_t v = 0; v < valueCount; ++v) {
    const float value = values[v];
    for (size_t i = 0; i < scaleCount; ++i) {
      float scaled = value * inverses[i];
      scaled = scaled < range.low ? range.low : scaled;
      scaled = scaled > range.high ? range.high : scaled;
      const float off = ((scaled + kRounder) - kRounder) * scales[i] - value;
      errors[i] += off * off;
    }
  }
}

/// The bits of the largest magnitude.
TESSERA_WIDE_VECTORS uint32_t largestMagnitude(const float *values, size_t count) {
  uint32_t largest = 0; // bits of floats without a sign are in the floats' order
  for (size_t i = 0; i < count; ++i) {
    const uint32_t magnitude = llvm::bit_cast<uint32_t>(values[i]) & 0x7fffffff;
    largest = magnitude > largest ? magnitude : largest;
  }
  return largest;
}

/// The one of |values| that is farthest from zero, the first of equal ones.
float largestOf(ArrayRef<float> values) {
  const float largest = llvm::bit_cast<float>(largestMagnitude(values.data(), values.size()));
  auto first = llvm::find_if(values, [=](float value) { return std::fabs(value) == largest; });
  return first == values.end() ? 0.0f : *first;
}

/// The scale with which integers of |bits| stand for |values|: of those tried, the one with the least squared error.
/// Clipping the largest values a little makes the step finer for all others; where the largest is positive a negative
/// scale makes it the lowest integer, of which there is one more.
float scaleOf(ArrayRef<float> values, int bits) {
  const Range range(bits);
  const float largest = largestOf(values);
  if (!(std::fabs(largest) >= FLT_MIN * 256)) {
    return 1.0f / (1 << 20); // of zeros, any
  }
  SmallVector<float, 64> scales{std::fabs(largest) / range.high};
  for (float steps = range.high; bits == 4 && steps <= range.high * 1.75f; steps += 0.25f) {
    scales.push_back(std::fabs(largest) / steps);
    scales.push_back(largest / (-steps - 1));
  }
  float best = scales.front();
  double least = std::numeric_limits<double>::infinity();
  if (scales.size() > 1) {
    // In units of the largest: no square is too large or small for f32.
    const float unit = std::fabs(largest), inverse = 1 / unit;
    SmallVector<float, 64> shares, inverses, steps, errors(scales.size(), 0.0f);
    shares.resize_for_overwrite(values.size());
    multiplyEach(values.data(), values.size(), inverse, shares.data());
    for (float scale : scales) {
      steps.push_back(scale * inverse);
      inverses.push_back(unit / scale);
    }
    addErrors(range, shares.data(), shares.size(), steps.data(), inverses.data(), scales.size(), errors.data());
    const float limit = *llvm::min_element(errors) * 1.001f + 1e-9f; // what f32 does not tell apart
    for (auto [scale, error] : llvm::zip_equal(scales, errors)) {
      if (double exact = error <= limit ? errorOf(range, values, scale) : least; exact < least) {
        best = scale, least = exact;
      }
    }
  } else {
    least = errorOf(range, values, best);
  }
  // The best scale for these integers.
  double products = 0, squares = 0;
  float rounded[kAtOnce];
  for (ArrayRef<float> left = values; !left.empty(); left = left.drop_front(std::min(kAtOnce, left.size()))) {
    const size_t count = std::min(kAtOnce, left.size());
    roundEach(range, left.data(), count, best, rounded);
    addProducts(rounded, left.data(), count, products, squares);
  }
  const float last = static_cast<float>(products / squares);
  return errorOf(range, values, last) < least ? last : best;
}

struct Rounded {
  std::vector<char> integers; ///< [before, groups * group, after]
  std::vector<float> scales;  ///< [before, groups] or, with channelsLast, [groups, after]
};

/// Rounds the channels of a weight, some beside each other at a time.
class Rounder {
public:
  /// |sums|: those of kernels and groups stay.
  Rounder(ArrayRef<float> weights, const View &view, int bits, bool sums, Rounded &result)
      : weights(weights), view(view), bits(bits), taps(sums ? (view.channelsLast ? 1 : view.after) : 0),
        length(view.depth * (view.channelsLast ? 1 : view.after)), result(result) {}

  int64_t tiles() const { return llvm::divideCeil(view.channels(), kChannels); }

  void roundTile(int64_t tile) const {
    const int64_t first = tile * kChannels, count = std::min(kChannels, view.channels() - first);
    std::vector<float> gathered(view.channelsLast ? count * length : 0);
    if (view.channelsLast) {
      turn(view.depth, count,
           [&](int64_t d, int64_t c) { gathered[c * length + d] = weights[d * view.after + first + c]; });
    }
    ArrayRef<float> values = view.channelsLast ? ArrayRef(gathered) : weights.slice(first * length, count * length);
    std::vector<int8_t> integers(count * length);
    SumKeepingRounding rounding(-(1 << (bits - 1)), (1 << (bits - 1)) - 1);
    for (int64_t c = 0; c < count; ++c) {
      roundChannel(first + c, values.slice(c * length, length), rounding,
                   MutableArrayRef(integers).slice(c * length, length));
    }
    auto *to = reinterpret_cast<int8_t *>(result.integers.data());
    for (int64_t c = 0; !view.channelsLast && c < count; ++c) {
      llvm::copy(ArrayRef(integers).slice(c * length, length), to + (first + c) * view.padded() * view.after);
    }
    if (view.channelsLast) {
      turn(view.depth, count, [&](int64_t d, int64_t c) { to[d * view.after + first + c] = integers[c * length + d]; });
    }
  }

private:
  static constexpr int64_t kChannels = 64; ///< of channels that lie beside each other, a cache line of integers

  /// Every pair of the two, in blocks: rows of 2^n elements all lie in the same few lines of a cache.
  template <typename Visit>
  static void turn(int64_t depth, int64_t channels, Visit visit) {
    constexpr int64_t kBlock = 16;
    for (int64_t begin = 0; begin < depth; begin += kBlock) {
      for (int64_t c = 0; c < channels; ++c) {
        for (int64_t d = begin; d < std::min(begin + kBlock, depth); ++d) {
          visit(d, c);
        }
      }
    }
  }

  void roundChannel(int64_t channel, ArrayRef<float> values, SumKeepingRounding &rounding,
                    MutableArrayRef<int8_t> integers) const {
    const int64_t step = view.group * (length / view.depth);
    for (int64_t group = 0; group < view.groups(); ++group) {
      ArrayRef<float> own = values.slice(group * step, std::min(step, length - group * step));
      float &scale = result.scales[view.scaleAt(channel, group)];
      scale = scaleOf(own, bits);
      rounding.round(own, scale);
      if (taps) { // what is summed up; rows of a table are used as they are
        rounding.mendRuns(taps, own.size() / taps);
        rounding.mendRuns(own.size(), 1);
      }
      llvm::copy(rounding.get(), integers.begin() + group * step);
    }
  }

  ArrayRef<float> weights;
  const View &view;
  int bits;
  int64_t taps;   ///< of a kernel whose sum stays; 0: none
  int64_t length; ///< elements of a channel
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

/// What was learned, as `view` lies.
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

class WeightQuantizer {
public:
  WeightQuantizer(func::FuncOp function, const Decisions &decisions, Precision precision, int64_t groupSize,
                  const std::optional<LearnedWeights> &learned)
      : function(function), decisions(decisions), precision(precision), groupSize(groupSize), learned(learned),
        last(lastProducts(function)), builder(function.getContext()) {}

  llvm::Expected<WeightOnly> run(llvm::function_ref<void(size_t, size_t)> progress) {
    const size_t total = function.getBody().front().getOperations().size(); // before there are more
    size_t done = 0;
    for (Operation &op : llvm::make_early_inc_range(function.getBody().front().without_terminator())) {
      progress(std::min(++done, total), total);
      const Choice *choice = decisions.asked.lookup(&op);
      Precision wanted = choice ? choice->precision : precision;
      if ((wanted == Precision::W8 || wanted == Precision::W4) && !decisions.integers.contains(&op)) {
        if (llvm::Error error = quantize(&op, wanted == Precision::W4)) {
          return std::move(error);
        }
      }
    }
    return std::move(result);
  }

private:
  llvm::Error quantize(Operation *op, bool fourBits) {
    if (auto gather = dyn_cast<top::GatherOp>(op)) {
      // A table of embeddings: a scale per row. Its entries are used as they are, so they keep 8 bits.
      if (gather.getAxis() == 0 && isWeight(op->getOperand(0), 2)) {
        return replace(op, 0, {8, cast<RankedTensorType>(op->getOperand(0).getType()).getDimSize(1)}, false);
      }
      return llvm::Error::success();
    }
    if (!isa<top::ConvOp, top::ConvTransposeOp, top::MatMulOp>(op)) {
      return llvm::Error::success();
    }
    Value weight = op->getOperand(1);
    auto matmul = dyn_cast<top::MatMulOp>(op);
    if (!top::isConstant(weight)) {
      result.kept.insert({op, "its weight is computed at run time"});
    } else if (isa<top::ConvTransposeOp>(op)) {
      result.kept.insert({op, "weights of top.conv_transpose stay f32"});
    } else if (matmul && cast<RankedTensorType>(weight.getType()).getRank() != 2) {
      result.kept.insert({op, "its weight is no single matrix"});
    } else if (!isWeight(weight, 2)) {
      result.kept.insert({op, "its weight holds what integers cannot stand for: NaN, infinity or another type"});
    } else {
      return replace(op, 1, weightFormOf(op, fourBits, groupSize, last.contains(op)), matmul && !matmul.getTransB());
    }
    return llvm::Error::success();
  }

  /// A finite f32 constant of rank at least |rank|.
  static bool isWeight(Value value, int64_t rank) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    std::optional<top::TensorData> data =
        type && type.getElementType().isF32() && type.getRank() >= rank ? top::getConstantData(value) : std::nullopt;
    return data && type.getNumElements() > 0 &&
           llvm::all_of(data->data<float>(), [](float w) { return std::isfinite(w); });
  }

  llvm::Error replace(Operation *op, unsigned index, WeightForm form, bool channelsLast) {
    Value weight = op->getOperand(index);
    auto type = cast<RankedTensorType>(weight.getType());
    ArrayRef<int64_t> shape = type.getShape();
    View view{shape[0], shape[1], 1, channelsLast, form.group};
    for (int64_t dim : shape.drop_front(2)) {
      view.after *= dim;
    }
    if (channelsLast) {
      view = {1, shape[0], shape[1], true, form.group};
    }
    llvm::Expected<std::optional<LearnedGroups>> own = learnedFor(op, index, type, view, form);
    if (!own) {
      return own.takeError();
    }
    result.ops.insert(op);
    result.learned += own->has_value();
    if (*own) { // not shared: other readers have inputs of their own
      op->setOperand(index, dequantised(weight, type, view, form.bits, adopt(**own, view)));
      return llvm::Error::success();
    }
    Value &known = replaced[{weight, form.bits * 4 + channelsLast * 2 + index}];
    if (!known) {
      known = dequantised(weight, type, view, form.bits,
                          roundWeights(function.getContext(), top::getConstantData(weight)->data<float>(), view,
                                       form.bits, index == 1));
    }
    top::releaseWeight(weight);
    op->setOperand(index, known);
    return llvm::Error::success();
  }

  /// What was learned for the op, if anything was; `view` and `form` become those of 8 bits where it is to keep them.
  llvm::Expected<std::optional<LearnedGroups>> learnedFor(Operation *op, unsigned index, RankedTensorType type,
                                                          View &view, WeightForm &form) const {
    if (!learned || index != 1) {
      return std::nullopt;
    }
    StringRef tensor = top::getTensorName(op->getResult(0));
    auto found = learned->findGroups(tensor, type, view.channels(), view.groups(), form.bits);
    if (!found || *found || form.bits != 4) {
      return found;
    }
    auto wide = learned->findWide(tensor, type, view.channels());
    if (wide && *wide) {
      view.group = view.depth, form = {8, view.depth};
    }
    return wide;
  }

  /// dequantize of [before, groups, group * after] with a scale per group, as the shape that the op reads.
  Value dequantised(Value weight, RankedTensorType type, const View &view, int bits, Rounded rounded) {
    // Beside the weight: all its readers come later.
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

  /// The first elements of every dim.
  Value cropped(Location loc, Value value, RankedTensorType type) {
    Dims zeros(type.getRank(), 0), ones(type.getRank(), 1);
    return top::SliceOp::create(builder, loc, type, value, builder.getDenseI64ArrayAttr(zeros),
                                builder.getDenseI64ArrayAttr(type.getShape()), builder.getDenseI64ArrayAttr(ones));
  }

  func::FuncOp function;
  const Decisions &decisions;
  Precision precision;
  int64_t groupSize;
  const std::optional<LearnedWeights> &learned;
  llvm::DenseSet<Operation *> last;
  OpBuilder builder;
  llvm::DenseMap<std::pair<Value, int>, Value> replaced;
  WeightOnly result;
};

} // namespace

llvm::DenseSet<Operation *> lastProducts(func::FuncOp function) {
  llvm::DenseSet<Operation *> last, before; // before: a product comes after it
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

WeightForm weightFormOf(Operation *op, bool fourBits, int64_t groupSize, bool isLast) {
  auto type = cast<RankedTensorType>(op->getOperand(1).getType());
  auto matmul = dyn_cast<top::MatMulOp>(op);
  int64_t depth = type.getDimSize(matmul && !matmul.getTransB() ? 0 : 1), taps = 1;
  for (int64_t dim : type.getShape().drop_front(2)) {
    taps *= dim;
  }
  // Few input channels (depthwise ones, a first layer) mean few weights, whose errors little averages out; those of the
  // last product are the result's, as they are. 8 bits need no groups.
  if (!fourBits || isLast || (!matmul && depth < 16)) {
    return {8, depth};
  }
  // Whole blocks of 16 input channels with all their taps, as kernels walk them.
  return {4, std::min<int64_t>(llvm::alignTo(llvm::divideCeil(groupSize, taps), 16), depth)};
}

llvm::Expected<WeightOnly> quantizeWeightsOnly(func::FuncOp function, const Decisions &decisions, Precision precision,
                                               int64_t groupSize, const std::optional<LearnedWeights> &learned,
                                               llvm::function_ref<void(size_t, size_t)> progress) {
  return WeightQuantizer(function, decisions, precision, groupSize, learned).run(progress);
}

} // namespace tessera::quant
