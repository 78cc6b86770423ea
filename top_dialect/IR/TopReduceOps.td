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
  let description = [{
    Reduces x along `axes`; an empty list is the identity. `keepDims` keeps the reduced dims with size 1. (C1) `axes`
    are sorted, unique and within the rank.
  }];
  let arguments = (ins Top_Tensor:$x, Top_ReduceKind:$kind, DenseI64ArrayAttr:$axes, DefaultValuedAttr<BoolAttr, "true">:$keepDims);
  let results = (outs Top_Tensor:$y);
}
def Top_ArgReduceOp : Top_Op<"arg_reduce"> {
  let summary = "Index of the largest or smallest element, i64";
  let description = [{
    Computes ArgMax, or ArgMin if `min` is set. `selectLast` prefers the last of equal elements. (C1) The axis is within
    the rank. (C2) The axis has elements.
  }];
  let arguments = (ins Top_Tensor:$x, I64Attr:$axis, DefaultValuedAttr<BoolAttr, "false">:$min,
      DefaultValuedAttr<BoolAttr, "true">:$keepDims, DefaultValuedAttr<BoolAttr, "false">:$selectLast);
  let results = (outs Top_Tensor:$y);
}
def Top_CumSumOp : Top_Op<"cumsum"> {
  let summary = "Running sum along an axis";
  let description = [{
    y[i] is the sum of x[0] to x[i] along the axis. `exclusive` leaves out x[i]; `reverse` sums from the end. (C1) The
    axis is within the rank.
  }];
  let arguments = (ins Top_Tensor:$x, I64Attr:$axis, DefaultValuedAttr<BoolAttr, "false">:$exclusive, DefaultValuedAttr<BoolAttr, "false">:$reverse);
  let results = (outs Top_Tensor:$y);
}
def Top_TopKOp : Top_Op<"topk"> {
  let summary = "The k largest or smallest elements along an axis, sorted";
  let description = [{
    Returns values and i64 indices, sorted. Among equal elements the lower index comes first. (C1) The axis is within
    the rank. (C2) 0 <= k <= dim.
  }];
  let arguments = (ins Top_Tensor:$x, I64Attr:$k, I64Attr:$axis, DefaultValuedAttr<BoolAttr, "true">:$largest);
  let results = (outs Top_Tensor:$values, Top_Tensor:$indices);
}
def Top_NonMaxSuppressionOp : Top_Op<"non_max_suppression"> {
  let summary = "Greedy selection of boxes with little overlap, per batch entry and class";
  let description = [{
    boxes [B, N, 4] (y1, x1, y2, x2: two opposite corners in any order; with `center`: x, y, width, height), scores
    [B, C, N], and one-element maxBoxes (i64), iouThreshold and scoreThreshold -> y i64 [B, C, K]: the indices of the
    selected boxes by descending score (equal scores by ascending index), padded with -1. A box is a candidate if its
    score is above scoreThreshold, or is not NaN if scoreThreshold is -inf. Each step selects the best candidate, and
    removes all candidates whose intersection with it is more than iouThreshold of their union. It ends after
    min(maxBoxes, K) boxes. Boxes without an area do not overlap others. (C1) The shapes of boxes and scores match.
    (C2) boxes, scores and thresholds are f32, maxBoxes is i64. (C3) The last three operands have one element. (C4) 1
    <= K <= N.
  }];
  let arguments = (ins Top_Tensor:$boxes, Top_Tensor:$scores, Top_Tensor:$maxBoxes, Top_Tensor:$iouThreshold, Top_Tensor:$scoreThreshold,
      I64Attr:$k, DefaultValuedAttr<BoolAttr, "false">:$center);
  let results = (outs Top_Tensor:$y);
}
def Top_SoftmaxOp : Top_Op<"softmax"> {
  let summary = "Softmax or its logarithm along one axis";
  let description = [{
    y = e^(x - max) / sum, or its logarithm if `log` is set. Before opset 13, ONNX softmax flattens the input, which is
    imported as reshapes. (C1) The axis is within the rank, non-negative.
  }];
  let arguments = (ins Top_Tensor:$x, I64Attr:$axis, DefaultValuedAttr<BoolAttr, "false">:$log);
  let results = (outs Top_Tensor:$y);
}
def Top_BatchNormOp : Top_Op<"batch_norm"> {
  let summary = "Batch normalisation with stored statistics";
  let description = [{
    y = (x - mean) / sqrt(variance + epsilon) * scale + bias. (C1) scale, bias, mean and variance are [C], where C is
    dim 1 of x. (C2) The rank is at least 2.
  }];
  let arguments = (ins Top_Tensor:$x, Top_Tensor:$scale, Top_Tensor:$bias, Top_Tensor:$mean, Top_Tensor:$variance, F64Attr:$epsilon);
  let results = (outs Top_Tensor:$y);
}
def Top_LayerNormOp : Top_Op<"layer_norm", [AttrSizedOperandSegments]> {
  let summary = "Layer or RMS normalisation over the trailing dims";
  let description = [{
    Over the dims axis..rank-1: y = (x - mean) / sqrt(mean((x - mean)^2) + epsilon) * scale + bias; with `rms` the
    mean is taken as 0. (C1) scale and bias have the shape of those dims. (C2) The axis is within the rank.
  }];
  let arguments = (ins Top_Tensor:$x, Optional<Top_Tensor>:$scale, Optional<Top_Tensor>:$bias, I64Attr:$axis, F64Attr:$epsilon,
      DefaultValuedAttr<BoolAttr, "false">:$rms);
  let results = (outs Top_Tensor:$y);
  let assemblyFormat = "$x (`scale` $scale^)? (`bias` $bias^)? attr-dict `:` functional-type(operands, results)";
}
def Top_GroupNormOp : Top_Op<"group_norm"> {
  let summary = "Normalisation over groups of channels and all positions";
  let description = [{
    x [N, C, D...]. The channels form `groups` equal groups, and statistics are computed per (n, group).
    InstanceNormalization is imported with groups = C. (C1) groups divides C. (C2) scale and bias are [C]. (C3) The
    rank is at least 2.
  }];
  let arguments = (ins Top_Tensor:$x, Top_Tensor:$scale, Top_Tensor:$bias, I64Attr:$groups, F64Attr:$epsilon);
  let results = (outs Top_Tensor:$y);
}
def Top_LrnOp : Top_Op<"lrn"> {
  let summary = "Local response normalisation across channels";
  let description = [{
    y = x / (bias + alpha / size * sum of squares over the `size` surrounding channels)^beta. (C1) size is positive.
    (C2) The rank is at least 3.
  }];
  let arguments = (ins Top_Tensor:$x, I64Attr:$size, F64Attr:$alpha, F64Attr:$beta, F64Attr:$bias);
  let results = (outs Top_Tensor:$y);
}
def Top_AttentionOp : Top_Op<"attention"> {
  let summary = "Scaled dot-product attention";
  let description = [{
    q [B..., S, E], k [B..., T, E], v [B..., T, F], and a mask that broadcasts to [B..., S, T] and is added ->
    softmax(scale q k^T + mask) v : [B..., S, F]. Leading dims of q, k and v broadcast.
    With `levels`, as in a quantised model, each exponential p = e^(score - largest score of the row) becomes
    u = round(p * levels), and a row of y is the sum of u v divided by the sum of u.
    (C1) The E dims agree, and the T dims agree. (C2) q, k and v have equal rank, at least 2. (C3) Leading dims
    broadcast. (C4) The mask broadcasts. (C5) levels is 1 to 255.
  }];
  let arguments = (ins Top_Tensor:$q, Top_Tensor:$k, Top_Tensor:$v, Optional<Top_Tensor>:$mask, F64Attr:$scale, OptionalAttr<I64Attr>:$levels);
  let results = (outs Top_Tensor:$y);
}
def Top_RopeOp : Top_Op<"rope"> {
  let summary = "Rotary position embedding";
  let description = [{
    x [..., S, E], cos and sin broadcast to [..., S, E / 2]. x1 and x2 are the two halves of E, or its even and odd
    elements if `interleaved` is set: y1 = x1 cos - x2 sin, y2 = x1 sin + x2 cos, in the same arrangement.
    (C1) The rank is at least 2 and E is even. (C2) cos and sin broadcast.
  }];
  let arguments = (ins Top_Tensor:$x, Top_Tensor:$cos, Top_Tensor:$sin, DefaultValuedAttr<BoolAttr, "false">:$interleaved);
  let results = (outs Top_Tensor:$y);
}

#endif // TOP_REDUCE_OPS
