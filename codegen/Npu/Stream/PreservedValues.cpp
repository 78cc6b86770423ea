//===- PreservedValues.cpp - Layer results preserved for debugging --------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Stream/PreservedValues.h"

#include "codegen/Npu/Schedule/PlanValues.h"
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
std::optional<PreservedValue> find(Value value, const ValuePlan &plan, ArrayRef<Write> writes) {
  std::optional<unsigned> aliasSet = plan.aliasSetOf(value);
  if (!aliasSet || plan.onlyStoredDirectly(value) || isa<device::ReshapeOp>(value.getDefiningOp())) {
    return std::nullopt;
  }
  PreservedValue preserved{.value = value, .memory = device::getAddress(value)->memory};
  preserved.offset = plan.outsideOf(value).value_or(uint64_t(device::getAddress(value)->offset));
  Range whole = rangeOf(value);
  bool isWritten = device::isElided(value.getDefiningOp());
  for (const Write &write : writes) {
    Range part = write.aliasSet == *aliasSet ? rangeOf(write.value) : Range{0, 0};
    if (part.begin < whole.end && part.end > whole.begin && !llvm::is_contained(preserved.layers, write.layer)) {
      preserved.layers.push_back(write.layer);
    }
    isWritten |= write.value == value;
  }
  bool isTensor = preserved.offset % uint64_t(device::kAddressAlignment) == 0;
  return isWritten && isTensor && !preserved.layers.empty() ? std::optional(std::move(preserved)) : std::nullopt;
}

} // namespace

std::vector<PreservedValue> preservedValues(func::FuncOp function, const ValuePlan &plan) {
  std::vector<Write> writes = writesOf(plan);
  std::vector<PreservedValue> preserved;
  for (Operation &op : function.getBody().front()) {
    for (Value result : op.getResults()) {
      if (std::optional<PreservedValue> found = find(result, plan, writes)) {
        preserved.push_back(std::move(*found));
      }
    }
  }
  llvm::stable_sort(preserved,
                    [](const PreservedValue &a, const PreservedValue &b) { return a.layers.back() < b.layers.back(); });
  return preserved;
}

/// Returns the name that commands use for the value's memory.
static std::string regionOf(const PreservedValue &preserved, uint32_t inputs) {
  return preserved.memory > 0 ? "io" + std::to_string(inputs + uint64_t(preserved.memory) - 1) : "workspace";
}

void addPreserved(ArrayRef<PreservedValue> values, const PreservedIn &program, std::vector<bmodel::TensorDefT> &tensors,
                  llvm::json::Array &descriptions) {
  func::FuncOp function = program.function;
  const uint32_t inputs = function.getNumArguments();
  for (const PreservedValue &each : values) {
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
    descriptions.push_back(llvm::json::Object{{"tensor", llvm::json::fixUTF8(name)},
                                              {"op", each.value.getDefiningOp()->getName().getStringRef()},
                                              {"stream", program.stream},
                                              {"region", regionOf(each, inputs)},
                                              {"offset", int64_t(each.offset)},
                                              {"layers", std::move(layers)},
                                              {"nodes", std::move(nodes)}});
  }
}

} // namespace tessera::npu
