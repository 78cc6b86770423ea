//===- TopFixedPointOps.td - Fixed-point arithmetic on integers -*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TOP_FIXED_POINT_OPS
#define TOP_FIXED_POINT_OPS

include "top_dialect/IR/TopBase.td"

def Top_RequantizeOp : Top_Op<"requantize", [DeclareOpInterfaceMethods<ScalarInterface>]> {
  let summary = "Fixed-point scaling of integers, as TensorFlow Lite computes it";
  let description = [{
    `y = sat(round(x * multiplier / 2^shift) + zero)`, elementwise in integers. `sat` clamps to [low, high].
    An x of i32 is rounded twice: x * multiplier / 2^31 to an integer, halves upwards, and that to the result, halves
    away from zero. A shift below 31 first shifts x to the left by 31 - shift and saturates it to i32.
    An x of i64 is rounded once, halves upwards; its product with the multiplier must fit i64.
    Multiplier and shift broadcast to `x`: one for the tensor, one per channel, or one per row.
    (C1) `x` is i32 or i64. (C2) `multiplier` and `shift` are i32. (C3) Their dims broadcast to those of `x`. (C4) `to`
    is i8, ui8, i16, ui16 or i32, and `low` and `high` are values of it with `low` <= `high`. (C5) Constant shifts are
    1 to 62.
  }];
  let arguments = (ins Top_Tensor:$x, Top_Tensor:$multiplier, Top_Tensor:$shift, I64Attr:$zero, I64Attr:$low,
                       I64Attr:$high, TypeAttr:$to);
  let results = (outs Top_Tensor:$y);
}

#endif // TOP_FIXED_POINT_OPS
