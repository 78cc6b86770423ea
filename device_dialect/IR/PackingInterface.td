//===- PackingInterface.td - Packed weights of a family --------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef DEVICE_PACKING_INTERFACE
#define DEVICE_PACKING_INTERFACE

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/Interfaces.td"

def PackingInterface : AttrInterface<"PackingInterface"> {
  let cppNamespace = "::tessera::device";
  let description = [{
    Describes the order in which a family's kernels read the constant weights of an op, which are then not in their
    logical shape. The attribute holds everything that such a kernel needs to know about them; this dialect only knows
    what it needs to verify ops.
  }];
  let methods = [
    InterfaceMethod<"Returns the dims of the weights before packing.", "::llvm::ArrayRef<int64_t>", "getShape">,
    InterfaceMethod<"Checks that `op`, otherwise well-formed, can have a constant of type `weights` with this packing; reports why not.",
        "::llvm::LogicalResult", "verifyWeights", (ins "::mlir::Operation *":$op, "::mlir::RankedTensorType":$weights)>,
  ];
}

// An attribute that implements PackingInterface.
def Device_PackingAttr : Attr<CPred<"::llvm::isa<::tessera::device::PackingInterface>($_self)">, "packing of weights"> {
  let storageType = "::tessera::device::PackingInterface";
  let returnType = "::tessera::device::PackingInterface";
  let convertFromStorage = "$_self";
}

#endif // DEVICE_PACKING_INTERFACE
