//===- Passes.td - Graph optimisation on Top -------------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TOP_PASSES
#define TOP_PASSES

include "mlir/Pass/PassBase.td"

// All passes run on the module and visit each op once, in program order: their cost is linear in
// the number of ops. None changes a result beyond the re-association of floating-point sums and
// products. Node names are kept: an op that does the work of several has their fused location.
class Top_Pass<string flag> : Pass<flag, "::mlir::ModuleOp"> {
  let dependentDialects = ["::tessera::top::TopDialect", "::mlir::func::FuncDialect"];
}

def FoldConstantsPass : Top_Pass<"top-fold-constants"> {
  let summary = "Evaluate constant ops, refine shapes, drop no-ops";
  let description = [{
    Before: ops over constants only (shape arithmetic of exporters among them), ops on tensors
    without elements or with such results, result types that are less static than their operands
    allow, ops that return an operand.
    After: their values as constants, the inferred types, the operand.
    ```
    %s = top.shape %x {start = 0, end = 2} : (tensor<4x8xf32>) -> tensor<2xi64>     ==> dense<[4, 8]>
    %y = top.mul %x, %one : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>       ==> %x
    %r = top.if %true { yield %a } else { yield %b }                                ==> %a
    ```
    Values come from the reference evaluation of the op. Results that grow beyond `max-growth` and
    work beyond `max-work` stay as they are: a broadcast weight is better broadcast at run time.
    Does not merge equal constants (top-cse).
  }];
  let options = [
    Option<"maxGrowth", "max-growth", "int64_t", /*default=*/"1 << 21",
           "Bytes a folded result may have beyond its constant operands">,
    Option<"maxFill", "max-fill", "int64_t", /*default=*/"int64_t(1) << 30",
           "Bytes of a folded constant_of_shape, which stands for a weight">,
    Option<"maxWork", "max-work", "int64_t", /*default=*/"1 << 28",
           "Multiplications of a folded op">,
  ];
  let statistics = [
    Statistic<"evaluated", "evaluated", "Ops replaced by the constant they compute">,
    Statistic<"simplified", "simplified", "Ops replaced by an operand or a simpler op">,
    Statistic<"refined", "refined", "Ops whose result type became more static">,
  ];
}

def FoldBatchNormPass : Top_Pass<"top-fold-batch-norm"> {
  let summary = "Fold batch_norm and per-channel scales into weights";
  let description = [{
    Before: conv, conv_transpose or matmul with constant weights, then a chain of batch_norm and of
    mul, div, add, sub with per-channel constants, each the only user of the one before.
    After: the one op with new weights and bias (computed in double, rounded once).
    ```
    conv(x, w) -> batch_norm -> mul [C,1,1] -> add [C,1,1]   ==> conv(x, w', bias')
    batch_norm (after anything else)                          ==> mul [C,1,1] -> add [C,1,1]
    ```
    Does not touch chains that only add (top-fuse-bias), nor move a scale over another op.
  }];
  let statistics = [
    Statistic<"folded", "folded", "Ops folded into weights">,
    Statistic<"affine", "affine", "batch_norm chains that became mul and add">,
  ];
}

def FoldPadPass : Top_Pass<"top-fold-pad"> {
  let summary = "Fold constant padding into conv and pool";
  let description = [{
    Before: top.pad of spatial dims with a constant, then conv, avg_pool or max_pool.
    After: the consumer with larger pads.
    ```
    pad(x, 0) -> conv                        ==> conv with pads
    pad(x, 0) -> avg_pool                    ==> avg_pool with pads and countIncludePad
    pad(x, -inf) -> max_pool                 ==> max_pool with pads
    ```
    A max_pool takes a finite padding only if the padding cannot win: the value is 0 and the input is a
    rectified one. Does not fold negative, reflected or channel padding, nor where ceilMode would
    drop a window.
  }];
  let statistics = [Statistic<"folded", "folded", "Consumers that took over a pad">];
}

def FuseBiasPass : Top_Pass<"top-fuse-bias"> {
  let summary = "Fuse the addition of a constant vector into the bias";
  let description = [{
    ```
    matmul(x, w) -> add [N]       ==> matmul(x, w, bias)
    conv(x, w, b) -> sub [C,1,1]  ==> conv(x, w, b')
    ```
    Weights must be constant (else the sum may belong to an attention mask) and the addition the
    only user. Does not fuse residual additions (epilogues on the device level).
  }];
  let statistics = [Statistic<"fused", "fused", "Additions fused into a bias">];
}

def FuseActivationPass : Top_Pass<"top-fuse-activation"> {
  let summary = "Fuse relu and clip into conv, conv_transpose, matmul";
  let description = [{
    ```
    conv -> relu            ==> conv {relu}
    matmul -> clip [0, 6]   ==> matmul {relu, reluLimit = 6}
    ```
    Only as single user. Other activations are epilogues on the device level.
  }];
  let statistics = [Statistic<"fused", "fused", "Activations fused">];
}

def RecoverActivationsPass : Top_Pass<"top-recover-activations"> {
  let summary = "Recover GELU, SiLU, HardSwish, Mish and their parts";
  let description = [{
    Formulas are matched as mathematics, whatever the order and association of their parts.
    ```
    0.5 x (1 + erf(x / sqrt 2))                              ==> gelu
    0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))        ==> gelu {tanh}
    1 / (1 + e^-x)                                           ==> sigmoid
    x sigmoid(x)                                             ==> silu
    clip(a x + b, 0, c) / c                                  ==> hard_sigmoid
    x hard_sigmoid(x, 1/6, 1/2), x clip(x + 3, 0, 6) / 6     ==> hard_swish
    ln(1 + e^x)                                              ==> softplus
    x tanh(softplus(x))                                      ==> mish
    ```
    Constants agree within single precision. Does not approximate one function by another.
  }];
  let statistics = [Statistic<"recovered", "recovered", "Activations recovered">];
}

def RecoverSoftmaxPass : Top_Pass<"top-recover-softmax"> {
  let summary = "Recover softmax and log-softmax";
  let description = [{
    ```
    e^(x - max x) / sum e^(x - max x), e^x / sum e^x   ==> softmax
    log(softmax(x))                                     ==> softmax {log}
    ```
    Along one axis.
  }];
  let statistics = [Statistic<"recovered", "recovered", "Softmax ops recovered">];
}

def RecoverNormsPass : Top_Pass<"top-recover-norms"> {
  let summary = "Recover layer_norm, RMS norm and L2 norms";
  let description = [{
    ```
    d = x - mean(x); d / sqrt(mean(d^2) + eps) [* scale] [+ bias]   ==> layer_norm
    x * rsqrt(mean(x^2) + eps) [* scale]                            ==> layer_norm {rms}
    sqrt(sum(x^2))                                                  ==> reduce l2
    ```
    The square as a power, a product or over two equal differences; the root as sqrt, rsqrt,
    reciprocal or power. Only over trailing dims; scale and bias have exactly those dims.
  }];
  let statistics = [Statistic<"recovered", "recovered", "Normalisations recovered">];
}

def RecoverRopePass : Top_Pass<"top-recover-rope"> {
  let summary = "Recover rotary position embeddings";
  let description = [{
    ```
    x1, x2 = even and odd elements or the two halves of the last dim:
    join(x1 cos - x2 sin, x1 sin + x2 cos)           ==> rope
    x * cos + concat(-x2, x1) * sin                  ==> rope, when both halves of cos and sin are equal
    ```
    `join` is a concatenation of halves, or a stacking in a new last dim. Only exact matches.
  }];
  let statistics = [Statistic<"recovered", "recovered", "Rotary embeddings recovered">];
}

def RecoverAttentionPass : Top_Pass<"top-recover-attention"> {
  let summary = "Recover scaled dot-product attention";
  let description = [{
    ```
    softmax(scale * (q k^T) [+ mask]) v    ==> attention
    ```
    The scale may stand on q, on k, on both or on the product; k^T is a transpose or transB.
    Keys and values that repeat heads (expand and reshape of grouped-query attention) are read
    unrepeated: q becomes [B, heads of k, repeats, S, E]. Products with other users stay.
  }];
  let statistics = [
    Statistic<"recovered", "recovered", "Attentions recovered">,
    Statistic<"grouped", "grouped", "Attentions whose repeated keys and values were removed">,
  ];
}

def SinkTransposesPass : Top_Pass<"top-sink-transposes"> {
  let summary = "Cancel transposes and reshapes, moving them down where they can meet";
  let description = [{
    ```
    transpose(transpose(x))                    ==> one transpose, or x
    reshape(reshape(x))                        ==> one reshape, or x
    transpose that only moves dims of size 1   ==> reshape
    f(transpose(x), transpose(y), constant)    ==> transpose(f(x, y, constant'))
    matmul(x, transpose(y))                    ==> matmul {transB}
    ```
    f: elementwise, concat, slice, pad, reduce, and softmax before another transpose. A transpose
    moves only if at least one disappears from above, so their number never grows. Does not move
    transposes up, nor over ops with a layout of their own (conv, pool, resize).
  }];
  let statistics = [
    Statistic<"moved", "moved", "Ops a transpose moved over">,
    Statistic<"cancelled", "cancelled", "Transposes and reshapes merged, removed or absorbed">,
  ];
}

def CsePass : Top_Pass<"top-cse"> {
  let summary = "Merge ops that compute the same";
  let description = [{
    Before: ops with equal operands, attributes and types; constants and weights with equal bytes.
    After: the first of them (with the names of all). Names do not count: mlir's cse keeps ops
    apart that differ in `top.outputs`. Does not merge ops with regions.
  }];
  let statistics = [
    Statistic<"merged", "merged", "Ops merged">,
    Statistic<"mergedBytes", "merged-bytes", "Bytes of weights merged">,
  ];
}

def WidenFloatsPass : Top_Pass<"top-widen-floats"> {
  let summary = "Compute f16 and bf16 models in f32";
  let description = [{
    Before: values of type f16 or bf16.
    After: f32 values; constants are converted, casts stand at the network's inputs and outputs,
    whose types stay. A cast of the model to f16 or bf16 still rounds; only the rounding of what
    ops compute vanishes, as in C where FLT_EVAL_METHOD is 1. This is what precision F32 means on
    a target: f32 kernels are fast everywhere, and results only get closer to the exact ones.
  }];
  let statistics = [
    Statistic<"widened", "widened", "Values that became f32">,
  ];
}

def DcePass : Top_Pass<"top-dce"> {
  let summary = "Remove dead ops and dead results";
  let description = [{
    Before: ops without use; results of if and scanned results of loop without use.
    After: without them. Inputs of the network stay, used or not: they are its interface.
  }];
  let statistics = [
    Statistic<"erased", "erased", "Ops erased">,
    Statistic<"erasedResults", "erased-results", "Results of if and loop erased">,
  ];
}

#endif // TOP_PASSES
