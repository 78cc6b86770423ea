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
    InterfaceMethod<"Whether fast kernels can read `extra` beside the result, as one more operand of the region.", "bool", "canReadExtra",
        (ins "::mlir::Value":$extra), "", "return true;">,
  ];
}

def LayoutInterface : OpInterface<"LayoutInterface"> {
  let cppNamespace = "::tessera::device";
  let description = [{
    An op that can write its result in channel blocks (`#device.blocked`) and says how its operands may lie then. Which of
    the allowed layouts each tensor gets is decided per chip. Every op without the interface reads and writes
    row-major tensors alone.
  }];
  let methods = [
    InterfaceMethod<"Whether the result may lie in channel blocks.", "bool", "canWriteBlocks", (ins)>,
    InterfaceMethod<"How `operand` may lie when the result is in channel blocks, or row-major.", "::tessera::device::OperandLayout",
        "getOperandLayout", (ins "::mlir::OpOperand &":$operand, "bool":$blockedResult)>,
    InterfaceMethod<"Whether the op walks `operand` and its result together, so that both should lie alike.", "bool", "carriesLayout",
        (ins "::mlir::OpOperand &":$operand)>,
  ];
}

def WorkInterface : OpInterface<"WorkInterface"> {
  let cppNamespace = "::tessera::device";
  let description = "How much an op computes, whatever computes it: for profiles, and for targets' models of time.";
  let methods = [
    InterfaceMethod<[{
      Arithmetic operations of one run; a multiply-add counts two. By default those of the op's regions, or one, for each
      element of the results.
    }], "int64_t", "countFlops", (ins), "", [{ return ::tessera::device::countRegionFlops($_op); }]>,
    InterfaceMethod<"Multiplications of products (convolutions, matmuls, attention, recurrent cells); 0 of other ops.",
      "int64_t", "countProducts", (ins), "", [{ return 0; }]>,
  ];
}

#endif // DEVICE_INTERFACES
