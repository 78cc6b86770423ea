//===- Passes.td - Passes on the device dialect ----------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef DEVICE_PASSES
#define DEVICE_PASSES

include "mlir/Pass/PassBase.td"

def AssignLayoutsPass : Pass<"device-assign-layouts", "::mlir::func::FuncOp"> {
  let summary = "Choose channel-blocked or row-major per tensor and an algorithm per convolution";
  let description = [{
    Before: all tensors row-major, convolutions `generic`. After: convolutions that the chip has a fast kernel for carry its
    algorithm and write channel blocks of 16; pools, maps, resizes, spatial reductions and channel concatenations
    between them are blocked too; everything else, the function's arguments and its results are row-major. Where a
    consumer wants the other layout there is one identity `device.copy` (or a `device.reshape` where the bytes agree)
    per tensor. Grouped convolutions whose groups are no whole blocks become convolutions with fewer, wider groups.
    A first convolution over few channels reads its row-major input as it is. Weights stay as they are
    (device-pack-weights).

    Does not touch 3-D convolutions or types other than f32.
  }];
  let options = [
    Option<"vectorBytes", "vector-bytes", "int64_t", "64", "Bytes of a vector register of the chip: 16, 32 or 64">,
    Option<"winograd", "winograd", "bool", "true", "Allow Winograd for 3x3 convolutions where it is faster">,
  ];
  let dependentDialects = ["::tessera::device::DeviceDialect"];
  let statistics = [Statistic<"numCopies", "layout-copies", "Layout changes inserted">,
                    Statistic<"numBlocked", "blocked-tensors", "Results made channel-blocked">];
}

def PackWeightsPass : Pass<"device-pack-weights", "::mlir::func::FuncOp"> {
  let summary = "Put constant weights into the order their kernels read";
  let description = [{
    Before: convolutions carry an algorithm, weights lie in logical order. After: constant weights of these convolutions and
    constant right sides of matrix products are in panels (WeightPacking.h), `packed`, `weightShape` and `panelBlocks` say
    so; the logical ones are dropped from the module. A convolution whose weights are no constant becomes `generic`.
  }];
  let options = [
    Option<"vectorBytes", "vector-bytes", "int64_t", "64", "Bytes of a vector register of the chip: 16, 32 or 64">,
  ];
  let dependentDialects = ["::tessera::device::DeviceDialect", "::tessera::top::TopDialect"];
  let statistics = [Statistic<"numPacked", "packed-weights", "Weights packed">];
}

#endif // DEVICE_PASSES
