//===- EmissionInterface.td - How device ops become commands ---*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef NPU_EMISSION_INTERFACE
#define NPU_EMISSION_INTERFACE

include "mlir/IR/OpBase.td"

def EmissionInterface : OpInterface<"EmissionInterface"> {
  let cppNamespace = "::tessera::npu";
  let description = [{
    A device op that the NPU computes. Attached by external models (registerNpuModels), one file an op or family of
    ops. The same code is asked what an op needs (a survey: nothing is appended), and emits it.
  }];
  let methods = [
    InterfaceMethod<[{
      Why the chip cannot compute with the types of the op's operands and results, or success. By default the chip's
      units must have every element type; an op whose elements only move says otherwise.
    }], "::llvm::Error", "checkTypes", (ins "const ::tessera::npu::Chip &":$chip), "",
      [{ return ::tessera::npu::checkElementTypes($_op, chip); }]>,
    InterfaceMethod<[{
      Writes on the op which of several forms it takes on the chip, in place of an earlier choice. Operands are placed as
      for a survey.
    }], "void", "chooseForm", (ins "::tessera::npu::EmissionContext &":$context), "",
      [{ (void)context; }]>,
    InterfaceMethod<[{
      Appends the op's commands to the context's stream, tile by tile. The error says why the op cannot be emitted; it
      is reported at the op.
    }], "::llvm::Error", "emit", (ins "::tessera::npu::EmissionContext &":$context)>,
    InterfaceMethod<[{
      Whether rows of a result [n, c, rows, columns] are made of rows of operands, so that the op can run for some of them
      at a time.
    }], "bool", "runsInSlices", (ins), "", [{ return false; }]>,
    InterfaceMethod<[{
      Of an op that runs in slices: the rows of an operand, which has |size| of them, that rows |y| of the result need.
    }], "::tessera::npu::RowRange", "rowsRead",
      (ins "::mlir::Value":$operand, "uint32_t":$size, "::tessera::npu::RowRange":$y), "", [{ return y; }]>,
    InterfaceMethod<[{
      Whether each tile of the result is stored as n, c, h, w of a tensor of four dims, so that it can be stored to
      another place of another order instead.
    }], "bool", "storesImages", (ins), "", [{ return false; }]>,
    InterfaceMethod<[{
      Whether a result [1, 1, rows, columns] lies with its rows, not its columns, over lanes.
    }], "bool", "spreadsRows", (ins), "", [{ return false; }]>,
  ];
}

#endif // NPU_EMISSION_INTERFACE
