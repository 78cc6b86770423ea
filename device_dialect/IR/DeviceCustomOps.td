//===- DeviceCustomOps.td - Operators outside Tessera ----------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef DEVICE_CUSTOM_OPS
#define DEVICE_CUSTOM_OPS

include "device_dialect/IR/DeviceBase.td"

def Device_CustomOp : Device_Op<"custom"> {
  let summary = "Operator that is not part of Tessera";
  let description = [{As top.custom; the host calls it between kernels. (C1) sizes of operands and results are numbers or expressions.}];
  let arguments = (ins Variadic<Device_Tensor>:$inputs, StrAttr:$opDomain, StrAttr:$opName, I64Attr:$opVersion, StrAttr:$opAttributes);
  let results = (outs Variadic<Device_Tensor>:$outputs);
}

#endif // DEVICE_CUSTOM_OPS
