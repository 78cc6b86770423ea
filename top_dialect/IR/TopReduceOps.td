//===- TopReduceOps.td - Reductions, softmax, normalisation ----*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TOP_REDUCE_OPS
#define TOP_REDUCE_OPS

include "top_dialect/IR/TopBase.td"

def Top_ReduceKind : I32EnumAttr<"ReduceKind", "kind of reduction", [
    I32EnumAttrCase<"sum", 0>, I32EnumAttrCase<"mean", 1>, I32EnumAttrCase<"max", 2>, I32EnumAttrCase<"min", 3>,
    I32EnumAttrCase<"prod", 4>, I32EnumAttrCase<"l1", 5>, I32EnumAttrCase<"l2", 6>,
    I32EnumAttrCase<"sum_square", 7>, I32EnumAttrCase<"log_sum", 8>, I32EnumAttrCase<"log_sum_exp", 9>]> {
  let cppNamespace = "::tessera::top";
}
def Top_ReduceOp : Top_Op<"reduce"> {
  let summary = "Reduction over axes";
  let description = [{`axes` sorted, non-negative, unique, within the rank (C1); empty = identity. `keepDims` keeps them as 1.}];
  let arguments = (ins Top_Tensor:$x, Top_ReduceKind:$kind, DenseI64ArrayAttr:$axes, DefaultValuedAttr<BoolAttr, "true">:$keepDims);
  let results = (outs Top_Tensor:$y);
}
def Top_ArgReduceOp : Top_Op<"arg_reduce"> {
  let summary = "Index of the largest or smallest element, i64";
  let description = [{ArgMax, or ArgMin when `min`. `selectLast` prefers the last of equal elements. (C1) axis within the rank. (C2) the axis has elements.}];
  let arguments = (ins Top_Tensor:$x, I64Attr:$axis, DefaultValuedAttr<BoolAttr, "false">:$min,
      DefaultValuedAttr<BoolAttr, "true">:$keepDims, DefaultValuedAttr<BoolAttr, "false">:$selectLast);
  let results = (outs Top_Tensor:$y);
}
def Top_CumSumOp : Top_Op<"cumsum"> {
  let summary = "Running sum along an axis";
  let description = [{(C1) axis within the rank.}];
  let arguments = (ins Top_Tensor:$x, I64Attr:$axis, DefaultValuedAttr<BoolAttr, "false">:$exclusive, DefaultValuedAttr<BoolAttr, "false">:$reverse);
  let results = (outs Top_Tensor:$y);
}
def Top_TopKOp : Top_Op<"topk"> {
  let summary = "The k largest or smallest elements along an axis, sorted";
  let description = [{values and i64 indices; equal elements keep the lower index first. (C1) axis within the rank. (C2) 0 <= k <= dim.}];
  let arguments = (ins Top_Tensor:$x, I64Attr:$k, I64Attr:$axis, DefaultValuedAttr<BoolAttr, "true">:$largest);
  let results = (outs Top_Tensor:$values, Top_Tensor:$indices);
}
def Top_NonMaxSuppressionOp : Top_Op<"non_max_suppression"> {
  let summary = "Greedy choice of boxes that overlap little, for each batch entry and class";
  let description = [{
    boxes [B, N, 4] (y1, x1, y2, x2: two opposite corners in any order; with `center` x, y, width, height), scores [B, C, N], one-element
    maxBoxes (i64), iouThreshold, scoreThreshold -> y i64 [B, C, K]: the numbers of the chosen boxes, best score first, equal ones by
    number, then -1. A box is a candidate if its score is above scoreThreshold (or not NaN where that is -inf). Chosen is the best candidate; those
    whose intersection with it is more than iouThreshold of their union are no longer candidates; and so on, up to min(maxBoxes, K) boxes.
    A box without an area overlaps none. (C1) boxes and scores fit each other. (C2) boxes, scores and thresholds are f32, maxBoxes is i64.
    (C3) the last three have one element. (C4) 1 <= K <= N.
  }];
  let arguments = (ins Top_Tensor:$boxes, Top_Tensor:$scores, Top_Tensor:$maxBoxes, Top_Tensor:$iouThreshold, Top_Tensor:$scoreThreshold,
      I64Attr:$k, DefaultValuedAttr<BoolAttr, "false">:$center);
  let results = (outs Top_Tensor:$y);
}
def Top_SoftmaxOp : Top_Op<"softmax"> {
  let summary = "Softmax or its logarithm along one axis";
  let description = [{y = e^(x - max) / sum, or its logarithm when `log`. Opset < 13's flattening imports as reshapes. (C1) axis within the rank, non-negative.}];
  let arguments = (ins Top_Tensor:$x, I64Attr:$axis, DefaultValuedAttr<BoolAttr, "false">:$log);
  let results = (outs Top_Tensor:$y);
}
def Top_BatchNormOp : Top_Op<"batch_norm"> {
  let summary = "Batch normalisation with stored statistics";
  let description = [{y = (x - mean) / sqrt(variance + epsilon) * scale + bias, all four [C] (C1), C = dim 1. (C2) rank at least 2.}];
  let arguments = (ins Top_Tensor:$x, Top_Tensor:$scale, Top_Tensor:$bias, Top_Tensor:$mean, Top_Tensor:$variance, F64Attr:$epsilon);
  let results = (outs Top_Tensor:$y);
}
def Top_LayerNormOp : Top_Op<"layer_norm", [AttrSizedOperandSegments]> {
  let summary = "Layer or RMS normalisation over the trailing dims";
  let description = [{
    Over the dims axis..rank-1: y = (x - mean) / sqrt(mean((x - mean)^2) + epsilon) * scale + bias;
    with `rms` the mean is taken as 0. scale, bias have the shape of those dims (C1). (C2) axis within the rank.
  }];
  let arguments = (ins Top_Tensor:$x, Optional<Top_Tensor>:$scale, Optional<Top_Tensor>:$bias, I64Attr:$axis, F64Attr:$epsilon,
      DefaultValuedAttr<BoolAttr, "false">:$rms);
  let results = (outs Top_Tensor:$y);
  let assemblyFormat = "$x (`scale` $scale^)? (`bias` $bias^)? attr-dict `:` functional-type(operands, results)";
}
def Top_GroupNormOp : Top_Op<"group_norm"> {
  let summary = "Normalisation over groups of channels and all positions";
  let description = [{
    x [N, C, D...]; channels in `groups` equal groups (C1: divides C); statistics per (n, group);
    scale, bias [C] (C2). (C3) rank at least 2. InstanceNormalization is groups = C.
  }];
  let arguments = (ins Top_Tensor:$x, Top_Tensor:$scale, Top_Tensor:$bias, I64Attr:$groups, F64Attr:$epsilon);
  let results = (outs Top_Tensor:$y);
}
def Top_LrnOp : Top_Op<"lrn"> {
  let summary = "Local response normalisation across channels";
  let description = [{y = x / (bias + alpha / size * sum of squares over the `size` channels around)^beta. (C1) size positive. (C2) rank at least 3.}];
  let arguments = (ins Top_Tensor:$x, I64Attr:$size, F64Attr:$alpha, F64Attr:$beta, F64Attr:$bias);
  let results = (outs Top_Tensor:$y);
}
def Top_AttentionOp : Top_Op<"attention"> {
  let summary = "Scaled dot-product attention";
  let description = [{
    q [B..., S, E], k [B..., T, E], v [B..., T, F], mask broadcast to [B..., S, T], added ->
    softmax(scale q k^T + mask) v : [B..., S, F]. Leading dims of k and v broadcast against q's. (C1) E dims agree, T dims agree. (C2) same rank, at least 2.
    (C3) leading dims broadcast. (C4) the mask broadcasts. With `levels`, as a quantised model has it: each power
    p = e^(score - largest of the row) becomes u = round(p * levels), and a row of y is the sum of u v over that of u. (C5) levels are from 1 to 255.
  }];
  let arguments = (ins Top_Tensor:$q, Top_Tensor:$k, Top_Tensor:$v, Optional<Top_Tensor>:$mask, F64Attr:$scale, OptionalAttr<I64Attr>:$levels);
  let results = (outs Top_Tensor:$y);
}
def Top_RopeOp : Top_Op<"rope"> {
  let summary = "Rotary position embedding";
  let description = [{
    x [..., S, E], cos and sin broadcast to [..., S, E / 2]. Halves (x1, x2) = the two halves of E, or even/odd
    elements when `interleaved`: y1 = x1 cos - x2 sin, y2 = x1 sin + x2 cos, put back the same way. (C1) rank at least 2, E even. (C2) cos and sin broadcast.
  }];
  let arguments = (ins Top_Tensor:$x, Top_Tensor:$cos, Top_Tensor:$sin, DefaultValuedAttr<BoolAttr, "false">:$interleaved);
  let results = (outs Top_Tensor:$y);
}

#endif // TOP_REDUCE_OPS
