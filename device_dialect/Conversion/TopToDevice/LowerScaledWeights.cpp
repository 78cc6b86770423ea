//===- LowerScaledWeights.cpp - Integer weights under a float operand -----===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/Conversion/TopToDevice/Quantized.h"
#include "device_dialect/IR/WeightScales.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/TopOps.h"

using namespace mlir;

namespace tessera::device {
namespace {

using Dims = SmallVector<int64_t>;

/// The value of |parameter|, broadcast as numpy does, at every element of |shape|.
template <typename T>
std::vector<T> broadcast(ArrayRef<T> values, ArrayRef<int64_t> dims, ArrayRef<int64_t> shape) {
  std::vector<T> result;
  Dims index(shape.size(), 0);
  int64_t count = 1;
  for (int64_t dim : shape) {
    count *= dim;
  }
  result.reserve(count);
  for (int64_t i = 0; i < count; ++i) {
    int64_t offset = 0;
    for (auto [d, dim] : llvm::enumerate(dims)) {
      int64_t at = index[d + shape.size() - dims.size()];
      offset = offset * dim + (dim == 1 ? 0 : at);
    }
    result.push_back(values[offset]);
    for (size_t d = shape.size(); d-- > 0 && ++index[d] == shape[d];) {
      index[d] = 0;
    }
  }
  return result;
}

/// The first elements of every dim of |values|.
template <typename T>
std::vector<T> crop(ArrayRef<T> values, ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  std::vector<T> result;
  Dims index(from.size(), 0);
  for (T value : values) {
    if (llvm::all_of(llvm::zip_equal(index, to), [](auto pair) { return std::get<0>(pair) < std::get<1>(pair); })) {
      result.push_back(value);
    }
    for (size_t d = from.size(); d-- > 0 && ++index[d] == from[d];) {
      index[d] = 0;
    }
  }
  return result;
}

/// i8 values and f32 scales, element by element.
struct Elements {
  std::vector<int8_t> integers;
  std::vector<float> scales;
};

/// What |weight| - a dequantize of constants, maybe reshaped, maybe cut at its ends - is made of.
std::optional<Elements> readElements(Value weight) {
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
  ArrayRef<int8_t> integers = q->data<int8_t>();
  Elements elements{{integers.begin(), integers.end()},
                    broadcast(scale->data<float>(), scale->type.getShape(), q->type.getShape())};
  if (slice) {
    ArrayRef<int64_t> from = Lowering::dims(whole), to = Lowering::dims(weight);
    elements = {crop<int8_t>(elements.integers, from, to), crop<float>(elements.scales, from, to)};
  }
  return elements;
}

} // namespace

std::optional<ScaledWeights> matchScaledWeights(Lowering &lower, Value weight, bool isConv, bool transposed) {
  ArrayRef<int64_t> shape = Lowering::dims(weight);
  std::optional<Elements> elements = isConv || shape.size() == 2 ? readElements(weight) : std::optional<Elements>();
  if (!elements || elements->integers.empty()) {
    return std::nullopt;
  }
  // One scale per step and channel first, then steps of equal scales together.
  WeightScales order = isConv ? WeightScales::ofConv(shape, 1) : WeightScales::ofMatMul(shape, 1, transposed);
  std::vector<float> table(order.depth * order.channels, 0);
  for (auto [i, scale] : llvm::enumerate(elements->scales)) {
    float &known = table[order.scaleOf(static_cast<int64_t>(i))];
    if (known != 0 && known != scale) {
      return std::nullopt; // differs between the taps of a kernel
    }
    known = scale;
  }
  auto row = [&](int64_t step) { return ArrayRef(table).slice(step * order.channels, order.channels); };
  int64_t group = 1;
  while (group < order.depth && row(group) == row(0)) {
    ++group;
  }
  std::vector<float> scales;
  for (int64_t step = 0; step < order.depth; ++step) {
    if (row(step) != row(step / group * group)) {
      return std::nullopt;
    }
    if (step % group == 0) {
      llvm::append_range(scales, row(step));
    }
  }
  auto constant = [&](RankedTensorType type, const void *data, size_t bytes, StringRef hint) {
    return top::createConstant(lower.rewriter, lower.loc, type, ArrayRef(static_cast<const char *>(data), bytes), hint);
  };
  Builder &builder = lower.rewriter;
  auto scalesType =
      RankedTensorType::get({int64_t(scales.size()) / order.channels, order.channels}, builder.getF32Type());
  return ScaledWeights{constant(RankedTensorType::get(shape, builder.getI8Type()), elements->integers.data(),
                                elements->integers.size(), "integer_weights"),
                       constant(scalesType, scales.data(), scales.size() * sizeof(float), "weight_scales"), group};
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
                                 /*packed=*/false, DenseI64ArrayAttr(), IntegerAttr(), IntegerAttr(), weights->group);
  if (op.getRelu()) {
    double limit = op.getReluLimit().convertToDouble();
    lower.setEpilogue(matmul, [&](OpBuilder &b, Location loc, ValueRange v) { return emitRelu(b, loc, v[0], limit); });
  } else {
    lower.setEpilogue(matmul, nullptr);
  }
  (void)lower.replace(matmul.getY());
}

} // namespace tessera::device
