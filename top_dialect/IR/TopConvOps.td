//===- TopConvOps.td - Convolution, matmul and pooling ---------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TOP_CONV_OPS
#define TOP_CONV_OPS

include "top_dialect/IR/TopBase.td"

// Spatial geometry: one entry per spatial dim (1 to 3); `pads` = begins then ends, as in ONNX.
// auto_pad is resolved to explicit pads by the importer.
def Top_ConvOp : Top_Op<"conv"> {
  let summary = "Grouped convolution (cross-correlation)";
  let description = [{
    x [N, C, D...], w [OC, C/groups, K...], bias [OC] -> y [N, OC, O...],
    O = floor((D + pad_begin + pad_end - dilation (K - 1) - 1) / stride) + 1.
    `relu`: y = max(y, 0); with `reluLimit` > 0 also y = min(y, reluLimit).
    (C1) rank of x and w equal, 3 to 5. (C2) strides, dilations: spatial rank entries, positive.
    (C3) pads: twice the spatial rank, non-negative. (C4) groups divides C and OC, w dim 1 = C / groups.
    (C5) bias has OC elements. (C6) every output dim is positive.
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
    `relu`, `reluLimit` as in `top.conv`. Constraints C1 to C6 and C8 as `top.conv`; (C7) output_padding < max(stride, dilation).
  }];
  let arguments = (ins Top_Tensor:$x, Top_Tensor:$w, Optional<Top_Tensor>:$bias,
      DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$pads, DenseI64ArrayAttr:$dilations,
      DenseI64ArrayAttr:$outputPadding, DefaultValuedAttr<I64Attr, "1">:$groups,
      DefaultValuedAttr<BoolAttr, "false">:$relu, DefaultValuedAttr<F64Attr, "-1.0">:$reluLimit);
  let results = (outs Top_Tensor:$y);
}

def Top_MatMulOp : Top_Op<"matmul"> {
  let summary = "Batched matrix product with optional bias";
  let description = [{
    a [..., M, K] x b [..., K, N] -> y [..., M, N]; leading dims broadcast as in numpy; 1-D operands
    do not occur (the importer reshapes). `transA`/`transB` swap the last two dims. `bias` [N] is added.
    ONNX Gemm imports as this (alpha, beta folded or explicit mul).
    (C1) rank at least 2. (C2) the K dims agree. (C3) batch dims broadcast. (C4) bias is [N].
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
    Geometry as `top.conv`; `ceilMode` rounds the output size up (a window that would start in the
    end padding is dropped). Padding never wins. (C1) rank 3 to 5. (C2) kernel, strides, dilations:
    spatial rank entries, positive. (C3) pads: twice the spatial rank, smaller than the kernel extent.
    (C4) every output dim is positive.
  }];
  let arguments = (ins Top_Tensor:$x, DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$strides,
      DenseI64ArrayAttr:$pads, DenseI64ArrayAttr:$dilations, DefaultValuedAttr<BoolAttr, "false">:$ceilMode);
}
def Top_AvgPoolOp : Top_PoolOp<"avg_pool"> {
  let summary = "Mean over windows";
  let description = [{
    As `top.max_pool`. `countIncludePad`: the divisor counts padded positions (but not those beyond
    the padded input that ceilMode adds). Global pooling is a kernel of the whole extent.
  }];
  let arguments = (ins Top_Tensor:$x, DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$strides,
      DenseI64ArrayAttr:$pads, DenseI64ArrayAttr:$dilations, DefaultValuedAttr<BoolAttr, "false">:$ceilMode,
      DefaultValuedAttr<BoolAttr, "false">:$countIncludePad);
}

#endif // TOP_CONV_OPS
