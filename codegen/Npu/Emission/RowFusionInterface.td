//===- RowFusionInterface.td - Ops that copies are fused into --*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef NPU_ROW_FUSION_INTERFACE
#define NPU_ROW_FUSION_INTERFACE

include "mlir/IR/OpBase.td"

def RowFusionInterface : OpInterface<"RowFusionInterface"> {
  let cppNamespace = "::tessera::npu";
  let description = [{
    A device op that works on rows, and so can read its operands as they lie before copies, compute a map behind it on
    what is in local memory, and store its result as copies behind want it. npu-fuse-copies asks and decides.
    Attached by external models, in the files that emit the ops.
  }];
  let methods = [
    InterfaceMethod<[{
      Whether this op of the kind does work on rows; else nothing below is asked.
    }], "bool", "worksOnRows", (ins), "", [{ return true; }]>,
    InterfaceMethod<[{
      Whether it can read an operand so.
    }], "bool", "canRead", (ins "::mlir::OpOperand &":$use, "const ::tessera::npu::StridedView &":$view)>,
    InterfaceMethod<[{
      Of one that it can read: whether that costs no more than a copy would.
    }], "bool", "paysToRead",
      (ins "::mlir::OpOperand &":$use, "const ::tessera::npu::StridedView &":$view, "const ::tessera::npu::Chip &":$chip), "",
      [{ return true; }]>,
    InterfaceMethod<[{
      Whether it can store its result so.
    }], "bool", "canStore", (ins "const ::tessera::npu::StridedView &":$view)>,
    InterfaceMethod<[{
      Whether it can store its result to several places.
    }], "bool", "storesTwice", (ins), "", [{ return false; }]>,
    InterfaceMethod<[{
      Whether it can compute the map, the only reader of its result, which is the map's operand |mapped|, on rows in
      local memory.
    }], "bool", "canCompute",
      (ins "::tessera::device::MapOp":$map, "::mlir::Value":$mapped, "const ::tessera::npu::Chip &":$chip), "",
      [{ return false; }]>,
  ];
}

#endif // NPU_ROW_FUSION_INTERFACE
