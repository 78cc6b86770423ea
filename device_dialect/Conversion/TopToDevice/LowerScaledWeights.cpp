//===- LowerScaledWeights.cpp - Integer weights of float contractions -----===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/Conversion/TopToDevice/Quantized.h"
#include "device_dialect/IR/WeightScales.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/IR/WeightStore.h"

using namespace mlir;

namespace tessera::device {
namespace {

using Dims = SmallVector<int64_t>;

/// Returns, for each dim of |shape|, the distance between consecutive parameters of |dims|; 0 if they broadcast (as in
/// numpy).
Dims broadcastStrides(ArrayRef<int64_t> dims, ArrayRef<int64_t> shape) {
  Dims strides(shape.size(), 0);
  int64_t stride = 1;
  for (size_t d = dims.size(); d-- > 0;) {
    strides[d + shape.size() - dims.size()] = dims[d] == 1 ? 0 : stride;
    stride *= dims[d];
  }
  return strides;
}

/// Crops |values| from dims |from| to the leading elements |to| of every dim.
std::vector<char> crop(ArrayRef<char> values, ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  const int64_t run = to.back(), count = ShapedType::getNumElements(to) / run;
  std::vector<char> result;
  result.reserve(count * run);
  Dims index(to.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    int64_t at = 0;
    for (auto [position, size] : llvm::zip_equal(index, from)) {
      at = at * size + position;
    }
    llvm::append_range(result, values.slice(at, run));
    for (size_t d = to.size() - 1; d-- > 0 && ++index[d] == to[d];) {
      index[d] = 0;
    }
  }
  return result;
}

/// Scales by K step and channel; |perRow| steps share a row of scales.
struct StepScales {
  std::vector<float> rows;
  int64_t channels, perRow;

  ArrayRef<float> row(int64_t step) const { return ArrayRef(rows).slice(step / perRow * channels, channels); }
  bool equal(int64_t a, int64_t b) const { return a / perRow == b / perRow || row(a) == row(b); }
};

/// A weight: a dequantize of constants, possibly reshaped and cropped at its ends.
struct QuantizedWeight {
  top::DequantizeOp dequantize;
  ArrayRef<int64_t> whole, shape; ///< dims before and after cropping
  top::TensorData integers, scales;
  Dims strides; ///< strides of the scales along the integers' dims

  ArrayRef<int64_t> dims() const { return integers.type.getShape(); } ///< before the reshape

  static std::optional<QuantizedWeight> match(Value weight);
  std::optional<StepScales> scalesOfSteps(const WeightScales &order) const;

private:
  std::optional<StepScales> scalesOfGroups(const WeightScales &order) const;
  std::optional<StepScales> scalesOfElements(const WeightScales &order) const;
};

std::optional<QuantizedWeight> QuantizedWeight::match(Value weight) {
  auto slice = weight.getDefiningOp<top::SliceOp>();
  Value whole = slice ? slice.getX() : weight;
  auto reshape = whole.getDefiningOp<top::ReshapeOp>();
  auto dequantize = (reshape ? reshape.getX() : whole).getDefiningOp<top::DequantizeOp>();
  if (!dequantize || !Lowering::element(dequantize.getX()).isSignlessInteger(8)) {
    return std::nullopt;
  }
  std::optional<top::TensorData> q = top::getConstantData(dequantize.getX());
  std::optional<top::TensorData> scale = top::getConstantData(dequantize.getScale());
  std::optional<SmallVector<double>> zero = top::getConstantDoubles(dequantize.getZeroPoint());
  bool centred = zero && llvm::all_of(*zero, [](double z) { return z == 0; });
  bool cutAtEnds = !slice || (llvm::all_of(slice.getStarts(), [](int64_t s) { return s == 0; }) &&
                              llvm::all_of(slice.getSteps(), [](int64_t s) { return s == 1; }));
  if (!q || !scale || !centred || !cutAtEnds || !scale->type.getElementType().isF32() ||
      llvm::any_of(scale->data<float>(), [](float s) { return s == 0 || !std::isfinite(s); })) {
    return std::nullopt;
  }
  QuantizedWeight result{dequantize, Lowering::dims(whole), Lowering::dims(weight), *q, *scale, {}};
  result.strides = broadcastStrides(scale->type.getShape(), q->type.getShape());
  return result;
}

/// Returns the scales of integers that are not reshaped, with scales per channel, or of integers [groups, steps,
/// channels] (for a conv [channels, groups, steps * taps]) with scales per group and channel.
std::optional<StepScales> QuantizedWeight::scalesOfGroups(const WeightScales &order) const {
  const size_t channelDim = order.depthFirst ? dims().size() - 1 : 0, rank = dims().size();
  int64_t depth = whole[order.depthFirst ? 0 : 1], groupDim = order.depthFirst ? 0 : 1, perRow = depth;
  if (dims() != whole) {
    const int64_t size = rank == 3 ? dims()[order.depthFirst ? 1 : 2] : 0, taps = order.depthFirst ? 1 : order.taps;
    if (rank != 3 || size % taps || dims()[channelDim] != order.channels || dims()[groupDim] * (size / taps) != depth) {
      return std::nullopt;
    }
    perRow = size / taps;
  }
  StepScales result{{}, order.channels, perRow};
  for (size_t d = 0; d < rank; ++d) {
    bool isOfGroups = dims() != whole && int64_t(d) == groupDim;
    if (strides[d] != 0 && d != channelDim && !isOfGroups) {
      return std::nullopt;
    }
  }
  const int64_t step = dims() == whole ? 0 : strides[groupDim];
  for (int64_t row = 0, count = llvm::divideCeil(order.depth, perRow); row < count; ++row) {
    for (int64_t channel = 0; channel < order.channels; ++channel) {
      result.rows.push_back(scales.data<float>()[row * step + channel * strides[channelDim]]);
    }
  }
  return result;
}

/// Returns the scales of any other form, with a row for each step; nothing if they differ between the taps of a kernel.
std::optional<StepScales> QuantizedWeight::scalesOfElements(const WeightScales &order) const {
  StepScales result{std::vector<float>(order.depth * order.channels, 0), order.channels, 1};
  Dims index(dims().size(), 0), place(whole.size(), 0);
  int64_t kept = 0; // elements of the cropped weight so far
  for (int64_t i = 0, count = ShapedType::getNumElements(dims()); i < count; ++i) {
    bool isKept =
        llvm::all_of(llvm::zip_equal(place, shape), [](auto pair) { return std::get<0>(pair) < std::get<1>(pair); });
    if (isKept) {
      int64_t offset = 0;
      for (auto [at, stride] : llvm::zip_equal(index, strides)) {
        offset += at * stride;
      }
      float scale = scales.data<float>()[offset], &known = result.rows[order.scaleOf(kept++)];
      if (known != 0 && known != scale) {
        return std::nullopt;
      }
      known = scale;
    }
    for (size_t d = index.size(); d-- > 0 && ++index[d] == dims()[d];) {
      index[d] = 0;
    }
    for (size_t d = place.size(); d-- > 0 && ++place[d] == whole[d];) {
      place[d] = 0;
    }
  }
  return result;
}

std::optional<StepScales> QuantizedWeight::scalesOfSteps(const WeightScales &order) const {
  std::optional<StepScales> found = scalesOfGroups(order);
  return found ? found : scalesOfElements(order);
}

/// Returns a constant of |bytes|; shares the memory of |weight| if that is in the weight store.
Value shared(Lowering &lower, RankedTensorType type, Value weight, ArrayRef<char> bytes, StringRef hint) {
  auto &store = lower.rewriter.getContext()->getOrLoadDialect<top::TopDialect>()->getWeightStore();
  auto source = weight.getDefiningOp<top::WeightOp>();
  auto view = source ? store.lookup(source.getKey()) : std::nullopt;
  if (!view || int64_t(bytes.size()) <= top::kMaxInlineBytes) {
    return top::createConstant(lower.rewriter, lower.loc, type, bytes, hint);
  }
  std::string key = store.add(hint, type.getElementType(), type.getShape(), bytes, view->owner, view->isMapped);
  store.release(key); // adding it read all of it
  return top::WeightOp::create(lower.rewriter, lower.loc, type, lower.rewriter.getStringAttr(key));
}

} // namespace

std::optional<ScaledWeights> matchScaledWeights(Lowering &lower, Value weight, bool isConv, bool transposed) {
  if (!Shape(weight).isKnown()) {
    return std::nullopt;
  }
  ArrayRef<int64_t> shape = Lowering::dims(weight);
  std::optional<QuantizedWeight> given =
      isConv || shape.size() == 2 ? QuantizedWeight::match(weight) : std::optional<QuantizedWeight>();
  if (!given || llvm::is_contained(shape, 0)) {
    return std::nullopt;
  }
  const WeightScales order = isConv ? WeightScales::ofConv(shape, 1) : WeightScales::ofMatMul(shape, 1, transposed);
  std::optional<StepScales> steps = given->scalesOfSteps(order);
  if (!steps) {
    return std::nullopt;
  }
  // Count the leading steps with equal scales.
  int64_t group = 1;
  while (group < order.depth && steps->equal(group, 0)) {
    ++group;
  }
  std::vector<float> scales;
  for (int64_t step = 0; step < order.depth; ++step) {
    if (!steps->equal(step, step / group * group)) {
      return std::nullopt;
    }
    if (step % group == 0) {
      llvm::append_range(scales, steps->row(step));
    }
  }
  Builder &builder = lower.rewriter;
  auto type = RankedTensorType::get(shape, builder.getI8Type());
  auto scalesType =
      RankedTensorType::get({int64_t(scales.size()) / order.channels, order.channels}, builder.getF32Type());
  ArrayRef<char> scaleBytes(reinterpret_cast<const char *>(scales.data()), scales.size() * sizeof(float));
  Value integers =
      given->whole == given->shape
          ? shared(lower, type, given->dequantize.getX(), given->integers.bytes, "integer_weights")
          : top::createConstant(lower.rewriter, lower.loc, type,
                                crop(given->integers.bytes, given->whole, given->shape), "integer_weights");
  return ScaledWeights{integers,
                       top::createConstant(lower.rewriter, lower.loc, scalesType, scaleBytes, "weight_scales"), group};
}

void lowerScaledMatMul(PatternRewriter &rewriter, top::MatMulOp op) {
  rewriter.setInsertionPoint(op);
  Lowering lower(rewriter, op);
  std::optional<ScaledWeights> weights = matchScaledWeights(lower, op.getB(), false, op.getTransB());
  if (!weights) {
    return;
  }
  auto matmul = MatMulOp::create(rewriter, lower.loc, Lowering::type(op.getY()), op.getA(), weights->values,
                                 op.getBias(), ValueRange(), weights->scales, op.getTransA(), op.getTransB(),
                                 /*packing=*/PackingInterface(), IntegerAttr(), weights->group);
  if (op.getRelu()) {
    double limit = op.getReluLimit().convertToDouble();
    lower.setEpilogue(matmul, [&](OpBuilder &b, Location loc, ValueRange v) { return emitRelu(b, loc, v[0], limit); });
  } else {
    lower.setEpilogue(matmul, nullptr);
  }
  (void)lower.replace(matmul.getY());
}

} // namespace tessera::device
