//===- FusedOps.cpp - Copies and maps fused into other ops ----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Emission/RowFusionInterface.h"

#include "device_dialect/Transforms/Addresses.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace tessera::npu {

/// Returns the layout of a value within itself.
static StridedView itself(Value value) { return {value, 0, broadcastNest({typeOf(value).getShape()}).simplified()}; }

std::optional<int64_t> StridedView::strideOf(int64_t step, int64_t count) const {
  if (count == 1) {
    return 0;
  }
  int64_t below = 1;
  for (size_t back = 1; back <= nest.sizes.size(); ++back) {
    int64_t size = nest.sizes[nest.sizes.size() - back];
    if (step < below * size) {
      bool fits = step % below == 0 && size % (step / below * count) == 0;
      return fits ? std::optional(step / below * nest.strides[0][nest.sizes.size() - back]) : std::nullopt;
    }
    below *= size;
  }
  return std::nullopt;
}

int64_t StridedView::at(int64_t index) const {
  int64_t place = offset;
  for (size_t back = 1; back <= nest.sizes.size(); ++back) {
    size_t dim = nest.sizes.size() - back;
    place += index % nest.sizes[dim] * nest.strides[0][dim];
    index /= nest.sizes[dim];
  }
  return place;
}

FusedOps::FusedOps(func::FuncOp function, const bmodel::npu::Chip &) {
  for (Operation &op : function.getBody().front()) {
    if (auto each = dyn_cast<RowFusionInterface>(op); each && each.worksOnRows()) {
      readConsumers(&op);
    }
  }
}

void FusedOps::readConsumers(Operation *op) {
  FusedConsumers consumers;
  Value result = op->getResult(0);
  consumers.map = fusion::fusedMapOf(op);
  if (consumers.map) {
    consumers.mapped = *llvm::find_if(consumers.map.getInputs(),
                                      [&](Value input) { return device::withoutReshapes(input) == result; });
    consumers.program = llvm::cantFail(fusion::programOfMap(consumers.map));
    consumers.ops.push_back(consumers.map);
    result = consumers.map.getY();
  }
  SmallVector<device::CopyOp> copies = fusion::fusedCopiesOf(result);
  for (device::CopyOp copy : copies) {
    consumers.targets.push_back(*fusion::resultOf(copy));
    consumers.ops.push_back(copy);
  }
  if (consumers.ops.empty()) {
    return;
  }
  if (copies.empty() || fusion::getFused(copies.front()).getTarget() != 0) {
    consumers.targets.insert(consumers.targets.begin(), itself(result));
  } else {
    aliases.try_emplace(result, consumers.targets.front());
  }
  consumersByOp.try_emplace(op, std::move(consumers));
}

StridedView FusedOps::viewOf(Value operand) const {
  Value value = device::withoutReshapes(operand);
  if (auto alias = aliases.find(value); alias != aliases.end()) {
    return alias->second;
  }
  auto copy = value.getDefiningOp<device::CopyOp>();
  FusedAttr fused = copy ? fusion::getFused(copy) : FusedAttr();
  return fused && fused.getInto() == FusedInto::readers ? fusion::sourceOf(copy) : itself(operand);
}

const FusedOps::FusedConsumers *FusedOps::consumersOf(Operation *op) const {
  auto found = consumersByOp.find(op);
  return found == consumersByOp.end() ? nullptr : &found->second;
}

SmallVector<Operation *> FusedOps::readThrough(Operation *op) const {
  SmallVector<Operation *> copies;
  for (Value operand : op->getOperands()) {
    if (Operation *copy = device::withoutReshapes(operand).getDefiningOp(); copy && isFused(copy)) {
      copies.push_back(copy);
    }
  }
  return copies;
}

} // namespace tessera::npu
