//===- QuantisedShapes.cpp - Handlers of pools, means, resizes ------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Tflite/QuantisedImporter.h"
#include "top_dialect/Import/Tflite/Windows.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <set>

namespace tessera::top::tflite_import {
namespace {

/// Checks that operand and result have one type and one quantisation, as LiteRT's kernels assume.
bool requireOneQuantisation(QuantisedImporter &q) {
  Quantisation x = q.input(0), y = q.output();
  if (!q.n.failed() &&
      (x.scales != y.scales || x.zeros != y.zeros || q.n.elementType(q.n.input(0)) != q.outputType())) {
    q.n.unsupported("its operand and its result have different types, scales or zero points");
  }
  return !q.n.failed();
}

void maxPool(OperatorImporter &n) {
  QuantisedImporter q(n);
  std::optional<PoolForm> form = poolForm(n);
  if (!form || !requireOneQuantisation(q)) {
    return;
  }
  Value y =
      n.create<MaxPoolOp>(n.toChannelsFirst(n.input(0)), form->kernel, form->strides, form->pads, Ints{1, 1}, false);
  Range range = q.outputRange(form->activation);
  auto [low, high] = limitsOf(q.outputType());
  bool clamps = range.low != low || range.high != high;
  n.setOutput(0, n.toChannelsLast(clamps ? q.saturate(y, range, q.outputType()) : y));
}

/// Returns how many elements of the input each window of |form| has, [1, 1, H, W], or one number if all have as many.
Ints windowSizes(const PoolForm &form, llvm::ArrayRef<int64_t> in, llvm::ArrayRef<int64_t> out) {
  Ints sizes;
  auto count = [&](int64_t at, int d) {
    int64_t begin = at * form.strides[d] - form.pads[d];
    return std::min(begin + form.kernel[d], in[d]) - std::max<int64_t>(begin, 0);
  };
  for (int64_t i = 0; i < out[0]; ++i) {
    for (int64_t j = 0; j < out[1]; ++j) {
      sizes.push_back(count(i, 0) * count(j, 1));
    }
  }
  return llvm::all_equal(sizes) ? Ints{sizes.front()} : sizes;
}

/// Returns the sums of the windows of |x| in i32: a convolution with ones.
Value windowSums(QuantisedImporter &q, Value x, const PoolForm &form) {
  OperatorImporter &n = q.n;
  int64_t channels = n.shape(x)[1];
  Ints dims{channels, 1, form.kernel[0], form.kernel[1]};
  mlir::Type i8 = mlir::IntegerType::get(n.b.getBuilder().getContext(), 8);
  Value ones = q.constant(i8, dims, Ints(channels * form.kernel[0] * form.kernel[1], 1), "ones");
  return n.create<ConvOp>(q.centred(x, 0), n.b.create<CastOp>(ones, q.i32()), Value(), form.strides, form.pads,
                          Ints{1, 1}, channels, false, llvm::APFloat(-1.0));
}

void averagePool(OperatorImporter &n) {
  QuantisedImporter q(n);
  std::optional<PoolForm> form = poolForm(n);
  if (!form || !requireOneQuantisation(q)) {
    return;
  }
  constexpr int64_t kMost = int64_t(1) << 24;
  llvm::ArrayRef<int64_t> in = n.shape(n.input(0));
  if (in[1] < 1 || in[2] < 1 || form->kernel[0] * form->kernel[1] * in[3] > kMost) {
    return n.unsupported("its window is empty or too large");
  }
  Value sums = windowSums(q, n.toChannelsFirst(n.input(0)), *form);
  if (n.failed()) {
    return;
  }
  llvm::ArrayRef<int64_t> out = n.shape(sums);
  Ints sizes = windowSizes(*form, in.slice(1, 2), out.slice(2, 2)), halves, dims;
  for (int64_t size : sizes) {
    halves.push_back(size / 2);
  }
  if (sizes.size() > 1) {
    dims = {1, 1, out[2], out[3]};
  }
  Value y =
      q.roundedQuotient(sums, q.constant(q.i32(), dims, sizes, "sizes"), q.constant(q.i32(), dims, halves, "halves"));
  n.setOutput(0, n.toChannelsLast(q.saturate(y, q.outputRange(form->activation), q.outputType())));
}

/// Returns the factor of a mean of |count| elements: |factor| divided as LiteRT does, without normalisation.
FixedFactor meanFactor(FixedFactor factor, int64_t count) {
  int bits = std::min({int(std::floor(std::log2(double(count)))), 32, 62 - factor.shift});
  return {int32_t((int64_t(factor.mantissa) << bits) / count), factor.shift + bits};
}

void mean(OperatorImporter &n) {
  QuantisedImporter q(n);
  Value x = n.input(0);
  Quantisation in = q.input(0), out = q.output();
  std::set<int64_t> axes;
  for (int64_t axis : n.constantInts(1, "the axes")) {
    axes.insert(n.normalizeAxis(axis, n.rank(x)));
  }
  bool keepsDims = n.options<tflite::ReducerOptions>().keep_dims();
  if (!n.failed() && n.elementType(x) != q.outputType()) {
    n.unsupported("its operand and its result have different types");
  }
  int64_t count = 1;
  for (int64_t axis : axes) {
    count *= n.failed() ? 1 : n.shape(x)[axis];
  }
  if (n.failed() || count < 1 || count > (1 << 16)) {
    return n.unsupported(llvm::formatv("means of {0} integers are not supported", count));
  }
  FixedFactor factor = toFixedFactor(double(in.scale()) / double(out.scale()));
  Value sums = n.create<ReduceOp>(q.centred(x, in.zero()), ReduceKind::sum, Ints(axes.begin(), axes.end()), keepsDims);
  n.setOutput(0, q.requantise(sums, meanFactor(factor, count), 0, q.outputRange(), q.outputType()));
}

/// Concatenates integers of one quantisation. LiteRT scales only those of UINT8, in single precision.
void concatenation(OperatorImporter &n) {
  const auto &options = n.options<tflite::ConcatenationOptions>();
  QuantisedImporter q(n);
  Quantisation y = q.output();
  llvm::SmallVector<Value> parts;
  for (unsigned i = 0; i < n.numInputs(); ++i) {
    Quantisation x = q.input(i);
    Value part = n.input(i);
    bool isSame = x.scale() == y.scale() && x.zero() == y.zero();
    if (!n.failed() && !isSame && !n.elementType(part).isUnsignedInteger(8)) {
      n.unsupported("its tensors have different scales or zero points");
    }
    if (!n.failed() && !isSame) {
      float factor = x.scale() * (1.0f / y.scale()), offset = -float(x.zero()) * factor;
      Ints table;
      for (int value = 0; value < 256; ++value) {
        float steps = std::clamp(std::round(float(value) * factor + offset), -1e9f, 1e9f);
        table.push_back(std::clamp<int64_t>(int64_t(steps) + y.zero(), 0, 255));
      }
      part = q.lookUp(part, table, q.outputType());
    }
    parts.push_back(part);
  }
  if (n.failed() || parts.empty() || options.fused_activation_function() != tflite::ActivationFunctionType::NONE) {
    return n.unsupported("it has no inputs, or a fused activation");
  }
  n.setOutput(0, n.create<ConcatOp>(mlir::ValueRange(parts), n.normalizeAxis(options.axis(), n.rank(parts.front()))));
}

/// Pads with the integer that stands for 0.
void pad(OperatorImporter &n) {
  QuantisedImporter q(n);
  if (requireOneQuantisation(q)) {
    n.setOutput(0, padded(n, double(q.output().zero())));
  }
}

/// Positions of a bilinear resize along a dim, in units of 2^-10.
struct Positions {
  Ints lower, upper, weights; ///< weights of the upper element
};

Positions positionsOf(int64_t in, int64_t out, bool alignCorners, bool halfPixels) {
  int64_t scale = alignCorners && out > 1 ? (1024 * (in - 1) + (out - 1) / 2) / (out - 1) : (1024 * in + out / 2) / out;
  Positions result;
  for (int64_t i = 0; i < out; ++i) {
    int64_t at = i * scale + (halfPixels ? scale / 2 - 512 : 0);
    int64_t lower = std::max<int64_t>(at / 1024, 0);
    result.lower.push_back(std::min(lower, in - 1)), result.upper.push_back(std::min((at + 1023) / 1024, in - 1));
    result.weights.push_back(at - 1024 * lower);
  }
  return result;
}

/// Interpolates |x| in i64 along |axis| and multiplies the result by 1024.
Value interpolated(QuantisedImporter &q, Value x, int64_t axis, const Positions &positions) {
  OperatorImporter &n = q.n;
  int64_t size = int64_t(positions.lower.size());
  Ints dims(n.rank(x) - axis, 1), rest;
  dims.front() = size;
  for (int64_t weight : positions.weights) {
    rest.push_back(1024 - weight);
  }
  auto part = [&](const Ints &indices, const Ints &weights) {
    Value taken = n.create<GatherOp>(x, q.constant(q.i32(), {size}, indices, "indices"), axis);
    return n.create<MulOp>(taken, q.constant(q.i64(), dims, weights, "weights"));
  };
  return n.create<AddOp>(part(positions.lower, rest), part(positions.upper, positions.weights));
}

void resizeBilinear(OperatorImporter &n) {
  const auto &options = n.options<tflite::ResizeBilinearOptions>();
  QuantisedImporter q(n);
  Value x = n.input(0);
  Ints size = n.constantInts(1, "the size");
  if (!requireOneQuantisation(q) || !n.requireRank(x, 4)) {
    return;
  }
  constexpr int64_t kMost = 1 << 20;
  if (size.size() != 2 || size[0] < 1 || size[1] < 1 || size[0] > kMost || size[1] > kMost || n.shape(x)[1] < 1 ||
      n.shape(x)[2] < 1 || n.shape(x)[1] > kMost || n.shape(x)[2] > kMost) {
    return n.fail("its size must have two positive entries");
  }
  if (q.outputType().isUnsignedInteger()) {
    return n.unsupported("operands of UINT8 are not supported");
  }
  Value y = n.cast(x, q.i64());
  for (int64_t d = 0; d < 2; ++d) {
    Positions positions =
        positionsOf(n.shape(x)[1 + d], size[d], options.align_corners(), options.half_pixel_centers());
    y = interpolated(q, y, 1 + d, positions);
  }
  auto number = [&](int64_t value) { return n.b.scalar(q.i64(), double(value)); };
  n.setOutput(0, n.cast(q.roundedQuotient(y, number(1 << 20), number(1 << 19)), q.outputType()));
}

} // namespace

llvm::ArrayRef<HandlerEntry> quantisedShapeHandlers() {
  using Code = tflite::BuiltinOperator;
  static const HandlerEntry entries[] = {
      {Code::MAX_POOL_2D, maxPool},
      {Code::AVERAGE_POOL_2D, averagePool},
      {Code::MEAN, mean},
      {Code::CONCATENATION, concatenation},
      {Code::PAD, pad},
      {Code::RESIZE_BILINEAR, resizeBilinear},
  };
  return entries;
}

} // namespace tessera::top::tflite_import
