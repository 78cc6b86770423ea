//===- KeptValues.cpp - Layer results preserved for debugging -------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/KeptValues.h"

#include "codegen/Npu/PlanValues.h"
#include "codegen/Target/Tensors.h"
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Layout.h"
#include "device_dialect/Transforms/Addresses.h"
#include "top_dialect/IR/Names.h"

using namespace mlir;

namespace tessera::npu {
namespace {

/// Range of a value's bytes in its memory.
struct Range {
  int64_t begin, end;
};

Range rangeOf(Value value) {
  int64_t begin = device::getAddress(value)->offset;
  return {begin, begin + device::physicalBytes(cast<RankedTensorType>(value.getType()))};
}

/// A write of a value by a layer.
struct Write {
  Value value;
  unsigned aliasSet;
  uint32_t layer;
};

std::vector<Write> writesOf(const ValuePlan &plan) {
  std::vector<Write> writes;
  for (auto [layer, op] : llvm::enumerate(plan.ops())) {
    for (const ValuePlan::Use &use : op.uses) {
      if (use.access == Access::write) {
        writes.push_back({use.value, use.aliasSet, uint32_t(layer)});
      }
    }
  }
  return writes;
}

/// Returns nothing if the value does not exist in one place.
std::optional<KeptValue> find(Value value, const ValuePlan &plan, ArrayRef<Write> writes) {
  std::optional<unsigned> aliasSet = plan.aliasSetOf(value);
  if (!aliasSet || plan.onlyStoredDirectly(value) || isa<device::ReshapeOp>(value.getDefiningOp())) {
    return std::nullopt;
  }
  KeptValue kept{.value = value, .memory = device::getAddress(value)->memory};
  kept.offset = plan.outsideOf(value).value_or(uint64_t(device::getAddress(value)->offset));
  Range whole = rangeOf(value);
  bool isWritten = device::isElided(value.getDefiningOp());
  for (const Write &write : writes) {
    Range part = write.aliasSet == *aliasSet ? rangeOf(write.value) : Range{0, 0};
    if (part.begin < whole.end && part.end > whole.begin && !llvm::is_contained(kept.layers, write.layer)) {
      kept.layers.push_back(write.layer);
    }
    isWritten |= write.value == value;
  }
  bool isTensor = kept.offset % uint64_t(device::kAddressAlignment) == 0;
  return isWritten && isTensor && !kept.layers.empty() ? std::optional(std::move(kept)) : std::nullopt;
}

} // namespace

std::vector<KeptValue> keptValues(func::FuncOp function, const ValuePlan &plan) {
  std::vector<Write> writes = writesOf(plan);
  std::vector<KeptValue> kept;
  for (Operation &op : function.getBody().front()) {
    for (Value result : op.getResults()) {
      if (std::optional<KeptValue> found = find(result, plan, writes)) {
        kept.push_back(std::move(*found));
      }
    }
  }
  llvm::stable_sort(kept, [](const KeptValue &a, const KeptValue &b) { return a.layers.back() < b.layers.back(); });
  return kept;
}

/// Returns the name that commands use for the value's memory.
static std::string regionOf(const KeptValue &kept, uint32_t inputs) {
  return kept.memory > 0 ? "io" + std::to_string(inputs + uint64_t(kept.memory) - 1) : "workspace";
}

void addKept(ArrayRef<KeptValue> values, const KeptIn &program, std::vector<bmodel::TensorDefT> &tensors,
             llvm::json::Array &told) {
  func::FuncOp function = program.function;
  const uint32_t inputs = function.getNumArguments();
  for (const KeptValue &each : values) {
    std::string name = top::getTensorName(each.value).str();
    auto tensor = codegen::describeTensor(cast<RankedTensorType>(each.value.getType()), name);
    if (!tensor || name.empty()) {
      continue;
    }
    tensor->onnx_names = {name};
    tensor->role = bmodel::TensorRole::Workspace, tensor->place = bmodel::Place::Workspace;
    tensor->offset = each.offset;
    if (each.memory > 0) { // a part of a result; the slots of results follow those of arguments
      tensor->view_of = int32_t(inputs) + int32_t(each.memory) - 1;
    }
    tensors.push_back(std::move(*tensor));
    llvm::json::Array layers, nodes;
    for (uint32_t layer : each.layers) {
      layers.push_back(layer), nodes.push_back(llvm::json::fixUTF8(program.layers[layer]));
    }
    told.push_back(llvm::json::Object{{"tensor", llvm::json::fixUTF8(name)},
                                      {"op", each.value.getDefiningOp()->getName().getStringRef()},
                                      {"stream", program.stream},
                                      {"region", regionOf(each, inputs)},
                                      {"offset", int64_t(each.offset)},
                                      {"layers", std::move(layers)},
                                      {"nodes", std::move(nodes)}});
  }
}

} // namespace tessera::npu
