//===- TopBlockOps.td - Ops on blocks of quantised numbers -----*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TOP_BLOCK_OPS
#define TOP_BLOCK_OPS

include "top_dialect/IR/TopBase.td"

def Top_BlockMatMulOp : Top_Op<"block_matmul"> {
  let summary = "Matmul of rows quantised at run time and integer weights with a scale per block";
  let description = [{
    x [..., M, K] x w [K, N] -> y [..., M, N]. Each column of w is divided into blocks of `block` entries of K; the last
    block may be shorter. A weight of block g and column n stands for w * scales[g, n] + mins[g, n]. Rows of x are
    quantised to i8 in the same blocks. docs/numerics.md specifies every bit of the result: sums of products within a
    block are exact integers, and the blocks are added in f32 one after another.
    (C1) x has rank 2 or more. (C2) The K dims agree. (C3) block is 1 to 65536. (C4) scales and mins are
    [ceil(K / block), N]. (C5) x, scales and mins are f32 and w is i8.
  }];
  let arguments = (ins Top_Tensor:$x, Top_Tensor:$w, Top_Tensor:$scales, Optional<Top_Tensor>:$mins, I64Attr:$block);
  let results = (outs Top_Tensor:$y);
}

#endif // TOP_BLOCK_OPS
