//===- Work.cpp - Operation counts of device ops --------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/IR/DeviceOps.h"

#include "top_dialect/IR/Sizes.h"

using namespace mlir;

namespace tessera::device {

int64_t likelyCount(Dim count) { return count.isUnknown() ? 0 : likelyOf(count); }

int64_t countRegionFlops(Operation *op) {
  int64_t elements = 0, perElement = 0;
  for (Value result : op->getResults()) {
    elements += likelyCount(countElements(result));
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
  return perOutput * likelyCount(countElements(getY()));
}

int64_t MatMulOp::countMacs() {
  Shape a = getA();
  return likelyCount(a[a.rank() - (getTransA() ? 2 : 1)] * countElements(getY()));
}

int64_t RecurrentOp::countMacs() {
  Shape x = getX();
  int64_t rows = getNumDirections() * getNumGates() * int64_t(getHiddenSize());
  Dim perRow = getW() ? x[2] + int64_t(getHiddenSize()) : Dim(int64_t(getHiddenSize()));
  return likelyCount(perRow * rows * x[0] * x[1]);
}

int64_t PoolOp::countFlops() {
  int64_t flops = countRegionFlops(*this);
  for (int64_t size : getKernel()) {
    flops *= size;
  }
  return flops;
}

int64_t ReduceOp::countFlops() { return likelyCount(countElements(getX())); }
int64_t NormOp::countFlops() { return 8 * countRegionFlops(*this); }

int64_t CopyOp::countFlops() { return 0; }
int64_t ReshapeOp::countFlops() { return 0; }
int64_t GatherOp::countFlops() { return 0; }
int64_t GatherElementsOp::countFlops() { return 0; }
int64_t GatherNdOp::countFlops() { return 0; }
int64_t ScatterOp::countFlops() { return 0; }
int64_t InsertOp::countFlops() { return 0; }

} // namespace tessera::device
