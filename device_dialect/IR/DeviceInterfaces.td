//===- DeviceInterfaces.td - What a device op can answer -------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef DEVICE_INTERFACES
#define DEVICE_INTERFACES

include "mlir/IR/OpBase.td"

def EpilogueInterface : OpInterface<"EpilogueInterface"> {
  let cppNamespace = "::tessera::device";
  let description = [{
    An op whose result elements pass through a scalar region before they are stored. The block has
    one argument for the accumulated element and one for each extra operand (broadcast to the
    result as in numpy); it yields the stored element. Only elementwise-mappable ops stand in it,
    so that it can be emitted on vectors too. An empty region stores the element as it is, which
    then has the type of the result.
  }];
  let methods = [
    InterfaceMethod<"The region, possibly empty.", "::mlir::Region &", "getEpilogueRegion", (ins)>,
    InterfaceMethod<"Operands of the region beyond the op's own.", "::mlir::OperandRange", "getEpilogueOperands", (ins)>,
    InterfaceMethod<"Replaces these operands; the region's arguments are the caller's business.", "void", "setEpilogueOperands", (ins "::mlir::ValueRange":$operands)>,
    InterfaceMethod<"Type of the accumulated element (first block argument).", "::mlir::Type", "getAccumulatorType", (ins)>,
  ];
}

#endif // DEVICE_INTERFACES
