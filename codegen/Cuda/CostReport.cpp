//===- CostReport.cpp - Reports the estimated cost of each launch ---------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Cuda/CostReport.h"

#include "codegen/Cuda/IR/CudaDialect.h"
#include "codegen/Cuda/Stream/SubnetEmitter.h"
#include "device_dialect/IR/DeviceDialect.h"
#include "device_dialect/IR/Layout.h"
#include "device_dialect/Transforms/Addresses.h"
#include "top_dialect/IR/Names.h"

#include "llvm/ADT/SetVector.h"

#include <cmath>

using namespace mlir;

namespace tessera::cuda {
namespace {

using llvm::json::Array, llvm::json::Object;

/// Converts to microseconds with three decimals, so that a report is readable and the same on every machine.
double micros(double seconds) { return std::round(seconds * 1e9) / 1e3; }

/// Returns the seconds of the launch that clears counters; 0 if the function needs none.
double clearingSeconds(func::FuncOp function, const CudaChip &chip) {
  bool clears = llvm::any_of(function.getBody().front(), [](Operation &op) {
    TileAttr tile = tileOf(&op);
    return tile && tile.getSplitK() > 1;
  });
  return clears ? chip.launchMicros * 1e-6 : 0;
}

struct Sums {
  Array layers;
  double seconds = 0, compute = 0, byLaunch = 0, byBound[5] = {};
  int64_t products = 0, dramBytes = 0, leastBytes = 0;

  void add(const codegen::Subnet &subnet, const PtxKernels &kernels, const CudaChip &chip) {
    func::FuncOp function = subnet.function;
    addClearing(function, kernels, chip);
    // Values that have to be read from or written to DRAM even if everything is fused.
    llvm::SmallSetVector<Value, 16> must;
    llvm::DenseMap<Value, int64_t> constants;
    for (Operation &op : function.getBody().front().without_terminator()) {
      if (!kernels::needsKernel(&op)) {
        continue;
      }
      add(&op, costOf(&op, chip), kernels);
      for (OpOperand &operand : op.getOpOperands()) {
        if (Value root = device::getConstantRoot(operand.get())) {
          int64_t &bytes = constants[root];
          bytes = std::min(device::physicalBytes(root), std::max(bytes, bytesRead(operand)));
        }
      }
    }
    must.insert_range(function.getArguments());
    must.insert_range(function.getBody().front().getTerminator()->getOperands());
    for (Value value : must) {
      leastBytes += device::physicalBytes(value);
    }
    for (auto [constant, bytes] : constants) {
      leastBytes += bytes;
    }
  }

  /// Adds the launch that clears counters, if an op of |function| needs counters.
  void addClearing(func::FuncOp function, const PtxKernels &kernels, const CudaChip &chip) {
    double launch = clearingSeconds(function, chip);
    if (launch == 0) {
      return;
    }
    seconds += launch, byLaunch += launch, byBound[int(Bound::launch)] += launch;
    layers.push_back(Object{{"layer", int64_t(layers.size())},
                            {"name", "clear counters"},
                            {"op", "clear"},
                            {"kernel", kernels[*kernels.clearing()].frame.symbol},
                            {"microseconds", micros(launch)},
                            {"bound", nameOf(Bound::launch)},
                            {"unit", "cores"},
                            {"compute_microseconds", 0},
                            {"grid_microseconds", 0},
                            {"dram_microseconds", 0},
                            {"launch_microseconds", micros(launch)},
                            {"products", 0},
                            {"dram_bytes", 0}});
  }

  void add(Operation *op, const Cost &cost, const PtxKernels &kernels) {
    seconds += cost.seconds(), compute += cost.compute, byLaunch += cost.roofline();
    byBound[int(cost.bound())] += cost.seconds();
    products += cost.products, dramBytes += cost.dramBytes;
    layers.push_back(Object{{"layer", int64_t(layers.size())},
                            {"name", top::getDisplayName(op->getLoc())},
                            {"op", op->getName().stripDialect()},
                            {"kernel", kernels[kernels.indexOf(op)].frame.symbol},
                            {"microseconds", micros(cost.seconds())},
                            {"bound", nameOf(cost.bound())},
                            {"unit", cost.onTensor ? "tensor cores" : "cores"},
                            {"compute_microseconds", micros(cost.compute)},
                            {"grid_microseconds", micros(cost.grid)},
                            {"dram_microseconds", micros(cost.dram)},
                            {"launch_microseconds", micros(cost.launch)},
                            {"products", cost.products},
                            {"dram_bytes", cost.dramBytes}});
    if (auto product = op->getAttrOfType<StringAttr>(CudaDialect::kProductAttr)) {
      (*layers.back().getAsObject())["product"] = product.getValue();
    }
  }
};

} // namespace

double secondsOf(const codegen::Subnet &subnet, const CudaChip &chip) {
  func::FuncOp function = subnet.function;
  double seconds = clearingSeconds(function, chip);
  for (Operation &op : function.getBody().front().without_terminator()) {
    seconds += kernels::needsKernel(&op) ? costOf(&op, chip).seconds() : 0;
  }
  return seconds;
}

Object costReport(ArrayRef<codegen::Subnet> subnets, const PtxKernels &kernels, const CudaChip &chip) {
  Sums sums;
  for (const codegen::Subnet &subnet : subnets) {
    sums.add(subnet, kernels, chip);
  }
  Object shares;
  for (Bound bound : {Bound::tensor, Bound::cores, Bound::grid, Bound::dram, Bound::launch}) {
    if (sums.byBound[int(bound)] > 0) {
      shares[nameOf(bound)] = micros(sums.byBound[int(bound)]);
    }
  }
  const double dram = double(sums.leastBytes) / chip.dramBytesPerSecond(), roofline = std::max(sums.compute, dram);
  return Object{{"report_version", kReportVersion},
                {"chip", chip.name},
                {"microseconds", micros(sums.seconds)},
                {"launches", int64_t(sums.layers.size())},
                {"kernels", int64_t(kernels.size())},
                {"products", sums.products},
                {"dram_bytes", sums.dramBytes},
                {"dram_least_bytes", sums.leastBytes},
                {"time_microseconds", std::move(shares)},
                {"roofline", Object{{"compute_microseconds", micros(sums.compute)},
                                    {"dram_microseconds", micros(dram)},
                                    {"by_launch_microseconds", micros(sums.byLaunch)},
                                    {"ratio", roofline > 0 ? std::round(sums.seconds / roofline * 1e3) / 1e3 : 0}}},
                {"layers", std::move(sums.layers)}};
}

} // namespace tessera::cuda
