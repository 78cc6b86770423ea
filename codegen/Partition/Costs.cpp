//===- Costs.cpp - What a device op costs on the NPU and on the host ------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Partition/Costs.h"

#include "codegen/X86/KernelInterface.h"
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Layout.h"
#include "device_dialect/Transforms/Addresses.h"

using namespace mlir;

namespace tessera::partition {
namespace {

double flopsOf(Operation *op) {
  auto kernel = dyn_cast<x86::KernelInterface>(op);
  return kernel ? double(kernel.countFlops()) : 0;
}

/// A reshape of bytes that stay where they are.
bool isView(Operation *op) { return isa<device::ReshapeOp>(op); }

/// What multiplications of this op are divided by, against those of a dense one of int8.
double divisorOf(Operation *op, const bmodel::npu::Chip &chip) {
  Type element = cast<RankedTensorType>(op->getOperand(0).getType()).getElementType();
  double divisor = isa<FloatType>(element) ? chip.floatDivisor : element.isInteger(16) ? chip.int16Divisor : 1;
  if (auto conv = dyn_cast<device::ConvOp>(op)) {
    auto weights = cast<RankedTensorType>(op->getOperand(1).getType());
    bool isDepthwise = weights.getRank() > 1 && weights.getDimSize(1) == 1 && weights.getDimSize(0) > 1;
    divisor *= isDepthwise ? chip.depthwiseDivisor : 1;
  }
  return divisor;
}

} // namespace

int64_t countProducts(Operation *op) {
  bool multiplies = isa<device::ConvOp, device::MatMulOp, device::AttentionOp, device::RecurrentOp>(op);
  return multiplies ? int64_t(flopsOf(op) / 2) : 0;
}

int64_t bytesOf(Value value) { return device::physicalBytes(cast<RankedTensorType>(value.getType())); }

double hostSeconds(Operation *op, const HostModel &host) {
  if (isView(op)) {
    return 0;
  }
  double bytes = 0;
  for (Value value : op->getOperands()) {
    bytes += double(bytesOf(value));
  }
  for (Value value : op->getResults()) {
    bytes += double(bytesOf(value));
  }
  double products = double(countProducts(op));
  double computes = products > 0 ? products / host.products : flopsOf(op) / host.flops;
  return host.launch + std::max(computes, bytes / host.bandwidth);
}

double npuSeconds(Operation *op, const bmodel::npu::Chip &chip) {
  if (isView(op)) {
    return 0;
  }
  double constants = 0;
  for (Value value : op->getOperands()) {
    constants += device::getConstantRoot(value) ? double(bytesOf(value)) : 0;
  }
  double products = double(countProducts(op));
  double lanes = chip.lanes;
  double cycles = products > 0 ? products * divisorOf(op, chip) / (lanes * chip.macsPerLane())
                               : flopsOf(op) / (lanes * chip.vectorBytes / sizeof(float));
  cycles = std::max(cycles, constants / chip.ddrBytesPerCycle()) + chip.issueCycles;
  return chip.secondsOf(cycles);
}

double transferSeconds(int64_t bytes, const bmodel::npu::Chip &chip) {
  return chip.secondsOf(2 * double(bytes) / chip.ddrBytesPerCycle() + 2 * chip.dmaLatency);
}

} // namespace tessera::partition
