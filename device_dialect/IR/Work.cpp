//===- Work.cpp - Operation counts of device ops --------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/IR/DeviceOps.h"

#include "top_dialect/IR/TensorTypes.h"

using namespace mlir;

namespace tessera::device {

int64_t countRegionFlops(Operation *op) {
  int64_t elements = 0, perElement = 0;
  for (Value result : op->getResults()) {
    elements += typeOf(result).getNumElements();
  }
  for (Region &region : op->getRegions()) {
    region.walk(
        [&](Operation *inner) { perElement += inner->getNumResults() && !inner->hasTrait<OpTrait::ConstantLike>(); });
  }
  return elements * std::max<int64_t>(perElement, 1);
}

int64_t ConvOp::countFlops() { return 2 * countMacs(); }
int64_t MatMulOp::countFlops() { return 2 * countMacs(); }
int64_t RecurrentOp::countFlops() { return 2 * countMacs(); }

int64_t ConvOp::countMacs() {
  int64_t perOutput = 1;
  for (int64_t dim : getWeightShape().drop_front()) {
    perOutput *= dim;
  }
  return perOutput * typeOf(getY()).getNumElements();
}

int64_t MatMulOp::countMacs() {
  RankedTensorType a = typeOf(getA());
  return a.getDimSize(a.getRank() - (getTransA() ? 2 : 1)) * typeOf(getY()).getNumElements();
}

int64_t RecurrentOp::countMacs() {
  RankedTensorType x = typeOf(getX());
  int64_t rows = getNumDirections() * getNumGates() * int64_t(getHiddenSize());
  int64_t perRow = int64_t(getHiddenSize()) + (getW() ? x.getDimSize(2) : 0);
  return rows * perRow * x.getDimSize(0) * x.getDimSize(1);
}

int64_t PoolOp::countFlops() {
  int64_t flops = countRegionFlops(*this);
  for (int64_t size : getKernel()) {
    flops *= size;
  }
  return flops;
}

int64_t ReduceOp::countFlops() { return typeOf(getX()).getNumElements(); }
int64_t NormOp::countFlops() { return 8 * countRegionFlops(*this); }

int64_t CopyOp::countFlops() { return 0; }
int64_t ReshapeOp::countFlops() { return 0; }
int64_t GatherOp::countFlops() { return 0; }
int64_t GatherElementsOp::countFlops() { return 0; }
int64_t GatherNdOp::countFlops() { return 0; }
int64_t ScatterOp::countFlops() { return 0; }

} // namespace tessera::device
