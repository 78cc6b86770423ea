//===- Quantisation.cpp - Scales and fixed-point factors of a file --------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Tflite/Quantisation.h"

#include "top_dialect/IR/Unsupported.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>

namespace tessera::top::tflite_import {

bool isQuantised(const tflite::Tensor &tensor) {
  using Type = tflite::TensorType;
  bool isNarrow = tensor.type() == Type::INT8 || tensor.type() == Type::UINT8 || tensor.type() == Type::INT16;
  const auto *q = tensor.quantization();
  return isNarrow && q &&
         ((q->scale() && q->scale()->size()) || q->details_type() != tflite::QuantizationDetails::NONE);
}

/// Checks the zero points of a quantisation whose scales are valid.
static llvm::Error checkZeros(const tflite::Tensor &tensor, const Quantisation &q) {
  using Type = tflite::TensorType;
  int64_t low = tensor.type() == Type::UINT8 ? 0 : -128, high = low + 255;
  bool isByte = tensor.type() == Type::UINT8 || tensor.type() == Type::INT8;
  for (int64_t zero : q.zeros) {
    if (isByte && (zero < low || zero > high)) {
      return llvm::createStringError(
          llvm::formatv("its zero point {0} is not within {1} to {2}", zero, low, high).str());
    }
    if (!isByte && zero != 0) {
      return unsupported(llvm::formatv("its type is {0} and its zero point {1}; only 0 is supported",
                                       tflite::EnumNameTensorType(tensor.type()), zero)
                             .str());
    }
  }
  return llvm::Error::success();
}

llvm::Expected<Quantisation> quantisationOf(const tflite::Tensor &tensor) {
  const auto *given = tensor.quantization();
  if (given && given->details_type() != tflite::QuantizationDetails::NONE) {
    return unsupported("it has a custom quantisation");
  }
  if (!given || !given->scale() || given->scale()->size() == 0) {
    return llvm::createStringError(std::string("its type is ") + tflite::EnumNameTensorType(tensor.type()) +
                                   ", but it has no scale");
  }
  Quantisation q;
  q.scales.assign(given->scale()->begin(), given->scale()->end());
  q.axis = given->quantized_dimension();
  for (float scale : q.scales) {
    if (!(scale > 0) || std::isinf(scale)) {
      return llvm::createStringError(llvm::formatv("its scale {0} is not a positive number", scale).str());
    }
  }
  if (given->zero_point() && given->zero_point()->size()) {
    q.zeros.assign(given->zero_point()->begin(), given->zero_point()->end());
  }
  if (q.zeros.size() != q.scales.size()) {
    return llvm::createStringError(
        llvm::formatv("it has {0} scales, but {1} zero points", q.scales.size(), q.zeros.size()).str());
  }
  int64_t rank = tensor.shape() ? tensor.shape()->size() : 0;
  if (q.isPerChannel() && (q.axis < 0 || q.axis >= rank || tensor.shape()->Get(q.axis) != int64_t(q.scales.size()))) {
    return llvm::createStringError(
        llvm::formatv("it has {0} scales along dim {1}, which does not have that size", q.scales.size(), q.axis).str());
  }
  if (llvm::Error error = checkZeros(tensor, q)) {
    return std::move(error);
  }
  return q;
}

std::pair<int64_t, int64_t> limitsOf(mlir::Type type) {
  unsigned bits = type.getIntOrFloatBitWidth();
  int64_t low = type.isUnsignedInteger() ? 0 : -(int64_t(1) << (bits - 1));
  return {low, low + (int64_t(1) << bits) - 1};
}

std::optional<Range> rangeOf(const Quantisation &result, mlir::Type type, tflite::ActivationFunctionType activation) {
  using Kind = tflite::ActivationFunctionType;
  auto [low, high] = limitsOf(type);
  Range range{result.zero(), low, high};
  auto quantised = [&](float bound) {
    // A bound far beyond the range is the same as one slightly beyond it.
    float steps = std::round(std::clamp(bound / result.scale(), -1e9f, 1e9f));
    return std::clamp(result.zero() + int64_t(steps), range.low, range.high);
  };
  int64_t least = quantised(activation == Kind::RELU_N1_TO_1 ? -1 : 0);
  int64_t most = quantised(activation == Kind::RELU6 ? 6 : 1);
  switch (activation) {
  case Kind::NONE:
    return range;
  case Kind::RELU:
    range.low = least;
    return range;
  case Kind::RELU6:
  case Kind::RELU_N1_TO_1:
    range.low = least, range.high = most;
    return range;
  default:
    return std::nullopt;
  }
}

FixedFactor toFixedFactor(double factor) {
  int exponent;
  int64_t mantissa = std::llround(std::ldexp(std::frexp(factor, &exponent), 31));
  if (mantissa == int64_t(1) << 31) {
    mantissa >>= 1, ++exponent;
  }
  return mantissa == 0 || exponent < -31 ? FixedFactor{0, 31} : FixedFactor{int32_t(mantissa), 31 - exponent};
}

FixedFactor reduced(FixedFactor factor) {
  return {factor.mantissa < 0x7FFF0000 ? (factor.mantissa + (1 << 15)) >> 16 : 0x7FFF, factor.shift - 16};
}

} // namespace tessera::top::tflite_import
