//===- Folds.cpp - Copies and maps that other ops do on the way -----------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Emission/RowFusionInterface.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace tessera::npu {

/// A value as it lies in itself.
static Seen itself(Value value) { return {value, 0, broadcastNest({typeOf(value).getShape()}).simplified()}; }

static Value withoutReshapes(Value value) {
  while (auto reshape = value.getDefiningOp<device::ReshapeOp>()) {
    value = reshape.getX();
  }
  return value;
}

std::optional<int64_t> Seen::strideOf(int64_t step, int64_t count) const {
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

int64_t Seen::at(int64_t index) const {
  int64_t place = offset;
  for (size_t back = 1; back <= nest.sizes.size(); ++back) {
    size_t dim = nest.sizes.size() - back;
    place += index % nest.sizes[dim] * nest.strides[0][dim];
    index /= nest.sizes[dim];
  }
  return place;
}

Folds::Folds(func::FuncOp function, const bmodel::npu::Chip &) {
  for (Operation &op : function.getBody().front()) {
    if (auto each = dyn_cast<RowFusionInterface>(op); each && each.worksOnRows()) {
      readTail(&op);
    }
  }
}

void Folds::readTail(Operation *op) {
  Tail tail;
  Value result = op->getResult(0);
  tail.map = fusion::fusedMapOf(op);
  if (tail.map) {
    tail.mapped = *llvm::find_if(tail.map.getInputs(), [&](Value input) { return withoutReshapes(input) == result; });
    tail.program = llvm::cantFail(fusion::programOfMap(tail.map));
    tail.ops.push_back(tail.map);
    result = tail.map.getY();
  }
  SmallVector<device::CopyOp> copies = fusion::fusedCopiesOf(result);
  for (device::CopyOp copy : copies) {
    tail.targets.push_back(*fusion::resultOf(copy));
    tail.ops.push_back(copy);
  }
  if (tail.ops.empty()) {
    return;
  }
  if (copies.empty() || fusion::getFused(copies.front()).getTarget() != 0) {
    tail.targets.insert(tail.targets.begin(), itself(result));
  } else {
    aliases.try_emplace(result, tail.targets.front());
  }
  tails.try_emplace(op, std::move(tail));
}

Seen Folds::seen(Value operand) const {
  Value value = withoutReshapes(operand);
  if (auto alias = aliases.find(value); alias != aliases.end()) {
    return alias->second;
  }
  auto copy = value.getDefiningOp<device::CopyOp>();
  FusedAttr fused = copy ? fusion::getFused(copy) : FusedAttr();
  return fused && fused.getInto() == FusedInto::readers ? fusion::sourceOf(copy) : itself(operand);
}

const Folds::Tail *Folds::tailOf(Operation *op) const {
  auto found = tails.find(op);
  return found == tails.end() ? nullptr : &found->second;
}

SmallVector<Operation *> Folds::readThrough(Operation *op) const {
  SmallVector<Operation *> copies;
  for (Value operand : op->getOperands()) {
    if (Operation *copy = withoutReshapes(operand).getDefiningOp(); copy && isFolded(copy)) {
      copies.push_back(copy);
    }
  }
  return copies;
}

} // namespace tessera::npu
