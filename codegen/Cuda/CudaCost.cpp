//===- CudaCost.cpp - Cost model of ops on GPUs ---------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Cuda/CudaCost.h"

#include "codegen/Cuda/Contraction/TileCost.h"
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Layout.h"

using namespace mlir;

namespace tessera::cuda {
namespace {

Type elementType(Value value) { return cast<RankedTensorType>(value.getType()).getElementType(); }

/// Returns the multiply-adds of |op| that the tensor cores of an SM compute per cycle.
double tensorRate(Operation *op, const CudaChip &chip) {
  Type element = elementType(op->getOperand(0));
  return (element.isInteger(8) ? chip.tensorInt8 : element.isF32() ? chip.tensorTf32 : chip.tensorF16) * chip.mmaSync;
}

double secondsOfCores(Operation *op, int64_t products, const CudaChip &chip) {
  bool isInteger = op->getNumOperands() > 0 && !isa<FloatType>(elementType(op->getOperand(0)));
  double rate = isInteger && products ? chip.int32 : chip.f32;
  // A multiply-add is one instruction of a core and counts two operations; other operations are one each.
  double others = double(cast<device::WorkInterface>(op).countFlops() - 2 * products);
  return (double(products) + std::max(0.0, others)) / chip.perSecond(rate);
}

double secondsOfGrid(Operation *op, TileAttr tile, const CudaChip &chip) {
  auto bytes = double(device::elementBytes(elementType(op->getOperand(0))));
  double rate = isOnTensorCores(op, tile) ? tensorRate(op, chip) : chip.f32;
  double cycles = cyclesOf(TiledContraction::of(op), tile, {chip.sms, rate * bytes});
  return cycles / (chip.clockGhz * 1e9);
}

} // namespace

StringRef nameOf(Bound bound) {
  constexpr StringRef names[] = {"tensor cores", "cores", "grid", "dram", "launch"};
  return names[int(bound)];
}

double Cost::seconds() const { return launch + std::max({compute, grid, dram}); }

double Cost::roofline() const { return launch + std::max(compute, dram); }

Bound Cost::bound() const {
  double most = std::max({compute, grid, dram, launch});
  return launch == most                                ? Bound::launch
         : dram == most                                ? Bound::dram
         : grid == most && grid > kGridBound * compute ? Bound::grid
         : onTensor                                    ? Bound::tensor
                                                       : Bound::cores;
}

int64_t bytesRead(OpOperand &operand) {
  Operation *op = operand.getOwner();
  bool picks =
      isa<device::GatherOp, device::GatherElementsOp, device::GatherNdOp>(op) && operand.getOperandNumber() == 0;
  return picks ? std::min(device::physicalBytes(operand.get()), device::physicalBytes(op->getResult(0)))
               : device::physicalBytes(operand.get());
}

Cost costOf(Operation *op, const CudaChip &chip) {
  Cost cost;
  for (OpOperand &operand : op->getOpOperands()) {
    cost.dramBytes += bytesRead(operand);
  }
  for (Value result : op->getResults()) {
    cost.dramBytes += device::physicalBytes(result);
  }
  cost.products = cast<device::WorkInterface>(op).countMacs();
  TileAttr tile = tileOf(op);
  auto attention = dyn_cast<device::AttentionOp>(op);
  cost.onTensor = tile        ? isOnTensorCores(op, tile)
                  : attention ? fitsTensorCores(attention)
                              : fitsTile(op) && !elementType(op->getOperand(0)).isF32();
  cost.compute = cost.onTensor ? double(cost.products) / chip.perSecond(tensorRate(op, chip))
                               : secondsOfCores(op, cost.products, chip);
  cost.grid = tile ? secondsOfGrid(op, tile, chip) : 0;
  cost.dram = double(cost.dramBytes) / chip.dramBytesPerSecond();
  cost.launch = chip.launchMicros * 1e-6;
  return cost;
}

} // namespace tessera::cuda
