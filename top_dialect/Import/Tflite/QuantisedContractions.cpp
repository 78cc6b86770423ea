//===- QuantisedContractions.cpp - Handlers of products of integers -------===//
// SPDX-License-Identifier: Apache-2.0
//
// Sums of bytes are contractions of i32, of which the lowering multiplies the bytes. Activations of 16 bits are split
// into a signed upper and an unsigned lower byte: each has its own sum of i32, and the whole sum is an i64.
#include "top_dialect/Import/Tflite/QuantisedImporter.h"
#include "top_dialect/Import/Tflite/Windows.h"

#include "llvm/Support/FormatVariadic.h"

namespace tessera::top::tflite_import {
namespace {

using Contraction = llvm::function_ref<Value(Value x, Value weight, Value bias)>;

/// Operands of a contraction with weights: the numbers of its inputs, and the dims that hold channels.
struct Places {
  unsigned x = 0, weight = 1, bias = 2;
  int64_t weightAxis;            ///< dim of the file's weights with one scale per channel
  int64_t resultAxis;            ///< dim of the contraction's result with the channels
  bool isFullyConnected = false; ///< LiteRT scales these sums in double precision
};

/// A contraction of quantised operands with weights.
class WeightedSum {
public:
  WeightedSum(OperatorImporter &n, const Places &places)
      : n(n), q(n), places(places), x(q.input(places.x)), weight(q.input(places.weight)), y(q.output()) {}

  /// Returns the result with |activation|, computed by |contract| from channels-first operands.
  Value run(Value input, Value weights, tflite::ActivationFunctionType activation, bool hasNarrowSums,
            Contraction contract) {
    if (!check()) {
      return input;
    }
    Value w = centredWeights(weights);
    Value sums = n.elementType(input).isInteger(16) ? wideSums(input, w, hasNarrowSums, contract)
                                                    : contract(q.centred(input, x.zero()), w, bias(q.i32()));
    Range range = q.outputRange(activation);
    if (places.isFullyConnected) {
      return q.requantiseInDoubles(sums, factors(), places.resultAxis, range, q.outputType());
    }
    auto fixed = llvm::map_to_vector(factors(), toFixedFactor);
    if (n.elementType(sums).isInteger(64)) {
      llvm::transform(fixed, fixed.begin(), reduced);
    }
    return q.requantise(sums, fixed, places.resultAxis, range, q.outputType());
  }

private:
  bool check() {
    mlir::Type type = n.elementType(n.input(places.x)), weightType = n.elementType(n.input(places.weight));
    if (!n.failed() && !(type.isInteger() && weightType.isInteger(8) && q.outputType() == type)) {
      n.unsupported(
          "the types of its operands do not belong together; supported are INT8 or INT16 activations with INT8 "
          "weights, and UINT8 for both");
    }
    if (!n.failed() && type.isUnsignedInteger() != weightType.isUnsignedInteger()) {
      n.unsupported("only one of activations and weights is UINT8");
    }
    if (!n.failed() && weight.isPerChannel() && (weight.axis != places.weightAxis || type.isUnsignedInteger())) {
      n.unsupported(llvm::formatv("its weights have scales along dim {0}; supported is {1}, for INT8 and INT16",
                                  weight.axis, places.weightAxis));
    }
    bool hasZeros = llvm::any_of(weight.zeros, [](int64_t zero) { return zero != 0; });
    if (!n.failed() && weight.isPerChannel() && hasZeros) {
      n.unsupported("its weights have zero points per channel other than 0");
    }
    return !n.failed();
  }

  /// Returns the weights minus their zero point in i32. Symmetric ones stay bytes in the module.
  Value centredWeights(Value weights) {
    return weight.zero() == 0 ? n.b.create<CastOp>(weights, q.i32()) : q.centred(weights, weight.zero());
  }

  /// Returns the bias, or null. Its scale is not used, as in LiteRT.
  Value bias(mlir::Type type) {
    if (!n.hasInput(places.bias)) {
      return {};
    }
    Value bias = n.input(places.bias);
    if (!n.failed() && n.elementType(bias) != type) {
      n.unsupported(llvm::formatv("its bias must be INT{0}", type.getIntOrFloatBitWidth()));
    }
    return bias;
  }

  Value wideSums(Value input, Value w, bool hasNarrowSums, Contraction contract) {
    mlir::Type i16 = n.elementType(input), i8 = mlir::IntegerType::get(i16.getContext(), 8);
    mlir::Type u8 = mlir::IntegerType::get(i16.getContext(), 8, mlir::IntegerType::Unsigned);
    Value high = n.cast(n.create<BitShiftOp>(input, n.b.scalar(i16, 8), false), i8);
    Value low = n.cast(n.create<AndOp>(input, n.b.scalar(i16, 255)), u8);
    mlir::Type type = hasNarrowSums ? q.i32() : q.i64();
    Value upper = n.cast(contract(q.centred(high, 0), w, Value()), type);
    Value lower = n.cast(contract(q.centred(low, 0), w, Value()), type);
    Value sums = n.create<AddOp>(n.create<MulOp>(upper, n.b.scalar(type, 256)), lower);
    Value added = bias(type);
    if (!added || n.failed()) {
      return sums;
    }
    Ints dims(n.rank(sums) - places.resultAxis, 1);
    dims.front() = n.shape(added).empty() ? 1 : n.shape(added)[0];
    return n.create<AddOp>(sums, n.reshape(added, dims));
  }

  llvm::SmallVector<double> factors() {
    bool inSingle = n.elementType(n.input(places.x)).isUnsignedInteger() && !places.isFullyConnected;
    return llvm::map_to_vector(weight.scales, [&](float scale) {
      return (inSingle ? double(x.scale() * scale) : double(x.scale()) * double(scale)) / double(y.scale());
    });
  }

  OperatorImporter &n;
  QuantisedImporter q;
  Places places;
  Quantisation x, weight, y;
};

template <typename Options>
bool hasNarrowSums(OperatorImporter &n) {
  return n.options<Options>().quantized_bias_type() == tflite::TensorType::INT32;
}

void convolve(OperatorImporter &n, const std::optional<ConvolutionForm> &form, int64_t weightAxis, bool narrow) {
  if (!form) {
    return;
  }
  Value y = WeightedSum(n, {.weightAxis = weightAxis, .resultAxis = 1})
                .run(n.toChannelsFirst(n.input(0)), form->weight, form->activation, narrow,
                     [&](Value x, Value weight, Value bias) {
                       return n.create<ConvOp>(x, weight, bias, form->strides, form->pads, form->dilations,
                                               form->groups, false, llvm::APFloat(-1.0));
                     });
  n.setOutput(0, n.toChannelsLast(y));
}

void conv2d(OperatorImporter &n) { convolve(n, convolutionForm(n), 0, hasNarrowSums<tflite::Conv2DOptions>(n)); }

void depthwiseConv2d(OperatorImporter &n) { convolve(n, depthwiseForm(n), 3, false); }

/// Returns |x| [N, C, H, W] with strides - 1 times |zero| between its rows and columns, and pads or crops it: |around|
/// has all begins, then all ends, where negative ones crop.
Value spread(OperatorImporter &n, Value x, llvm::ArrayRef<int64_t> strides, llvm::ArrayRef<int64_t> around,
             int64_t zero) {
  llvm::APFloat value(static_cast<double>(zero));
  Ints dims(n.shape(x)), apart{dims[0], dims[1], dims[2], 1, dims[3], 1}, gaps(12, 0), pads(8, 0), starts(4, 0);
  gaps[6 + 3] = strides[0] - 1, gaps[6 + 5] = strides[1] - 1;
  Value y = n.create<PadOp>(n.reshape(x, apart), gaps, PadMode::constant, value);
  dims[2] *= strides[0], dims[3] *= strides[1];
  y = n.reshape(y, dims);
  for (int d = 0; d < 2; ++d) {
    int64_t begin = around[d], end = around[2 + d] - (strides[d] - 1); // no gap after the last element
    pads[2 + d] = std::max<int64_t>(begin, 0), pads[6 + d] = std::max<int64_t>(end, 0);
    starts[2 + d] = std::max<int64_t>(-begin, 0);
    dims[2 + d] += std::min<int64_t>(begin, 0) + std::min<int64_t>(end, 0);
  }
  return n.create<PadOp>(n.slice(y, starts, dims, Ints(4, 1)), pads, PadMode::constant, value);
}

/// A transposed convolution is a convolution of the spread image with the flipped kernel, which multiplies bytes.
void transposeConv(OperatorImporter &n) {
  bool narrow = hasNarrowSums<tflite::TransposeConvOptions>(n);
  std::optional<ConvolutionForm> form = transposedForm(n);
  if (!form) {
    return;
  }
  Ints kernel(n.shape(form->weight)), around(4), starts(4, 0), steps{1, 1, -1, -1};
  for (int d = 0; d < 2; ++d) {
    starts[2 + d] = kernel[2 + d] - 1;
    around[d] = kernel[2 + d] - 1 - form->pads[d];
    around[2 + d] = kernel[2 + d] - 1 - form->pads[2 + d] + form->outputPadding[d];
  }
  Value weight = n.b.transpose(n.slice(form->weight, starts, kernel, steps), {1, 0, 2, 3});
  Value x = spread(n, n.toChannelsFirst(n.input(2)), form->strides, around, QuantisedImporter(n).input(2).zero());
  Value y =
      WeightedSum(n, {.x = 2, .weight = 1, .bias = 3, .weightAxis = 0, .resultAxis = 1})
          .run(x, weight, form->activation, narrow, [&](Value input, Value w, Value bias) {
            return n.create<ConvOp>(input, w, bias, Ints{1, 1}, Ints(4, 0), Ints{1, 1}, 1, false, llvm::APFloat(-1.0));
          });
  n.setOutput(0, n.toChannelsLast(y));
}

void fullyConnected(OperatorImporter &n) {
  const auto &options = n.options<tflite::FullyConnectedOptions>();
  Value weight = n.input(1);
  if (!n.requireRank(weight, 2)) {
    return;
  }
  Value rows = fullyConnectedRows(n, options, n.shape(weight)[1]);
  Places places{.weightAxis = 0, .resultAxis = n.rank(rows) - 1, .isFullyConnected = true};
  Value y =
      WeightedSum(n, places).run(rows, weight, options.fused_activation_function(),
                                 hasNarrowSums<tflite::FullyConnectedOptions>(n), [&](Value x, Value w, Value bias) {
                                   return n.create<MatMulOp>(x, w, bias, false, true, false, llvm::APFloat(-1.0));
                                 });
  n.setOutput(0, y);
}

void batchMatMul(OperatorImporter &n) {
  const auto &options = n.options<tflite::BatchMatMulOptions>();
  QuantisedImporter q(n);
  Quantisation a = q.input(0), c = q.input(1), y = q.output();
  if (!n.failed() && (!n.elementType(n.input(0)).isInteger(8) || n.elementType(n.input(0)) != q.outputType())) {
    return n.unsupported("only INT8 and UINT8 operands and results are supported");
  }
  Value sums = n.create<MatMulOp>(q.centredInput(0), q.centredInput(1), Value(), options.adj_x(), options.adj_y(),
                                  false, llvm::APFloat(-1.0));
  double factor = double(a.scale() * c.scale()) / double(y.scale());
  n.setOutput(0, q.requantise(sums, factor, q.outputRange(), q.outputType()));
}

} // namespace

llvm::ArrayRef<HandlerEntry> quantisedContractionHandlers() {
  using Code = tflite::BuiltinOperator;
  static const HandlerEntry entries[] = {
      {Code::CONV_2D, conv2d},
      {Code::DEPTHWISE_CONV_2D, depthwiseConv2d},
      {Code::TRANSPOSE_CONV, transposeConv},
      {Code::FULLY_CONNECTED, fullyConnected},
      {Code::BATCH_MATMUL, batchMatMul},
  };
  return entries;
}

} // namespace tessera::top::tflite_import
