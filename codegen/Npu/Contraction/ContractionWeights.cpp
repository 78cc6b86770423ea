//===- ContractionWeights.cpp - Constants of contractions -----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Contraction/Contraction.h"
#include "codegen/Npu/ElementTypes.h"

#include "llvm/ADT/bit.h"
#include <cmath>
#include <cstring>

using namespace mlir;

namespace tessera::npu {
using bmodel::npu::Output;
using bmodel::npu::Type;
namespace {

Type elementOf(Value value) {
  return typeOf(cast<RankedTensorType>(value.getType()).getElementType()).value_or(Type::i32);
}

} // namespace

llvm::Error checkContraction(Value x, Value w, const Chip &chip) {
  if (elementOf(x) == Type::i32 || elementOf(w) == Type::i32) {
    return reject("multiplies integers of 32 bits, which the chip's matrix unit does not support");
  }
  bool sumsFloats = bmodel::npu::isFloat(elementOf(x));
  if (!sumsFloats && bmodel::npu::isFloat(elementOf(w))) {
    return reject("multiplies integers by floats, which is not supported yet");
  }
  if (sumsFloats && !chip.computes("bf16") && !chip.computes("f16")) {
    return reject("multiplies floats, which the chip's matrix unit does not support");
  }
  return llvm::Error::success();
}

std::vector<char> foldRows(llvm::ArrayRef<char> bytes, size_t outputs, size_t channels, size_t rows, size_t columns) {
  std::vector<char> folded(bytes.size());
  for (size_t o = 0; o < outputs; ++o) {
    for (size_t c = 0; c < channels; ++c) {
      for (size_t k = 0; k < rows; ++k) {
        std::memcpy(&folded[((o * rows + k) * channels + c) * columns],
                    &bytes[((o * channels + c) * rows + k) * columns], columns);
      }
    }
  }
  return folded;
}

std::vector<char> orderWeights(std::vector<char> bytes, size_t outputs, size_t channels, size_t taps, size_t size) {
  if (taps == 1) {
    return bytes;
  }
  std::vector<char> ordered(bytes.size());
  for (size_t o = 0; o < outputs; ++o) {
    for (size_t t = 0; t < taps; ++t) {
      for (size_t c = 0; c < channels; ++c) {
        std::memcpy(&ordered[((o * taps + t) * channels + c) * size], &bytes[((o * channels + c) * taps + t) * size],
                    size);
      }
    }
  }
  return ordered;
}

/// Uses scales with one number per output as factors of the sums. The bias, which is added before the factors, is
/// divided by them. Returns false if that is not possible.
bool ContractionConstants::setFactors(Contraction &contraction, llvm::ArrayRef<float> scales) const {
  std::vector<int32_t> bias = contraction.epilogue.bias, factors;
  bool isIndependent = !contraction.epilogue.stage || (contraction.epilogue.stage->factor == 1 &&
                                                       !(contraction.epilogue.stage->flags & Output::perChannel));
  if (order.groups() != 1 || !isIndependent) {
    return false;
  }
  for (auto [o, scale] : llvm::enumerate(scales)) {
    float before = bias.empty() ? 0 : llvm::bit_cast<float>(bias[o]) / scale;
    if (!std::isnormal(scale) || !std::isfinite(before)) {
      return false;
    }
    if (!bias.empty()) {
      bias[o] = llvm::bit_cast<int32_t>(before);
    }
    factors.push_back(llvm::bit_cast<int32_t>(scale));
  }
  contraction.epilogue.bias = std::move(bias), contraction.epilogue.factors = std::move(factors);
  if (contraction.epilogue.stage) {
    contraction.epilogue.stage->flags |= Output::perChannel;
  }
  return true;
}

llvm::Error ContractionConstants::setParameters(Contraction &contraction) const {
  if (bias) {
    llvm::Expected<std::vector<int32_t>> values = constantValues<int32_t>(bias, "a bias");
    if (!values) {
      return values.takeError();
    }
    contraction.epilogue.bias = std::move(*values);
  }
  contraction.weights.type = elementOf(w);
  if (!scales) {
    return contraction.sumsFloats() && !bmodel::npu::isFloat(contraction.weights.type)
               ? reject("multiplies floats by integers without scales, which is not supported yet")
               : llvm::Error::success();
  }
  llvm::Expected<std::vector<float>> values = constantValues<float>(scales, "scales");
  if (!values) {
    return values.takeError();
  }
  contraction.weights.type = setFactors(contraction, *values) ? Type::i8 : Type::f32;
  return llvm::Error::success();
}

llvm::Expected<std::vector<char>> ContractionConstants::weights(Type type) const {
  llvm::Expected<std::vector<char>> bytes = constantValues<char>(w, "a second operand");
  if (!bytes || type == elementOf(w)) {
    return bytes;
  }
  llvm::Expected<std::vector<float>> factors = constantValues<float>(scales, "scales");
  if (!factors) {
    return factors.takeError();
  }
  llvm::ArrayRef<int8_t> integers(reinterpret_cast<const int8_t *>(bytes->data()), bytes->size());
  std::vector<float> floats = order.apply(integers, *factors);
  std::vector<char> result(floats.size() * sizeof(float));
  std::memcpy(result.data(), floats.data(), result.size());
  return result;
}

} // namespace tessera::npu
