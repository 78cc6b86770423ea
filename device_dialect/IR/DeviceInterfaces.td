//===- DeviceInterfaces.td - Interfaces of device ops ----------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef DEVICE_INTERFACES
#define DEVICE_INTERFACES

include "mlir/IR/OpBase.td"

def EpilogueInterface : OpInterface<"EpilogueInterface"> {
  let cppNamespace = "::tessera::device";
  let description = [{
    An op whose result elements pass through a scalar region before they are stored. The block has one argument for the
    accumulated element and one for each extra operand (broadcast to the result as in numpy); it yields the stored
    element. The region contains only elementwise-mappable ops, so that it can be emitted on vectors too. An empty
    region stores the accumulated element, which then has the type of the result.
  }];
  let methods = [
    InterfaceMethod<"Returns the region, possibly empty.", "::mlir::Region &", "getEpilogueRegion", (ins)>,
    InterfaceMethod<"Returns the extra operands of the region.", "::mlir::OperandRange", "getEpilogueOperands", (ins)>,
    InterfaceMethod<"Replaces the extra operands; the caller updates the region's arguments.", "void", "setEpilogueOperands", (ins "::mlir::ValueRange":$operands)>,
    InterfaceMethod<"Returns the type of the accumulated element (first block argument).", "::mlir::Type", "getAccumulatorType", (ins)>,
    InterfaceMethod<"Returns true if fast kernels can read `extra` as one more extra operand of the region.", "bool", "canReadExtra",
        (ins "::mlir::Value":$extra), "", "return true;">,
  ];
}

def LayoutInterface : OpInterface<"LayoutInterface"> {
  let cppNamespace = "::tessera::device";
  let description = [{
    An op that can write its result in channel blocks (`#device.blocked`) and states which layouts its operands may then
    have. Each chip decides which of the allowed layouts each tensor gets. Ops without the interface read and write only
    row-major tensors.
  }];
  let methods = [
    InterfaceMethod<"Returns true if the result may be in channel blocks.", "bool", "canWriteBlocks", (ins)>,
    InterfaceMethod<"Returns the layouts that `operand` may have if the result is in channel blocks, or row-major.", "::tessera::device::OperandLayout",
        "getOperandLayout", (ins "::mlir::OpOperand &":$operand, "bool":$blockedResult)>,
    InterfaceMethod<"Returns true if the op iterates over `operand` and its result together, so that both should have the same layout.", "bool", "carriesLayout",
        (ins "::mlir::OpOperand &":$operand)>,
  ];
}

def WorkInterface : OpInterface<"WorkInterface"> {
  let cppNamespace = "::tessera::device";
  let description = "Amount of computation of an op, independent of the engine: for profiles, and for targets' time models.";
  let methods = [
    InterfaceMethod<[{
      Returns the arithmetic operations of one run; a multiply-add counts as two. The default counts those of the op's
      regions, at least one, for each element of the results.
    }], "int64_t", "countFlops", (ins), "", [{ return ::tessera::device::countRegionFlops($_op); }]>,
    InterfaceMethod<"Returns the multiplications of contractions (convolutions, matmuls, attention, recurrent cells); 0 for other ops.",
      "int64_t", "countMacs", (ins), "", [{ return 0; }]>,
  ];
}

#endif // DEVICE_INTERFACES
