//===- TopShapeOps.td - Moves, indexing, resize, recurrent -----*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TOP_SHAPE_OPS
#define TOP_SHAPE_OPS

include "top_dialect/IR/TopBase.td"

def Top_ReshapeOp : Top_Op<"reshape"> {
  let summary = "Same elements, other dims";
  let description = [{
    Row-major order is kept. `shape`: dims of the result, at most one -1 (the rest; a 0 is a dim of size 0). Squeeze, Unsqueeze, Flatten
    import as this. A shape known only at run time comes as the operand `dynShape` (then `shape` has
    -1 for each unknown dim). (C1) element counts agree. (C2) one -1 at most, or a dynShape.
  }];
  let arguments = (ins Top_Tensor:$x, Optional<Top_Tensor>:$dynShape, DenseI64ArrayAttr:$shape);
  let results = (outs Top_Tensor:$y);
  let hasFolder = 1;
}
def Top_TransposeOp : Top_Op<"transpose"> {
  let summary = "Permutation of dims";
  let description = [{dim i of y is dim perm[i] of x. (C1) perm is a permutation of the rank.}];
  let arguments = (ins Top_Tensor:$x, DenseI64ArrayAttr:$perm);
  let results = (outs Top_Tensor:$y);
  let hasFolder = 1;
}
def Top_ConcatOp : Top_Op<"concat"> {
  let summary = "Joins tensors along an axis";
  let description = [{(C1) axis within the rank, non-negative. (C2) all other dims agree. (C3) at least one operand. (C4) one element type.}];
  let arguments = (ins Variadic<Top_Tensor>:$inputs, I64Attr:$axis);
  let results = (outs Top_Tensor:$y);
  let hasFolder = 1;
}
def Top_SliceOp : Top_Op<"slice"> {
  let summary = "Strided part of a tensor";
  let description = [{
    For every dim d: y index i = x index starts[d] + i steps[d], sizes[d] of them. All three have rank entries,
    already normalised (steps may be negative). Only where x's dim is `?`: a size of -1 reaches to the end of the dim
    in the direction of the step, a negative start counts from the end. Split imports as slices. (C1) everything stays inside x. (C2) steps non-zero. (C3) rank entries each.
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
  let summary = "Adds (or with negative counts removes) elements at the ends of dims";
  let description = [{`pads`: begins then ends, one each per dim (C1). (C2) result dims are not negative; reflect pads are smaller than the dim.}];
  let arguments = (ins Top_Tensor:$x, DenseI64ArrayAttr:$pads, Top_PadMode:$mode, DefaultValuedAttr<F64Attr, "0.0">:$value);
  let results = (outs Top_Tensor:$y);
}
def Top_ExpandOp : Top_Op<"expand"> {
  let summary = "Broadcast to a shape";
  let description = [{numpy broadcasting of x with `shape`; a run-time shape comes as `dynShape`. (C1) dims broadcast. (C2) sizes; -1 with dynShape only.}];
  let arguments = (ins Top_Tensor:$x, Optional<Top_Tensor>:$dynShape, DenseI64ArrayAttr:$shape);
  let results = (outs Top_Tensor:$y);
}
def Top_TileOp : Top_Op<"tile"> {
  let summary = "Repeats a tensor along its dims";
  let description = [{(C1) `repeats`: rank entries, not negative.}];
  let arguments = (ins Top_Tensor:$x, DenseI64ArrayAttr:$repeats);
  let results = (outs Top_Tensor:$y);
}
def Top_ShapeOp : Top_Op<"shape"> {
  let summary = "Dims start to end - 1 of a tensor as i64 vector";
  let description = [{(C1) 0 <= start <= end <= rank.}];
  let arguments = (ins Top_Tensor:$x, I64Attr:$start, I64Attr:$end);
  let results = (outs Top_Tensor:$y);
}
def Top_RangeOp : Top_Op<"range"> {
  let summary = "start, start + delta, ... below limit";
  let description = [{Scalars; max(ceil((limit - start) / delta), 0) elements. (C1) the three element types agree. (C2) scalars. (C3) the size is finite.}];
  let arguments = (ins Top_Tensor:$start, Top_Tensor:$limit, Top_Tensor:$delta);
  let results = (outs Top_Tensor:$y);
}
def Top_ConstantOfShapeOp : Top_Op<"constant_of_shape"> {
  let summary = "Tensor of one value, dims from an i64 vector";
  let description = [{(C1) `value` has one element. (C2) dims are non-negative. (C3) an i64 vector of known size.}];
  let arguments = (ins Top_Tensor:$shape, ElementsAttr:$value);
  let results = (outs Top_Tensor:$y);
}
def Top_GatherOp : Top_Op<"gather"> {
  let summary = "Picks slices along an axis by index";
  let description = [{y dims = x dims before axis, indices dims, x dims after axis. Negative indices count from the end. (C1) axis within the rank. (C2) indices are i32 or i64.}];
  let arguments = (ins Top_Tensor:$x, Top_Tensor:$indices, I64Attr:$axis);
  let results = (outs Top_Tensor:$y);
}
def Top_GatherElementsOp : Top_Op<"gather_elements"> {
  let summary = "Picks elements along an axis by an index tensor";
  let description = [{y[i0..][.. i_axis = indices[i] ..] as in ONNX. (C1) axis within the rank. (C2) same rank; indices i32 or i64.}];
  let arguments = (ins Top_Tensor:$x, Top_Tensor:$indices, I64Attr:$axis);
  let results = (outs Top_Tensor:$y);
}
def Top_GatherNdOp : Top_Op<"gather_nd"> {
  let summary = "Picks slices by index tuples";
  let description = [{As ONNX GatherND. (C1) batchDims below both ranks. (C2) indices i32 or i64. (C3) tuples fit the rank.}];
  let arguments = (ins Top_Tensor:$x, Top_Tensor:$indices, DefaultValuedAttr<I64Attr, "0">:$batchDims);
  let results = (outs Top_Tensor:$y);
}
def Top_ScatterReduction : I32EnumAttr<"ScatterReduction", "how scattered values combine", [
    I32EnumAttrCase<"none", 0>, I32EnumAttrCase<"add", 1>, I32EnumAttrCase<"mul", 2>, I32EnumAttrCase<"min", 3>, I32EnumAttrCase<"max", 4>]> {
  let cppNamespace = "::tessera::top";
}
def Top_ScatterElementsOp : Top_Op<"scatter_elements"> {
  let summary = "Writes elements along an axis by an index tensor";
  let description = [{As ONNX ScatterElements. (C1) axis within the rank. (C2) same rank; indices and updates same dims. (C3) indices i32 or i64. (C4) x and updates of one element type.}];
  let arguments = (ins Top_Tensor:$x, Top_Tensor:$indices, Top_Tensor:$updates, I64Attr:$axis, DefaultValuedAttr<Top_ScatterReduction, "ScatterReduction::none">:$reduction);
  let results = (outs Top_Tensor:$y);
}
def Top_ScatterNdOp : Top_Op<"scatter_nd"> {
  let summary = "Writes slices by index tuples";
  let description = [{As ONNX ScatterND. (C1) updates dims = indices dims but the last, then the rest of x's. (C2) indices i32 or i64. (C3) x and updates of one element type.}];
  let arguments = (ins Top_Tensor:$x, Top_Tensor:$indices, Top_Tensor:$updates, DefaultValuedAttr<Top_ScatterReduction, "ScatterReduction::none">:$reduction);
  let results = (outs Top_Tensor:$y);
}
def Top_OneHotOp : Top_Op<"one_hot"> {
  let summary = "One-hot encoding along a new axis";
  let description = [{values [off, on]. Indices outside -depth..depth-1 give all off. (C1) axis within the result rank. (C2) depth positive. (C3) values are 2.}];
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
  let description = [{(C1) rank at least 2.}];
  let arguments = (ins Top_Tensor:$x, DefaultValuedAttr<I64Attr, "0">:$k, DefaultValuedAttr<BoolAttr, "true">:$upper);
  let results = (outs Top_Tensor:$y);
}
def Top_DepthToSpaceOp : Top_Op<"depth_to_space"> {
  let summary = "Moves channels into blocks of pixels";
  let description = [{x [N, C, H, W] -> [N, C/b^2, Hb, Wb]; `crd`: column-row-depth order, else DCR. (C1) rank 4, b^2 divides C.}];
  let arguments = (ins Top_Tensor:$x, I64Attr:$blockSize, DefaultValuedAttr<BoolAttr, "false">:$crd);
  let results = (outs Top_Tensor:$y);
}
def Top_SpaceToDepthOp : Top_Op<"space_to_depth"> {
  let summary = "Moves blocks of pixels into channels";
  let description = [{x [N, C, H, W] -> [N, C b^2, H/b, W/b]. (C1) rank 4, b divides H and W.}];
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
    `sizes`: result dims, rank entries; -1 where x's dim is `?`: floor(dim * scale). `scales`: rank entries, the factor the coordinates use (ONNX: given scales, else sizes / dims).
    `roi` (2 rank entries or empty) for tf_crop_and_resize. (C1) entries per dim. (C2) scales positive. (C3) sizes possible.
  }];
  let arguments = (ins Top_Tensor:$x, DenseI64ArrayAttr:$sizes, DenseF64ArrayAttr:$scales, Top_ResizeMode:$mode, Top_ResizeCoord:$coord,
      DefaultValuedAttr<Top_ResizeRound, "ResizeRound::round_prefer_floor">:$round, DefaultValuedAttr<F64Attr, "-0.75">:$cubicCoeff,
      DefaultValuedAttr<BoolAttr, "false">:$excludeOutside, DefaultValuedAttr<F64Attr, "0.0">:$extrapolation,
      DefaultValuedAttr<DenseF64ArrayAttr, "{}">:$roi, DefaultValuedAttr<BoolAttr, "false">:$antialias);
  let results = (outs Top_Tensor:$y);
}
def Top_EinsumOp : Top_Op<"einsum"> {
  let summary = "Sum of products by an index equation";
  let description = [{`equation` explicit, without blanks and ellipsis: "bij,bjk->bik". (C1) one term per operand, each of its rank. (C2) equal letters, equal dims. (C3) result letters occur in an operand.}];
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
    sequenceLens [B]; gate order as in ONNX (LSTM iofc, GRU zrh). Results: y [T, D, B, H], yH [D, B, H], yC [D, B, H] (LSTM;
    otherwise a copy of yH). `activations`: ONNX names, per direction. (C1) shapes agree.
    (C2) activations: 1 per direction for RNN, 2 for GRU, 3 for LSTM.
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
