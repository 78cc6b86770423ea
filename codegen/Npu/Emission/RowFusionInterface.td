//===- RowFusionInterface.td - Ops that copies are fused into --*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef NPU_ROW_FUSION_INTERFACE
#define NPU_ROW_FUSION_INTERFACE

include "mlir/IR/OpBase.td"

def RowFusionInterface : OpInterface<"RowFusionInterface"> {
  let cppNamespace = "::tessera::npu";
  let description = [{
    A device op that processes rows. It can read its operands as they lie before copies, compute a map behind it on data
    in local memory, and store its result in the layout of copies behind it. npu-fuse-copies queries this interface and
    decides. The external models are in the files that emit the ops.
  }];
  let methods = [
    InterfaceMethod<[{
      Returns true if this op processes rows. The other methods apply only then.
    }], "bool", "worksOnRows", (ins), "", [{ return true; }]>,
    InterfaceMethod<[{
      Returns true if the op can read an operand with this layout.
    }], "bool", "canRead", (ins "::mlir::OpOperand &":$use, "const ::tessera::npu::StridedView &":$view)>,
    InterfaceMethod<[{
      Returns true if reading such an operand costs no more than a copy would. Requires canRead.
    }], "bool", "paysToRead",
      (ins "::mlir::OpOperand &":$use, "const ::tessera::npu::StridedView &":$view, "const ::tessera::npu::Chip &":$chip), "",
      [{ return true; }]>,
    InterfaceMethod<[{
      Returns true if the op can store its result with this layout.
    }], "bool", "canStore", (ins "const ::tessera::npu::StridedView &":$view)>,
    InterfaceMethod<[{
      Returns true if the op can store its result to several destinations.
    }], "bool", "storesTwice", (ins), "", [{ return false; }]>,
    InterfaceMethod<[{
      Returns true if the op can compute |map| on rows in local memory. The map is the only reader of its result, which
      is the map's operand |mapped|.
    }], "bool", "canCompute",
      (ins "::tessera::device::MapOp":$map, "::mlir::Value":$mapped, "const ::tessera::npu::Chip &":$chip), "",
      [{ return false; }]>,
  ];
}

#endif // NPU_ROW_FUSION_INTERFACE
