//===- DeviceBlockOps.td - Ops on blocks of quantised numbers --*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef DEVICE_BLOCK_OPS
#define DEVICE_BLOCK_OPS

include "device_dialect/IR/DeviceBase.td"
include "device_dialect/IR/PackingInterface.td"

def Device_BlockMatMulOp : Device_EpilogueOp<"block_matmul", [AttrSizedOperandSegments], ["canReadExtra"], ["countFlops", "countMacs"]> {
  let summary = "Matmul of rows quantised at run time and integer weights with a scale per block, with epilogue";
  let description = [{
    As top.block_matmul: x f32 [B..., M, K] x w i8 [K, N] -> f32 sums [B..., M, N]. `packing`: w is a constant in the
    order that a family's kernel reads, which contains the scales and mins; then the op does not have these operands.
    (C1) x has rank 2 or more, and w has rank 2. (C2) K agrees. (C3) block is 1 to 65536. (C4) scales and mins are
    [ceil(K / block), N]; scales are absent only with packed weights. (C5) element types. (C6) result dims. (C7)
    epilogue as EpilogueInterface requires. (C8) the packing verifies that it fits.
  }];
  let arguments = (ins Device_Tensor:$x, Device_Tensor:$w, Optional<Device_Tensor>:$scales, Optional<Device_Tensor>:$mins,
      Variadic<Device_Tensor>:$extras, I64Attr:$block, OptionalAttr<Device_PackingAttr>:$packing);
  let results = (outs Device_Tensor:$y);
  let extraClassDeclaration = [{
    /// Returns the dims of the weights before any packing, [K, N].
    ::llvm::ArrayRef<int64_t> getWeightShape();
  }];
  let assemblyFormat = [{
    $x `,` $w (`scales` $scales^)? (`mins` $mins^)? (`extras` `(` $extras^ `)`)? (`epilogue` $epilogue^)? attr-dict `:` functional-type(operands, results)
  }];
}

#endif // DEVICE_BLOCK_OPS
