//===- Equalization.cpp - Equalisation by channel statistics --------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/tools/Equalization.h"
#include "codegen/tools/TensorFile.h"
#include "quant/Transforms/Equalize/Equalize.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/WeightStore.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tool;

namespace {

std::vector<float> floatsOf(const top::WeightStore &store, const llvm::Twine &key) {
  auto view = store.lookup(key.str());
  if (!view || !view->elementType.isF32()) {
    return {};
  }
  ArrayRef<float> values(reinterpret_cast<const float *>(view->bytes.data()), view->bytes.size() / sizeof(float));
  return values.vec();
}

/// Reads the statistics of every tensor of the function that the file contains.
llvm::StringMap<quant::ChannelStatistics> readStatistics(func::FuncOp function, const top::WeightStore &store) {
  llvm::StringMap<quant::ChannelStatistics> found;
  for (Operation &op : function.getBody().front()) {
    for (Value result : op.getResults()) {
      StringRef name = top::getTensorName(result);
      quant::ChannelStatistics read{floatsOf(store, name + ":low"), floatsOf(store, name + ":high"),
                                    floatsOf(store, name + ":power")};
      if (!name.empty() && !read.power.empty() && read.low.size() == read.high.size()) {
        found[name] = std::move(read);
      }
    }
  }
  return found;
}

} // namespace

llvm::Expected<llvm::json::Object> tessera::tool::equalizeByStatistics(func::FuncOp function,
                                                                       const EqualizationOptions &options) {
  top::WeightStore store(function.getContext());
  if (llvm::Error error = store.open(options.statistics)) {
    return std::move(error);
  }
  quant::ChannelFlow flow(function);
  quant::EqualizedKinds kinds{llvm::is_contained(options.kinds, "conv"), llvm::is_contained(options.kinds, "matmul")};
  quant::Equalization chosen = quant::chooseFactors(function, flow, readStatistics(function, store), kinds);
  std::vector<NamedTensor> factors;
  for (Value origin : flow.origins()) { // in program order, so that the file is deterministic
    if (auto it = chosen.origins.find(top::getTensorName(origin)); it != chosen.origins.end()) {
      auto type = RankedTensorType::get({int64_t(it->second.size())}, Float32Type::get(function.getContext()));
      ArrayRef<char> bytes(reinterpret_cast<const char *>(it->second.data()), it->second.size() * sizeof(float));
      factors.emplace_back(it->getKey().str() + ":factors", top::HostTensor(type, bytes));
    }
  }
  if (llvm::Error error = writeTensorFile(options.factors, factors)) {
    return std::move(error);
  }
  if (llvm::Expected<quant::TensorFactors> applied = quant::applyFactors(function, flow, chosen.origins); !applied) {
    return applied.takeError();
  }
  return llvm::json::Object{
      {"tensors", chosen.tensors}, {"noise_before", chosen.before}, {"noise_after", chosen.after}};
}
