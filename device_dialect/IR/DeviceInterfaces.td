//===- DeviceInterfaces.td - What a device op can answer -------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef DEVICE_INTERFACES
#define DEVICE_INTERFACES

include "mlir/IR/OpBase.td"

def DeviceReferenceInterface : OpInterface<"DeviceReferenceInterface"> {
  let cppNamespace = "::tessera::device";
  let description = [{The naive evaluation of a device op; layouts are the evaluator's business: tensors come row-major.}];
  let methods = [
    InterfaceMethod<"Computes the results from the operands, all row-major; failure emits an error at the op.",
      "::llvm::LogicalResult", "evaluate",
      (ins "::llvm::ArrayRef<const ::tessera::top::HostTensor *>":$inputs,
           "::llvm::MutableArrayRef<::tessera::top::HostTensor>":$outputs)>,
  ];
}

def EpilogueInterface : OpInterface<"EpilogueInterface"> {
  let cppNamespace = "::tessera::device";
  let description = [{
    An op whose result elements pass through a scalar region before they are stored. The block has
    one argument for the accumulated element and one for each extra operand (broadcast to the
    result as in numpy); it yields the stored element. Only elementwise-mappable ops stand in it,
    so that it can be emitted on vectors too. An empty region stores the element as it is.
  }];
  let methods = [
    InterfaceMethod<"The region, possibly empty.", "::mlir::Region &", "getEpilogueRegion", (ins)>,
    InterfaceMethod<"Operands of the region beyond the op's own.", "::mlir::OperandRange", "getEpilogueOperands", (ins)>,
    InterfaceMethod<"Type of the accumulated element (first block argument).", "::mlir::Type", "getAccumulatorType", (ins)>,
  ];
}

#endif // DEVICE_INTERFACES
