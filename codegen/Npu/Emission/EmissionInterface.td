//===- EmissionInterface.td - Emits device ops as commands -----*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef NPU_EMISSION_INTERFACE
#define NPU_EMISSION_INTERFACE

include "mlir/IR/OpBase.td"

def EmissionInterface : OpInterface<"EmissionInterface"> {
  let cppNamespace = "::tessera::npu";
  let description = [{
    A device op that the NPU executes. registerNpuModels attaches the interface as external models, one file for each op
    or family of ops. The same `emit` serves a survey, which records what an op needs and appends nothing.
  }];
  let methods = [
    InterfaceMethod<[{
      Checks that the chip supports the types of the op's operands and results. By default the chip's units must support
      every element type; an op that only moves elements can relax this.
    }], "::llvm::Error", "checkTypes", (ins "const ::tessera::npu::Chip &":$chip), "",
      [{ return ::tessera::npu::checkElementTypes($_op, chip); }]>,
    InterfaceMethod<[{
      Chooses one of the op's forms and writes it on the op as an attribute, replacing an earlier choice. Operands are
      placed as in a survey.
    }], "void", "chooseForm", (ins "::tessera::npu::EmissionContext &":$context), "",
      [{ (void)context; }]>,
    InterfaceMethod<[{
      Appends the op's commands to the context's stream, tile by tile. Returns an error if the op cannot be emitted; the
      caller reports it at the op.
    }], "::llvm::Error", "emit", (ins "::tessera::npu::EmissionContext &":$context)>,
    InterfaceMethod<[{
      Returns true if rows of the result [n, c, rows, columns] depend on rows of the operands only, so that the op can
      run for some rows at a time.
    }], "bool", "runsInSlices", (ins), "", [{ return false; }]>,
    InterfaceMethod<[{
      Returns the rows of an operand, which has |size| rows, that rows |y| of the result need. For ops that run in
      slices.
    }], "::tessera::npu::RowRange", "rowsRead",
      (ins "::mlir::Value":$operand, "uint32_t":$size, "::tessera::npu::RowRange":$y), "", [{ return y; }]>,
    InterfaceMethod<[{
      Returns true if each tile of the result is stored as n, c, h, w of a tensor of four dims. Such a tile can be
      stored directly to another position in another order.
    }], "bool", "storesImages", (ins), "", [{ return false; }]>,
    InterfaceMethod<[{
      Returns true if a result [1, 1, rows, columns] has its rows, not its columns, spread over the lanes.
    }], "bool", "spreadsRows", (ins), "", [{ return false; }]>,
  ];
}

#endif // NPU_EMISSION_INTERFACE
