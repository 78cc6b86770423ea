//===- TopShapeOps.td - Moves, indexing, resize, recurrent -----*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TOP_SHAPE_OPS
#define TOP_SHAPE_OPS

include "top_dialect/IR/TopAttrs.td"
include "top_dialect/IR/TopBase.td"

def Top_ReshapeOp : Top_Op<"reshape"> {
  let summary = "Change of dims that keeps the elements";
  let description = [{
    Keeps the row-major order of the elements. `shape` lists the dims of the result with at most one -1, which is
    inferred; 0 is a dim of size 0. A shape known only at run time is the operand `dynShape`; `shape` then has -1 for
    each unknown dim. Squeeze, Unsqueeze and Flatten are imported as this op. (C1) Element counts agree. (C2) `shape`
    has at most one -1, or there is a dynShape.
  }];
  let arguments = (ins Top_Tensor:$x, Optional<Top_Tensor>:$dynShape, DenseI64ArrayAttr:$shape);
  let results = (outs Top_Tensor:$y);
  let hasFolder = 1;
}
def Top_TransposeOp : Top_Op<"transpose"> {
  let summary = "Permutation of dims";
  let description = [{Dim i of y is dim perm[i] of x. (C1) perm is a permutation of the dims.}];
  let arguments = (ins Top_Tensor:$x, DenseI64ArrayAttr:$perm);
  let results = (outs Top_Tensor:$y);
  let hasFolder = 1;
}
def Top_ConcatOp : Top_Op<"concat"> {
  let summary = "Joins tensors along an axis";
  let description = [{
    (C1) The axis is within the rank, non-negative. (C2) All other dims agree. (C3) There is at least one operand.
    (C4) All operands have one element type.
  }];
  let arguments = (ins Variadic<Top_Tensor>:$inputs, I64Attr:$axis);
  let results = (outs Top_Tensor:$y);
  let hasFolder = 1;
}
def Top_SliceOp : Top_Op<"slice"> {
  let summary = "Strided part of a tensor";
  let description = [{
    Element i of y along dim d is element starts[d] + i steps[d] of x, for i < sizes[d]. All values are normalised;
    steps may be negative. Only if the dim of x is `?`, the size -1 means up to the end of the dim in the direction of
    the step, and a negative start counts from the end. Split is imported as slices. (C1) The slice is within x. (C2)
    Steps are not 0. (C3) starts, sizes and steps have one entry per dim.
  }];
  let arguments = (ins Top_Tensor:$x, DenseI64ArrayAttr:$starts, DenseI64ArrayAttr:$sizes, DenseI64ArrayAttr:$steps);
  let results = (outs Top_Tensor:$y);
  let hasFolder = 1;
}
def Top_PadMode : I32EnumAttr<"PadMode", "kind of padding", [
    I32EnumAttrCase<"constant", 0>, I32EnumAttrCase<"reflect", 1>, I32EnumAttrCase<"edge", 2>, I32EnumAttrCase<"wrap", 3>]> {
  let cppNamespace = "::tessera::top";
}
def Top_PadOp : Top_Op<"pad"> {
  let summary = "Addition of elements at the ends of dims, or removal by negative counts";
  let description = [{
    (C1) `pads` lists one begin per dim, then one end per dim. (C2) Result dims are not negative; reflect pads are
    smaller than the dim.
  }];
  let arguments = (ins Top_Tensor:$x, DenseI64ArrayAttr:$pads, Top_PadMode:$mode, DefaultValuedAttr<F64Attr, "0.0">:$value);
  let results = (outs Top_Tensor:$y);
}
def Top_ExpandOp : Top_Op<"expand"> {
  let summary = "Broadcast to a shape";
  let description = [{
    Broadcasts x with `shape` as in numpy. A shape known only at run time is the operand `dynShape`. (C1) The dims
    broadcast. (C2) Entries of `shape` are sizes; -1 is allowed with dynShape only.
  }];
  let arguments = (ins Top_Tensor:$x, Optional<Top_Tensor>:$dynShape, DenseI64ArrayAttr:$shape);
  let results = (outs Top_Tensor:$y);
}
def Top_TileOp : Top_Op<"tile"> {
  let summary = "Repetition of a tensor along its dims";
  let description = [{(C1) `repeats` has one non-negative entry per dim.}];
  let arguments = (ins Top_Tensor:$x, DenseI64ArrayAttr:$repeats);
  let results = (outs Top_Tensor:$y);
}
def Top_ShapeOp : Top_Op<"shape"> {
  let summary = "Dims `start` to `end` - 1 of a tensor as an i64 vector";
  let description = [{(C1) 0 <= start <= end <= rank.}];
  let arguments = (ins Top_Tensor:$x, I64Attr:$start, I64Attr:$end);
  let results = (outs Top_Tensor:$y);
}
def Top_BindOp : Op<Top_Dialect, "bind"> {
  let summary = "Gives a size the value of an element that a run computes";
  let description = [{
    In the ops that follow in the block, sizes may contain `symbol`, whose value is element `index` of `values` in
    row-major order. A value outside the symbol's range is a run-time error. The op has no result; as its effects are
    unknown, it keeps its place. (C1) `values` is a tensor of i64 with constant dims and has element `index`.
  }];
  let arguments = (ins Top_Tensor:$values, I64Attr:$index, Top_SizeSymbolAttr:$symbol);
  let assemblyFormat = "operands attr-dict `:` type(operands)";
  let hasVerifier = 1;
}
def Top_RangeOp : Top_Op<"range"> {
  let summary = "Sequence start, start + delta, ... below limit";
  let description = [{
    The operands are scalars; the result has max(ceil((limit - start) / delta), 0) elements. (C1) The three element
    types agree. (C2) The operands are scalars. (C3) The size is finite.
  }];
  let arguments = (ins Top_Tensor:$start, Top_Tensor:$limit, Top_Tensor:$delta);
  let results = (outs Top_Tensor:$y);
}
def Top_ConstantOfShapeOp : Top_Op<"constant_of_shape"> {
  let summary = "Tensor filled with one value, with dims from an i64 vector";
  let description = [{(C1) `value` has one element. (C2) Dims are non-negative. (C3) `shape` is an i64 vector of known size.}];
  let arguments = (ins Top_Tensor:$shape, ElementsAttr:$value);
  let results = (outs Top_Tensor:$y);
}
def Top_GatherOp : Top_Op<"gather"> {
  let summary = "Selection of slices along an axis by index";
  let description = [{
    The dims of y are those of x before the axis, those of indices, and those of x after the axis. Negative indices
    count from the end. (C1) The axis is within the rank. (C2) indices are i32 or i64.
  }];
  let arguments = (ins Top_Tensor:$x, Top_Tensor:$indices, I64Attr:$axis);
  let results = (outs Top_Tensor:$y);
}
def Top_GatherElementsOp : Top_Op<"gather_elements"> {
  let summary = "Selection of elements along an axis by an index tensor";
  let description = [{
    As ONNX GatherElements: y[i] is the element of x at position i with the axis coordinate replaced by indices[i].
    (C1) The axis is within the rank. (C2) x and indices have equal rank; indices are i32 or i64.
  }];
  let arguments = (ins Top_Tensor:$x, Top_Tensor:$indices, I64Attr:$axis);
  let results = (outs Top_Tensor:$y);
}
def Top_GatherNdOp : Top_Op<"gather_nd"> {
  let summary = "Selection of slices by index tuples";
  let description = [{As ONNX GatherND. (C1) batchDims is below both ranks. (C2) indices are i32 or i64. (C3) The tuples match the rank.}];
  let arguments = (ins Top_Tensor:$x, Top_Tensor:$indices, DefaultValuedAttr<I64Attr, "0">:$batchDims);
  let results = (outs Top_Tensor:$y);
}
def Top_ScatterReduction : I32EnumAttr<"ScatterReduction", "how scattered values combine", [
    I32EnumAttrCase<"none", 0>, I32EnumAttrCase<"add", 1>, I32EnumAttrCase<"mul", 2>, I32EnumAttrCase<"min", 3>, I32EnumAttrCase<"max", 4>]> {
  let cppNamespace = "::tessera::top";
}
def Top_ScatterElementsOp : Top_Op<"scatter_elements"> {
  let summary = "Write of elements along an axis by an index tensor";
  let description = [{
    As ONNX ScatterElements. (C1) The axis is within the rank. (C2) x and indices have equal rank; indices and updates
    have the same dims. (C3) indices are i32 or i64. (C4) x and updates have one element type.
  }];
  let arguments = (ins Top_Tensor:$x, Top_Tensor:$indices, Top_Tensor:$updates, I64Attr:$axis, DefaultValuedAttr<Top_ScatterReduction, "ScatterReduction::none">:$reduction);
  let results = (outs Top_Tensor:$y);
}
def Top_ScatterNdOp : Top_Op<"scatter_nd"> {
  let summary = "Write of slices by index tuples";
  let description = [{
    As ONNX ScatterND. (C1) The dims of updates are those of indices except the last one, followed by the remaining
    dims of x. (C2) indices are i32 or i64. (C3) x and updates have one element type.
  }];
  let arguments = (ins Top_Tensor:$x, Top_Tensor:$indices, Top_Tensor:$updates, DefaultValuedAttr<Top_ScatterReduction, "ScatterReduction::none">:$reduction);
  let results = (outs Top_Tensor:$y);
}
def Top_OneHotOp : Top_Op<"one_hot"> {
  let summary = "One-hot encoding along a new axis";
  let description = [{
    `values` is [off, on]. Indices outside -depth..depth-1 select off for all elements. (C1) The axis is within the
    result's rank. (C2) depth is positive. (C3) values has two elements.
  }];
  let arguments = (ins Top_Tensor:$indices, Top_Tensor:$values, I64Attr:$depth, I64Attr:$axis);
  let results = (outs Top_Tensor:$y);
}
def Top_NonZeroOp : Top_Op<"non_zero"> {
  let summary = "Indices of non-zero elements, i64 [rank, ?]";
  let arguments = (ins Top_Tensor:$x);
  let results = (outs Top_Tensor:$y);
}
def Top_TriluOp : Top_Op<"trilu"> {
  let summary = "Upper or lower triangle of the last two dims";
  let description = [{Keeps the triangle relative to diagonal `k` and sets other elements to 0. (C1) The rank is at least 2.}];
  let arguments = (ins Top_Tensor:$x, DefaultValuedAttr<I64Attr, "0">:$k, DefaultValuedAttr<BoolAttr, "true">:$upper);
  let results = (outs Top_Tensor:$y);
}
def Top_DepthToSpaceOp : Top_Op<"depth_to_space"> {
  let summary = "Rearrangement of channels into blocks of pixels";
  let description = [{
    x [N, C, H, W] -> [N, C/b^2, H b, W b]. `crd` selects column-row-depth order instead of depth-column-row. (C1) The
    rank is 4, and b^2 divides C.
  }];
  let arguments = (ins Top_Tensor:$x, I64Attr:$blockSize, DefaultValuedAttr<BoolAttr, "false">:$crd);
  let results = (outs Top_Tensor:$y);
}
def Top_SpaceToDepthOp : Top_Op<"space_to_depth"> {
  let summary = "Rearrangement of blocks of pixels into channels";
  let description = [{x [N, C, H, W] -> [N, C b^2, H/b, W/b]. (C1) The rank is 4, and b divides H and W.}];
  let arguments = (ins Top_Tensor:$x, I64Attr:$blockSize);
  let results = (outs Top_Tensor:$y);
}
def Top_ResizeMode : I32EnumAttr<"ResizeMode", "interpolation", [
    I32EnumAttrCase<"nearest", 0>, I32EnumAttrCase<"linear", 1>, I32EnumAttrCase<"cubic", 2>]> {
  let cppNamespace = "::tessera::top";
}
def Top_ResizeCoord : I32EnumAttr<"ResizeCoord", "output to input coordinate", [
    I32EnumAttrCase<"half_pixel", 0>, I32EnumAttrCase<"pytorch_half_pixel", 1>, I32EnumAttrCase<"align_corners", 2>,
    I32EnumAttrCase<"asymmetric", 3>, I32EnumAttrCase<"half_pixel_symmetric", 4>, I32EnumAttrCase<"tf_crop_and_resize", 5>,
    I32EnumAttrCase<"tf_half_pixel_for_nn", 6>]> {
  let cppNamespace = "::tessera::top";
}
def Top_ResizeRound : I32EnumAttr<"ResizeRound", "rounding of the nearest coordinate", [
    I32EnumAttrCase<"round_prefer_floor", 0>, I32EnumAttrCase<"round_prefer_ceil", 1>, I32EnumAttrCase<"floor", 2>, I32EnumAttrCase<"ceil", 3>]> {
  let cppNamespace = "::tessera::top";
}
def Top_ResizeOp : Top_Op<"resize"> {
  let summary = "Interpolating resize";
  let description = [{
    `sizes` are the result dims; if the dim of x is `?`, -1 means floor(dim * scale). `scales` are the factors by which
    coordinates are computed (in ONNX the given scales, else sizes / dims). `roi` has two entries per dim for
    tf_crop_and_resize and is otherwise empty. (C1) All lists have the required number of entries. (C2) Scales are
    positive. (C3) The sizes are possible.
  }];
  let arguments = (ins Top_Tensor:$x, DenseI64ArrayAttr:$sizes, DenseF64ArrayAttr:$scales, Top_ResizeMode:$mode, Top_ResizeCoord:$coord,
      DefaultValuedAttr<Top_ResizeRound, "ResizeRound::round_prefer_floor">:$round, DefaultValuedAttr<F64Attr, "-0.75">:$cubicCoeff,
      DefaultValuedAttr<BoolAttr, "false">:$excludeOutside, DefaultValuedAttr<F64Attr, "0.0">:$extrapolation,
      DefaultValuedAttr<DenseF64ArrayAttr, "{}">:$roi, DefaultValuedAttr<BoolAttr, "false">:$antialias);
  let results = (outs Top_Tensor:$y);
}
def Top_EinsumOp : Top_Op<"einsum"> {
  let summary = "Einstein summation by an index equation";
  let description = [{
    `equation` is explicit, without blanks or an ellipsis: "bij,bjk->bik". (C1) There is one term per operand, as long
    as its rank. (C2) Equal letters stand for equal dims. (C3) Letters of the result occur in an operand.
  }];
  let arguments = (ins Variadic<Top_Tensor>:$inputs, StrAttr:$equation);
  let results = (outs Top_Tensor:$y);
}

def Top_RnnKind : I32EnumAttr<"RnnKind", "recurrent cell", [
    I32EnumAttrCase<"rnn", 0>, I32EnumAttrCase<"gru", 1>, I32EnumAttrCase<"lstm", 2>]> {
  let cppNamespace = "::tessera::top";
}
def Top_RnnDirection : I32EnumAttr<"RnnDirection", "direction of a recurrent op", [
    I32EnumAttrCase<"forward", 0>, I32EnumAttrCase<"reverse", 1>, I32EnumAttrCase<"bidirectional", 2>]> {
  let cppNamespace = "::tessera::top";
}
def Top_RnnOp : Top_Op<"rnn", [AttrSizedOperandSegments]> {
  let summary = "Vanilla RNN, GRU or LSTM over a sequence";
  let description = [{
    x [T, B, I], w [D, G H, I], r [D, G H, H], bias [D, 2 G H], initialH/initialC [D, B, H], peephole [D, 3 H],
    sequenceLens [B], where D is the number of directions and G the number of gates, in the order of ONNX (LSTM iofc,
    GRU zrh). Results: y [T, D, B, H], yH [D, B, H], yC [D, B, H] (a copy of yH if not LSTM). `activations` are ONNX
    names, per direction. (C1) Shapes agree. (C2) There are 1 (RNN), 2 (GRU) or 3 (LSTM) activations per direction.
  }];
  let arguments = (ins Top_Tensor:$x, Top_Tensor:$w, Top_Tensor:$r, Optional<Top_Tensor>:$bias, Optional<Top_Tensor>:$sequenceLens,
      Optional<Top_Tensor>:$initialH, Optional<Top_Tensor>:$initialC, Optional<Top_Tensor>:$peephole,
      Top_RnnKind:$kind, Top_RnnDirection:$direction, I64Attr:$hiddenSize, StrArrayAttr:$activations,
      DefaultValuedAttr<F64Attr, "0.0">:$clip, DefaultValuedAttr<BoolAttr, "false">:$linearBeforeReset);
  let results = (outs Top_Tensor:$y, Top_Tensor:$yH, Top_Tensor:$yC);
  let assemblyFormat = [{
    $x `,` $w `,` $r (`bias` $bias^)? (`lens` $sequenceLens^)? (`h` $initialH^)? (`c` $initialC^)? (`peephole` $peephole^)?
    attr-dict `:` functional-type(operands, results)
  }];
}

#endif // TOP_SHAPE_OPS
