//===- WeightOnly.cpp - Integer weights of ops that compute in float ------===//
// SPDX-License-Identifier: Apache-2.0
#include "quant/Transforms/WeightOnly.h"

#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/TopOps.h"
#include "llvm/Support/MathExtras.h"
#include <cfloat>
#include <cmath>

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
};

/// Integers in [-2^(bits - 1), 2^(bits - 1) - 1] that stand for |values|, and their scale: of those tried, the one with
/// the least squared error. Clipping the largest values a little makes the step finer for all others.
float roundGroup(ArrayRef<float> values, int bits, MutableArrayRef<int8_t> integers) {
  float high = static_cast<float>((1 << (bits - 1)) - 1), low = -high - 1, largest = 0;
  for (float value : values) {
    largest = std::max(largest, std::fabs(value));
  }
  if (!(largest >= FLT_MIN * 256)) {
    llvm::fill(integers, 0);
    return 1.0f / (1 << 20); // of zeros, any
  }
  auto round = [&](float value, float scale) { return std::clamp(std::nearbyint(value / scale), low, high); };
  double least = HUGE_VAL;
  float best = largest / high;
  auto consider = [&](float scale) {
    double error = 0;
    for (float value : values) {
      double off = double(round(value, scale)) * scale - value;
      error += off * off;
    }
    if (error < least) {
      least = error, best = scale;
    }
  };
  consider(best);
  for (float steps = high + 0.25f; bits == 4 && steps <= high * 1.75f; steps += 0.25f) {
    consider(largest / steps);
  }
  // The best scale for these integers.
  double products = 0, squares = 0;
  for (float value : values) {
    double integer = round(value, best);
    products += integer * value, squares += integer * integer;
  }
  consider(static_cast<float>(products / squares));
  for (auto [integer, value] : llvm::zip_equal(integers, values)) {
    integer = static_cast<int8_t>(round(value, best));
  }
  return best;
}

struct Rounded {
  std::vector<int8_t> integers; ///< [before, groups * group, after]
  std::vector<float> scales;    ///< [before, groups] or, with channelsLast, [groups, after]
};

Rounded roundWeights(ArrayRef<float> weights, const View &view, int bits) {
  int64_t padded = view.groups() * view.group;
  Rounded result;
  result.integers.assign(view.before * padded * view.after, 0);
  result.scales.resize(view.channels() * view.groups());
  SmallVector<float> values;
  SmallVector<int8_t> integers;
  SmallVector<int64_t> places;
  for (int64_t channel = 0; channel < view.channels(); ++channel) {
    for (int64_t group = 0; group < view.groups(); ++group) {
      values.clear(), places.clear();
      for (int64_t d = group * view.group, end = std::min(d + view.group, view.depth); d < end; ++d) {
        for (int64_t a = view.channelsLast ? channel : 0; a < (view.channelsLast ? channel + 1 : view.after); ++a) {
          int64_t before = view.channelsLast ? 0 : channel;
          values.push_back(weights[(before * view.depth + d) * view.after + a]);
          places.push_back((before * padded + d) * view.after + a);
        }
      }
      integers.resize(values.size());
      int64_t at = view.channelsLast ? group * view.channels() + channel : channel * view.groups() + group;
      result.scales[at] = roundGroup(values, bits, integers);
      for (auto [place, integer] : llvm::zip_equal(places, integers)) {
        result.integers[place] = integer;
      }
    }
  }
  return result;
}

template <typename T>
Value constant(OpBuilder &builder, Location loc, RankedTensorType type, ArrayRef<T> values, StringRef hint) {
  return top::createConstant(builder, loc, type,
                             ArrayRef(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T)), hint);
}

class WeightQuantizer {
public:
  WeightQuantizer(func::FuncOp function, const Decisions &decisions, Precision precision, int64_t groupSize)
      : function(function), decisions(decisions), precision(precision), groupSize(groupSize),
        builder(function.getContext()) {}

  WeightOnly run() {
    for (Operation &op : llvm::make_early_inc_range(function.getBody().front().without_terminator())) {
      const Choice *choice = decisions.asked.lookup(&op);
      Precision wanted = choice ? choice->precision : precision;
      if ((wanted == Precision::W8 || wanted == Precision::W4) && !decisions.integers.contains(&op)) {
        quantize(&op, wanted == Precision::W4 ? 4 : 8);
      }
    }
    return std::move(result);
  }

private:
  void quantize(Operation *op, int bits) {
    if (auto gather = dyn_cast<top::GatherOp>(op)) {
      // A table of embeddings: a scale per row. Its entries are used as they are, so they keep 8 bits.
      if (gather.getAxis() == 0 && isWeight(op->getOperand(0), 2)) {
        replace(op, 0, 8, false);
      }
      return;
    }
    if (!isa<top::ConvOp, top::ConvTransposeOp, top::MatMulOp>(op)) {
      return;
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
      replace(op, 1, bits, matmul && !matmul.getTransB());
    }
  }

  /// A finite f32 constant of rank at least |rank|.
  static bool isWeight(Value value, int64_t rank) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    std::optional<top::TensorData> data =
        type && type.getElementType().isF32() && type.getRank() >= rank ? top::getConstantData(value) : std::nullopt;
    return data && type.getNumElements() > 0 &&
           llvm::all_of(data->data<float>(), [](float w) { return std::isfinite(w); });
  }

  void replace(Operation *op, unsigned index, int bits, bool channelsLast) {
    Value weight = op->getOperand(index);
    auto type = cast<RankedTensorType>(weight.getType());
    ArrayRef<int64_t> shape = type.getShape();
    View view{shape[0], shape[1], 1, channelsLast, 0};
    for (int64_t dim : shape.drop_front(2)) {
      view.after *= dim;
    }
    if (channelsLast) {
      view = {1, shape[0], shape[1], true, 0};
    }
    // Few input channels (depthwise ones, a first layer) mean few weights, whose errors little averages out.
    bits = !channelsLast && type.getRank() > 2 && view.depth < 16 ? 8 : bits;
    // Whole blocks of 16 input channels with all their taps, as kernels walk them. 8 bits need no groups.
    int64_t taps = channelsLast ? 1 : view.after;
    view.group = bits == 8 ? view.depth : llvm::alignTo(llvm::divideCeil(groupSize, taps), 16);
    view.group = std::min(view.group, view.depth);
    Value &known = replaced[{weight, bits * 2 + channelsLast}];
    if (!known) {
      known = dequantised(weight, type, view, bits);
    }
    op->setOperand(index, known);
    result.ops.insert(op);
  }

  /// dequantize of [before, groups, group * after] with a scale per group, as the shape that the op reads.
  Value dequantised(Value weight, RankedTensorType type, const View &view, int bits) {
    Rounded rounded = roundWeights(top::getConstantData(weight)->data<float>(), view, bits);
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
    Value q = constant<int8_t>(builder, loc, RankedTensorType::get(dims, builder.getI8Type()), rounded.integers,
                               hint + (bits == 4 ? "_w4" : "_w8"));
    Value scale = constant<float>(builder, loc, RankedTensorType::get(scaleDims, builder.getF32Type()), rounded.scales,
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
  OpBuilder builder;
  llvm::DenseMap<std::pair<Value, int>, Value> replaced;
  WeightOnly result;
};

} // namespace

WeightOnly quantizeWeightsOnly(func::FuncOp function, const Decisions &decisions, Precision precision,
                               int64_t groupSize) {
  return WeightQuantizer(function, decisions, precision, groupSize).run();
}

} // namespace tessera::quant
