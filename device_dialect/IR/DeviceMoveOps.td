//===- DeviceMoveOps.td - Copies, indexing, resize, order ------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef DEVICE_MOVE_OPS
#define DEVICE_MOVE_OPS

include "device_dialect/IR/DeviceBase.td"
include "device_dialect/IR/DeviceAttrs.td"
include "top_dialect/IR/TopAttrs.td"

def Device_CopyOp : Device_Op<"copy", [DeclareOpInterfaceMethods<LayoutInterface>], ["countFlops"]> {
  let summary = "Rectangular copies: permute, slice, pad, concat, tile, layout change";
  let description = [{
    Elements that no piece covers hold `fill` (absent: the pieces cover everything). Offsets are in logical dims; the
    layouts of sources and result may differ, so a copy of one whole identity piece is a layout change.
    (C1) element types agree. (C2) piece arrays have the ranks. (C3) pieces stay inside source and result. (C4) pieces
    do not overlap in the result; without fill they cover it.
  }];
  let arguments = (ins Variadic<Device_Tensor>:$sources, Device_PieceArrayAttr:$pieces, OptionalAttr<F64Attr>:$fill);
  let results = (outs Device_Tensor:$y);
}

def Device_ReshapeOp : Device_Op<"reshape", [], ["countFlops"]> {
  let summary = "View of the same bytes with other dims";
  let description = "For row-major tensors, and blocked tensors of the same physical order if C and the block agree. Emits no code: the result is a view. (C1) element counts agree. (C2) same element type. (C3) the layouts order the elements alike.";
  let arguments = (ins Device_Tensor:$x);
  let results = (outs Device_Tensor:$y);
}

def Device_GatherOp : Device_Op<"gather", [], ["countFlops"]> {
  let summary = "Picks slices along an axis by index";
  let description = [{As top.gather, but an index out of range is clamped, because devices do not trap. (C1) axis in rank. (C2) indices i32 or i64. (C3) result dims.}];
  let arguments = (ins Device_Tensor:$x, Device_Tensor:$indices, I64Attr:$axis);
  let results = (outs Device_Tensor:$y);
}
def Device_GatherElementsOp : Device_Op<"gather_elements", [], ["countFlops"]> {
  let summary = "Picks elements along an axis by an index tensor";
  let description = [{As top.gather_elements. (C1) axis in rank. (C2) ranks agree, indices i32 or i64. (C3) result dims are the indices'.}];
  let arguments = (ins Device_Tensor:$x, Device_Tensor:$indices, I64Attr:$axis);
  let results = (outs Device_Tensor:$y);
}
def Device_GatherNdOp : Device_Op<"gather_nd", [], ["countFlops"]> {
  let summary = "Picks slices by index tuples";
  let description = [{As top.gather_nd. (C1) batchDims below the ranks. (C2) indices i32 or i64, the tuple no longer than the rest of x's rank. (C3) result dims.}];
  let arguments = (ins Device_Tensor:$x, Device_Tensor:$indices, DefaultValuedAttr<I64Attr, "0">:$batchDims);
  let results = (outs Device_Tensor:$y);
}
def Device_ScatterOp : Device_Op<"scatter", [], ["countFlops"]> {
  let summary = "Writes elements or slices by index";
  let description = [{`nd`: as top.scatter_nd, else as top.scatter_elements along `axis`. `reduction`: none, add, mul, min, max. Updates apply in order; an index out of range is clamped.
    `inPlace`: y has the address of x, as in device.insert.
    (C1) axis in rank. (C2) dims of indices and updates. (C3) result type is x's. (C4) reduction known.}];
  let arguments = (ins Device_Tensor:$x, Device_Tensor:$indices, Device_Tensor:$updates, DefaultValuedAttr<BoolAttr, "false">:$nd,
      DefaultValuedAttr<I64Attr, "0">:$axis, DefaultValuedStrAttr<StrAttr, "none">:$reduction, UnitAttr:$inPlace);
  let results = (outs Device_Tensor:$y);
}
def Device_InsertOp : Device_Op<"insert", [], ["countFlops"]> {
  let summary = "Writes consecutive slices into a tensor in place";
  let description = [{
    y is x, with slice `offset` + i along `axis` replaced by slice i of updates. Slices outside of x are not written. y
    has the address of x: address assignment copies x before if x is still read afterwards.
    (C1) axis in rank. (C2) dims of updates are x's but for the axis. (C3) result type is x's, element types agree.
  }];
  let arguments = (ins Device_Tensor:$x, Device_Tensor:$updates, I64Attr:$axis, Top_SizeAttr:$offset);
  let results = (outs Device_Tensor:$y);
}
def Device_ResizeOp : Device_Op<"resize", [DeclareOpInterfaceMethods<LayoutInterface>]> {
  let summary = "Separable interpolation by tables";
  let description = [{
    For each resized axis a (sorted), every result index has taps[a] source indices and weights, given as constants
    index_a [O, taps] i32 and weight_a [O, taps] f32 in `tables` (index_0, weight_0, index_1, ...). y is the sum, over
    the taps of all axes, of the product of the weights times x. Nearest has one tap.
    (C1) two tables per axis with the result's extent. (C2) constant indices inside x. (C3) axes sorted, in rank, other
    dims agree. (C4) table element types i32 and f32, x a float or one-tap.
  }];
  let arguments = (ins Device_Tensor:$x, Variadic<Device_Tensor>:$tables, DenseI64ArrayAttr:$axes);
  let results = (outs Device_Tensor:$y);
}
def Device_ArgReduceOp : Device_Op<"arg_reduce"> {
  let summary = "Index of the largest or smallest element, i64";
  let description = [{As top.arg_reduce with the dim kept as 1. (C1) axis in rank. (C2) result dims and type.}];
  let arguments = (ins Device_Tensor:$x, I64Attr:$axis, DefaultValuedAttr<BoolAttr, "false">:$min, DefaultValuedAttr<BoolAttr, "false">:$selectLast);
  let results = (outs Device_Tensor:$y);
}
def Device_TopKOp : Device_Op<"topk"> {
  let summary = "The k largest or smallest elements, sorted";
  let description = [{As top.topk. (C1) axis in rank, k in 1..dim. (C2) result dims and types.}];
  let arguments = (ins Device_Tensor:$x, I64Attr:$k, I64Attr:$axis, DefaultValuedAttr<BoolAttr, "true">:$largest);
  let results = (outs Device_Tensor:$values, Device_Tensor:$indices);
}
def Device_NonMaxSuppressionOp : Device_Op<"non_max_suppression"> {
  let summary = "Greedy selection of boxes with little overlap, for each batch entry and class";
  let description = [{As top.non_max_suppression. (C1) boxes [B, N, 4], scores [B, C, N], 1 <= k <= N. (C2) f32, maxBoxes i64, the last three operands of one element. (C3) result i64 [B, C, k].}];
  let arguments = (ins Device_Tensor:$boxes, Device_Tensor:$scores, Device_Tensor:$maxBoxes, Device_Tensor:$iouThreshold, Device_Tensor:$scoreThreshold,
      I64Attr:$k, DefaultValuedAttr<BoolAttr, "false">:$center);
  let results = (outs Device_Tensor:$y);
}
def Device_CumSumOp : Device_Op<"cumsum"> {
  let summary = "Running sum along an axis";
  let description = "As top.cumsum. (C1) axis in rank. (C2) result type is x's.";
  let arguments = (ins Device_Tensor:$x, I64Attr:$axis, DefaultValuedAttr<BoolAttr, "false">:$exclusive, DefaultValuedAttr<BoolAttr, "false">:$reverse);
  let results = (outs Device_Tensor:$y);
}

#endif // DEVICE_MOVE_OPS
