//===- LearnedWeights.cpp - NAME_cali.safetensors: weights chosen with data --===//
// SPDX-License-Identifier: Apache-2.0
#include "quant/Transforms/Tables/LearnedWeights.h"

#include "top_dialect/IR/RegularFile.h"
#include "top_dialect/IR/Sizes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SHA256.h"
#include <cmath>

using namespace mlir;

namespace tessera::quant {

llvm::Expected<LearnedWeights> LearnedWeights::load(MLIRContext *context, StringRef path, StringRef hash) {
  LearnedWeights weights;
  weights.path = path.str();
  weights.store = std::make_shared<top::WeightStore>(context);
  auto advice = "; run_calibration writes the table and the weights together: keep both files";
  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> file = top::readRegularFile(path);
  if (!file) {
    return llvm::createStringError("failed to open the calibration table's weights '" + path +
                                   "': " + llvm::toString(file.takeError()) + advice);
  }
  auto digest = llvm::SHA256::hash(llvm::arrayRefFromStringRef((*file)->getBuffer()));
  if (llvm::toHex(digest, /*LowerCase=*/true) != hash) {
    return llvm::createStringError("'" + path +
                                   "' is not the file that the calibration table names: its SHA-256 differs" + advice);
  }
  if (llvm::Error error = weights.store->open(path)) {
    return std::move(error);
  }
  return weights;
}

static ArrayRef<float> floatsOf(const top::WeightStore::TensorView &view) {
  return {reinterpret_cast<const float *>(view.bytes.data()), view.bytes.size() / sizeof(float)};
}

llvm::Expected<std::optional<LearnedGroups>> LearnedWeights::findGroups(StringRef tensor, RankedTensorType weight,
                                                                        int64_t channels, int64_t groups,
                                                                        int bits) const {
  return groupsAt(std::to_string(bits), tensor, weight, channels, groups, bits);
}

llvm::Expected<std::optional<LearnedGroups>> LearnedWeights::findWide(StringRef tensor, RankedTensorType weight,
                                                                      int64_t channels) const {
  return groupsAt("4wide", tensor, weight, channels, 1, 8);
}

llvm::Expected<std::optional<LearnedGroups>> LearnedWeights::groupsAt(StringRef suffix, StringRef tensor,
                                                                      RankedTensorType weight, int64_t channels,
                                                                      int64_t groups, int bits) const {
  auto integers = store->lookup((tensor + ":weight" + suffix).str());
  if (!integers) {
    return std::nullopt;
  }
  auto scales = store->lookup((tensor + ":scale" + suffix).str());
  if (!integers->elementType.isInteger(8) || !sameSizes(integers->shape, weight) || !scales ||
      !scales->elementType.isF32() || scales->shape.size() != 2 || scales->shape[0] != channels) {
    return llvm::createStringError("'" + path + "': the weights for tensor '" + tensor + "' do not match the model");
  }
  if (scales->shape[1] != groups) {
    return llvm::createStringError("'" + path + "': the weights for tensor '" + tensor + "' have " +
                                   std::to_string(scales->shape[1]) + " groups, expected " + std::to_string(groups) +
                                   "; pass the same --group_size to run_calibration and model_deploy");
  }
  LearnedGroups found{ArrayRef(reinterpret_cast<const int8_t *>(integers->bytes.data()), integers->bytes.size()),
                      floatsOf(*scales)};
  int limit = 1 << (bits - 1);
  if (llvm::any_of(found.scales, [](float s) { return s == 0 || !std::isfinite(s); }) ||
      llvm::any_of(found.integers, [&](int q) { return q < -limit || q >= limit; })) {
    return llvm::createStringError("'" + path + "': the weights for tensor '" + tensor +
                                   "' are out of range; allowed: " + std::to_string(bits) +
                                   "-bit integers and finite scales other than 0");
  }
  return found;
}

llvm::Expected<std::optional<LearnedWeight>> LearnedWeights::find(StringRef tensor, RankedTensorType weight,
                                                                  int64_t channels) const {
  auto integers = store->lookup((tensor + ":weight").str());
  if (!integers) {
    return std::nullopt;
  }
  auto scales = store->lookup((tensor + ":scale").str()), bias = store->lookup((tensor + ":bias").str());
  auto isVector = [&](const top::WeightStore::TensorView &view) {
    return view.elementType.isF32() && view.shape.size() == 1 && view.shape.front() == channels;
  };
  if (!integers->elementType.isInteger(8) || !sameSizes(integers->shape, weight) || !scales || !isVector(*scales) ||
      (bias && !isVector(*bias))) {
    return llvm::createStringError("'" + path + "': the weights for tensor '" + tensor + "' do not match the model");
  }
  LearnedWeight found;
  found.integers = ArrayRef(reinterpret_cast<const int8_t *>(integers->bytes.data()), integers->bytes.size());
  found.scales = floatsOf(*scales);
  found.bias = bias ? floatsOf(*bias) : ArrayRef<float>();
  if (llvm::any_of(found.scales, [](float s) { return !(s > 0) || !std::isfinite(s); }) ||
      llvm::any_of(found.bias, [](float b) { return !std::isfinite(b); }) || llvm::is_contained(found.integers, -128)) {
    return llvm::createStringError("'" + path + "': the weights for tensor '" + tensor +
                                   "' are out of range; allowed: integers from -127 to 127 and finite scales above 0");
  }
  return found;
}

llvm::Expected<ArrayRef<float>> LearnedWeights::inputBias(StringRef tensor, int64_t channels) const {
  auto found = store->lookup((tensor + ":input_bias").str());
  if (!found) {
    return ArrayRef<float>();
  }
  if (!found->elementType.isF32() || found->shape != ArrayRef<int64_t>(channels) ||
      llvm::any_of(floatsOf(*found), [](float b) { return !std::isfinite(b); })) {
    return llvm::createStringError("'" + path + "': the input bias for tensor '" + tensor +
                                   "' is not a vector of finite f32 values, one per channel");
  }
  return floatsOf(*found);
}

llvm::Expected<ArrayRef<float>> LearnedWeights::factors(StringRef tensor) const {
  auto found = store->lookup((tensor + ":factors").str());
  if (!found) {
    return ArrayRef<float>();
  }
  if (!found->elementType.isF32() || found->shape.size() != 1) {
    return llvm::createStringError("'" + path + "': the factors of tensor '" + tensor + "' are not a vector of f32");
  }
  return floatsOf(*found);
}

} // namespace tessera::quant
