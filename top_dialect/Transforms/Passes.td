//===- Passes.td - Graph optimisation on Top -------------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TOP_PASSES
#define TOP_PASSES

include "mlir/Pass/PassBase.td"

// All passes run on the module and visit each op once, in program order, so their cost is linear in the number of ops.
// None changes a result beyond the re-association of floating-point sums and products. Node names are preserved: an op
// that replaces several ops has their fused location.
class Top_Pass<string flag> : Pass<flag, "::mlir::ModuleOp"> {
  let dependentDialects = ["::tessera::top::TopDialect", "::mlir::func::FuncDialect"];
}

def FoldConstantsPass : Top_Pass<"top-fold-constants"> {
  let summary = "Evaluate constant ops, refine shapes and drop no-ops";
  let description = [{
    Before: ops on constants only (such as the shape arithmetic of exporters), ops on or with results of tensors without
    elements, result types that are less static than their operands allow, and ops that return an operand.
    After: the values as constants, the inferred types, and the operand.
    ```
    %s = top.shape %x {start = 0, end = 2} : (tensor<4x8xf32>) -> tensor<2xi64>     ==> dense<[4, 8]>
    %y = top.mul %x, %one : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>       ==> %x
    %r = top.if %true { yield %a } else { yield %b }                                ==> %a
    ```
    The reference evaluation of the op computes the values. Ops are not folded if the result grows by more than
    `max-growth` or the work exceeds `max-work`: a broadcast weight, for example, is better broadcast at run time.
    Equal constants are merged by top-cse, not here.
  }];
  let options = [
    Option<"maxGrowth", "max-growth", "int64_t", /*default=*/"1 << 21",
           "Bytes by which a folded result may exceed its constant operands">,
    Option<"maxFill", "max-fill", "int64_t", /*default=*/"int64_t(1) << 30",
           "Bytes of a folded constant_of_shape, which replaces a weight">,
    Option<"maxWork", "max-work", "int64_t", /*default=*/"1 << 28",
           "Multiplications that folding an op may take">,
  ];
  let statistics = [
    Statistic<"evaluated", "evaluated", "Ops replaced by the constant they compute">,
    Statistic<"simplified", "simplified", "Ops replaced by an operand or a simpler op">,
    Statistic<"refined", "refined", "Ops whose result type became more static">,
  ];
}

def BindDimsPass : Top_Pass<"top-bind-dims"> {
  let summary = "Replace symbols of sizes by numbers";
  let description = [{
    Replaces each symbol that `dims` names in all types and lists of sizes. With all symbols bound, the module is the
    static one. A name that is no symbol of an argument, and a value outside the symbol's range, are errors.
    ```
    dims=batch=4:  tensor<?x3xf32, #top.dims<[batch[1:8], 3]>>   ==> tensor<4x3xf32>
    ```
  }];
  let options = [ListOption<"dims", "dims", "std::string", "NAME=SIZE of each symbol to bind">];
}

def FoldBatchNormPass : Top_Pass<"top-fold-batch-norm"> {
  let summary = "Fold batch_norm and per-channel scales into weights";
  let description = [{
    Before: conv, conv_transpose or matmul with constant weights, followed by a chain of batch_norm and of mul, div,
    add and sub with per-channel constants. Each op is the only user of the previous one.
    After: one op with new weights and bias, computed in double and rounded once.
    ```
    conv(x, w) -> batch_norm -> mul [C,1,1] -> add [C,1,1]   ==> conv(x, w', bias')
    batch_norm (after anything else)                          ==> mul [C,1,1] -> add [C,1,1]
    ```
    Chains that only add are left to top-fuse-bias. A scale is not moved over other ops.
  }];
  let statistics = [
    Statistic<"folded", "folded", "Ops folded into weights">,
    Statistic<"affine", "affine", "batch_norm chains that became mul and add">,
  ];
}

def FoldPadPass : Top_Pass<"top-fold-pad"> {
  let summary = "Fold constant padding into conv and pool";
  let description = [{
    Before: top.pad of spatial dims with a constant, read by a conv, avg_pool or max_pool.
    After: the reader with larger pads.
    ```
    pad(x, 0) -> conv                        ==> conv with pads
    pad(x, 0) -> avg_pool                    ==> avg_pool with pads and countIncludePad
    pad(x, -inf) -> max_pool                 ==> max_pool with pads
    ```
    Finite padding is folded into a max_pool only if it cannot be the maximum: the value is 0 and the input is not
    negative. Negative, reflected and channel padding are not folded, nor are pads of pools with ceilMode.
  }];
  let statistics = [Statistic<"folded", "folded", "Ops into which a pad was folded">];
}

def FuseBiasPass : Top_Pass<"top-fuse-bias"> {
  let summary = "Fuse the addition of a constant vector into the bias";
  let description = [{
    ```
    matmul(x, w) -> add [N]       ==> matmul(x, w, bias)
    conv(x, w, b) -> sub [C,1,1]  ==> conv(x, w, b')
    ```
    The weights must be constant (otherwise the sum may be an attention mask), and the addition must be the only user.
    Residual additions are not fused: they become epilogues on the device level.
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
    The activation must be the only user. Other activations become epilogues on the device level.
  }];
  let statistics = [Statistic<"fused", "fused", "Activations fused">];
}

def RecoverActivationsPass : Top_Pass<"top-recover-activations"> {
  let summary = "Recover GELU, SiLU, HardSwish, Mish and their parts";
  let description = [{
    Formulas are matched as mathematics, independently of the order and association of their parts.
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
    Constants must agree within single precision. One function is never approximated by another.
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
    The reduction must be along one axis.
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
    The square may be a power, a product, or a product of two equal differences; the root may be sqrt, rsqrt, reciprocal
    or a power. Only trailing dims are supported; scale and bias must have exactly those dims.
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
    `join` is a concatenation of halves, or a stacking in a new last dim. Only exact matches are replaced.
  }];
  let statistics = [Statistic<"recovered", "recovered", "Rotary embeddings recovered">];
}

def RecoverAttentionPass : Top_Pass<"top-recover-attention"> {
  let summary = "Recover scaled dot-product attention";
  let description = [{
    ```
    softmax(scale * (q k^T) [+ mask]) v    ==> attention
    ```
    The scale may be applied to q, to k, to both or to the scores; k^T is a transpose or transB. Keys and values that
    repeat heads (expand and reshape of grouped-query attention) are read without the repetition: q becomes [B, heads
    of k, repeats, S, E]. Matmuls with other users are not replaced.
  }];
  let statistics = [
    Statistic<"recovered", "recovered", "Attentions recovered">,
    Statistic<"grouped", "grouped", "Attentions whose repeated keys and values were removed">,
  ];
}

def SinkTransposesPass : Top_Pass<"top-sink-transposes"> {
  let summary = "Cancel transposes and reshapes, moving transposes down to where they meet";
  let description = [{
    ```
    transpose(transpose(x))                    ==> one transpose, or x
    reshape(reshape(x))                        ==> one reshape, or x
    transpose that only moves dims of size 1   ==> reshape
    f(transpose(x), transpose(y), constant)    ==> transpose(f(x, y, constant'))
    matmul(x, transpose(y))                    ==> matmul {transB}
    ```
    f is elementwise, concat, slice, pad, reduce, or a softmax before another transpose. A transpose moves only if at
    least one disappears above, so their number never grows. Transposes are not moved up, nor over ops with their own
    layout (conv, pool, resize).
  }];
  let statistics = [
    Statistic<"moved", "moved", "Ops over which a transpose moved">,
    Statistic<"cancelled", "cancelled", "Transposes and reshapes merged, removed or absorbed">,
  ];
}

def CsePass : Top_Pass<"top-cse"> {
  let summary = "Merge ops that compute the same values";
  let description = [{
    Before: ops with equal operands, attributes and types; constants and weights with equal bytes.
    After: the first of them, with the names of all. Names are ignored, whereas mlir's cse does not merge ops that
    differ in `top.outputs`. Ops with regions are not merged.
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
    After: f32 values. Constants are converted. Inputs and outputs of the network keep their types and are cast. A
    cast of the model to f16 or bf16 still rounds; only the rounding of results of ops vanishes, as in C with
    FLT_EVAL_METHOD 1. This is the meaning of precision F32 on a target: f32 kernels are fast everywhere, and results
    only get closer to the exact ones.
  }];
  let statistics = [
    Statistic<"widened", "widened", "Values widened to f32">,
  ];
}

def DcePass : Top_Pass<"top-dce"> {
  let summary = "Remove dead ops and dead results";
  let description = [{
    Before: unused ops; unused results of if, and unused scanned results of loop.
    After: these are erased. Inputs of the network stay, used or not: they are its interface.
  }];
  let statistics = [
    Statistic<"erased", "erased", "Ops erased">,
    Statistic<"erasedResults", "erased-results", "Results of if and loop erased">,
  ];
}

def OutlineRegionsPass : Top_Pass<"top-outline-regions"> {
  let summary = "Move the ops around and within run-time control flow to functions";
  let description = [{
    Before: functions with top.if or top.loop.
    After: each run of ops between two of these is a private function, in the function's block and in the regions. What
    remains is calls, control flow and constants. Captured and carried values are arguments of the new functions, so
    every later pass sees functions of one block without regions.
    ```
    %r = top.if %c { %a = f(%x) yield %a } else { yield %x }
        ==> %r = top.if %c { %a = call @"if.then"(%x) yield %a } else { yield %x }
    ```
    Tensors that a loop stacks become carried values in which each pass writes a slice. Functions without control flow
    do not change.
  }];
  let statistics = [Statistic<"outlined", "outlined", "Functions created">];
}

#endif // TOP_PASSES
