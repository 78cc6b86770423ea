//===- TopConvOps.td - Convolution, matmul and pooling ---------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TOP_CONV_OPS
#define TOP_CONV_OPS

include "top_dialect/IR/TopBase.td"

// Attributes of the spatial geometry have one entry per spatial dim (1 to 3). `pads` lists all begins, then all ends,
// as in ONNX. The importer resolves auto_pad to explicit pads.
def Top_ConvOp : Top_Op<"conv"> {
  let summary = "Grouped convolution (cross-correlation)";
  let description = [{
    x [N, C, D...], w [OC, C/groups, K...], bias [OC] -> y [N, OC, O...],
    O = floor((D + pad_begin + pad_end - dilation (K - 1) - 1) / stride) + 1.
    `relu`: y = max(y, 0); with `reluLimit` > 0 also y = min(y, reluLimit).
    (C1) x and w have equal rank, 3 to 5. (C2) strides and dilations have one positive entry per spatial dim.
    (C3) pads has two non-negative entries per spatial dim. (C4) groups divides C and OC, and w dim 1 is C / groups.
    (C5) bias has OC elements. (C6) Every output dim is positive.
    (C8) x, w and bias have one element type.
  }];
  let arguments = (ins Top_Tensor:$x, Top_Tensor:$w, Optional<Top_Tensor>:$bias,
      DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$pads, DenseI64ArrayAttr:$dilations,
      DefaultValuedAttr<I64Attr, "1">:$groups,
      DefaultValuedAttr<BoolAttr, "false">:$relu, DefaultValuedAttr<F64Attr, "-1.0">:$reluLimit);
  let results = (outs Top_Tensor:$y);
}

def Top_ConvTransposeOp : Top_Op<"conv_transpose"> {
  let summary = "Transposed convolution";
  let description = [{
    x [N, C, D...], w [C, OC/groups, K...], bias [OC] -> y [N, OC, O...],
    O = stride (D - 1) + output_padding + dilation (K - 1) + 1 - pad_begin - pad_end.
    `relu` and `reluLimit` are as in `top.conv`, as are constraints C1 to C6 and C8.
    (C7) output_padding < max(stride, dilation).
  }];
  let arguments = (ins Top_Tensor:$x, Top_Tensor:$w, Optional<Top_Tensor>:$bias,
      DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$pads, DenseI64ArrayAttr:$dilations,
      DenseI64ArrayAttr:$outputPadding, DefaultValuedAttr<I64Attr, "1">:$groups,
      DefaultValuedAttr<BoolAttr, "false">:$relu, DefaultValuedAttr<F64Attr, "-1.0">:$reluLimit);
  let results = (outs Top_Tensor:$y);
}

def Top_MatMulOp : Top_Op<"matmul"> {
  let summary = "Batched matrix multiplication with optional bias";
  let description = [{
    a [..., M, K] x b [..., K, N] -> y [..., M, N]. Leading dims broadcast as in numpy. 1-D operands are not allowed;
    the importer reshapes them. `transA` and `transB` swap the last two dims of an operand. `bias` [N] is added.
    ONNX Gemm is imported as this op, with alpha and beta folded or as an explicit `top.mul`.
    (C1) Both ranks are at least 2. (C2) The K dims agree. (C3) Batch dims broadcast. (C4) bias is [N].
    (C5) a, b and bias have one element type.
  }];
  let arguments = (ins Top_Tensor:$a, Top_Tensor:$b, Optional<Top_Tensor>:$bias,
      DefaultValuedAttr<BoolAttr, "false">:$transA, DefaultValuedAttr<BoolAttr, "false">:$transB,
      DefaultValuedAttr<BoolAttr, "false">:$relu, DefaultValuedAttr<F64Attr, "-1.0">:$reluLimit);
  let results = (outs Top_Tensor:$y);
}

class Top_PoolOp<string mnemonic> : Top_Op<mnemonic> {
  let results = (outs Top_Tensor:$y);
}
def Top_MaxPoolOp : Top_PoolOp<"max_pool"> {
  let summary = "Maximum over windows";
  let description = [{
    The geometry is that of `top.conv`. `ceilMode` rounds the output size up, without windows that would start in the
    end padding. Padding is never the maximum. (C1) The rank is 3 to 5. (C2) kernel, strides and dilations have one
    positive entry per spatial dim. (C3) pads has two entries per spatial dim, smaller than the kernel extent.
    (C4) Every output dim is positive.
  }];
  let arguments = (ins Top_Tensor:$x, DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$strides,
      DenseI64ArrayAttr:$pads, DenseI64ArrayAttr:$dilations, DefaultValuedAttr<BoolAttr, "false">:$ceilMode);
}
def Top_AvgPoolOp : Top_PoolOp<"avg_pool"> {
  let summary = "Mean over windows";
  let description = [{
    The geometry and constraints are those of `top.max_pool`. With `countIncludePad`, the divisor counts padded
    positions, but not the positions beyond the padded input that ceilMode adds. Global pooling uses a kernel as large
    as the input.
  }];
  let arguments = (ins Top_Tensor:$x, DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$strides,
      DenseI64ArrayAttr:$pads, DenseI64ArrayAttr:$dilations, DefaultValuedAttr<BoolAttr, "false">:$ceilMode,
      DefaultValuedAttr<BoolAttr, "false">:$countIncludePad);
}

#endif // TOP_CONV_OPS
