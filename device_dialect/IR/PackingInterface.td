//===- PackingInterface.td - Weights in an order of a family ---*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef DEVICE_PACKING_INTERFACE
#define DEVICE_PACKING_INTERFACE

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/Interfaces.td"

def PackingInterface : AttrInterface<"PackingInterface"> {
  let cppNamespace = "::tessera::device";
  let description = [{
    How a family's kernels read the constant weights of an op, which are no longer in their logical shape then. The
    attribute holds all that such a kernel needs to know about them; this dialect knows only what it verifies ops with.
  }];
  let methods = [
    InterfaceMethod<"Dims of the weights before they were packed.", "::llvm::ArrayRef<int64_t>", "getShape">,
    InterfaceMethod<"Whether `op`, otherwise well-formed, can have a constant of type `weights` packed so; reports why not.",
        "::llvm::LogicalResult", "verifyWeights", (ins "::mlir::Operation *":$op, "::mlir::RankedTensorType":$weights)>,
  ];
}

// Any attribute that answers it.
def Device_PackingAttr : Attr<CPred<"::llvm::isa<::tessera::device::PackingInterface>($_self)">, "packing of weights"> {
  let storageType = "::tessera::device::PackingInterface";
  let returnType = "::tessera::device::PackingInterface";
  let convertFromStorage = "$_self";
}

#endif // DEVICE_PACKING_INTERFACE
