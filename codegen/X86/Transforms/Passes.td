//===- Passes.td - Layouts and packed weights of x86 -------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef X86_TRANSFORMS_PASSES
#define X86_TRANSFORMS_PASSES

include "mlir/Pass/PassBase.td"

def SplitPhasesPass : Pass<"x86-split-phases", "::mlir::func::FuncOp"> {
  let summary = "Compute each phase of a transposed convolution by a separate convolution";
  let description = [{
    Before: all tensors row-major. A transposed convolution is a convolution whose channels are those of all phases,
    with zero weights for the taps that a phase does not use, and a copy that interleaves the phases. After: each range
    of channels that the copy reads is a separate convolution, with only the taps that are not zero and only the
    positions that are read. Its epilogue and padding are unchanged.

    Applies to any convolution with constant weights whose only user is a copy that reads ranges of channels, if the
    parts have at most 0.8 of the work. Does not apply to groups, strides, dilations, scales, or epilogue operands that
    are neither constants by channel nor a single value.
  }];
  let dependentDialects = ["::tessera::device::DeviceDialect", "::tessera::top::TopDialect"];
  let statistics = [Statistic<"numSplit", "split", "Convolutions split by phases">];
}

def FlattenVolumesPass : Pass<"x86-flatten-volumes", "::mlir::func::FuncOp"> {
  let summary = "Rewrite convolutions and pools of volumes as 2-D ones";
  let description = [{
    Before: all tensors row-major, weights in logical order. After: a convolution of [N, C, D, H, W] with constant
    weights is a 2-D one. If its kernel has one row and one column, the depth becomes the height of [N, C, D, H * W],
    which is the same bytes. Otherwise it is a convolution of N * OD images, one per frame of the result, whose input
    channels are those of all taps along the depth; a `device.copy` gathers them, and another one restores the order of
    the result. A maximum over volumes becomes a maximum over frames and then one along the depth, if at least two
    windows along the depth share each frame. Integer results keep their bits; float sums are added in another order.

    Does not apply to depthwise kernels with several taps along the depth, to means, or to epilogue operands that have
    neither the result's shape nor one value per channel.
  }];
  let dependentDialects = ["::tessera::device::DeviceDialect", "::tessera::top::TopDialect"];
  let statistics = [Statistic<"numFlattened", "flattened", "Ops on volumes made ops on images">];
}

def ConvToMatMulPass : Pass<"x86-conv-to-matmul", "::mlir::func::FuncOp"> {
  let summary = "Rewrite convolutions with non-constant weights as matmuls";
  let description = [{
    Before: all tensors row-major. After: a 2-D convolution of floats whose weights are known only at run time is a
    matmul of the weights and the windows of the input, because the matmul kernel packs its right side at run time. A
    `device.copy` gathers the windows; a kernel of one tap that reads every position uses the input itself. The epilogue
    adds the bias. Depthwise convolutions are unchanged.
  }];
  let dependentDialects = ["::tessera::device::DeviceDialect", "::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numReplaced", "replaced", "Convolutions made matrix products">];
}

def HoistInputsPass : Pass<"x86-hoist-inputs", "::mlir::func::FuncOp"> {
  let summary = "Multiply the inputs of a recurrent op for all steps at once";
  let description = [{
    Before: all tensors row-major. After: a recurrent op with constant weights and biases reads the contributions of its
    inputs to the gates, which one f32 matmul computes for all steps and sequences. They include the biases of the
    state, except the candidate's bias in a GRU whose reset gate multiplies it. Each step then multiplies only the state
    by its weights, which x86-pack-weights packs.

    Does not apply to weights known only at run time. On a chip without FMA, does not apply to 16-bit weights and exact
    functions.
  }];
  let options = [Option<"vectorBytes", "vector-bytes", "int64_t", "64", "Bytes of a vector register of the chip: 16, 32 or 64">];
  let dependentDialects = ["::tessera::device::DeviceDialect", "::tessera::top::TopDialect"];
  let statistics = [Statistic<"numHoisted", "hoisted", "Recurrent ops whose inputs are multiplied before">];
}

def ReadCachesPass : Pass<"x86-read-caches", "::mlir::func::FuncOp"> {
  let summary = "Make attention read caches of bf16 in place";
  let description = [{
    Before: f32 attention whose k and v are states of bf16 that grow, converted to f32 by a `device.map`. After: its k and
    v are the states themselves, and `keys` is the number of rows in use.

    Does not apply to exact functions.
  }];
  let dependentDialects = ["::tessera::device::DeviceDialect"];
  let statistics = [Statistic<"numInPlace", "in-place", "Attentions that read caches in place">];
}

def NarrowAttentionPass : Pass<"x86-narrow-attention", "::mlir::func::FuncOp"> {
  let summary = "Round the operands of attention to bf16 if its result is rounded to bf16";
  let description = [{
    Before: f32 attention whose only user is a map that rounds its result to bf16. After: its q, k and v are bf16, which
    the chip multiplies and sums in pairs. The kernel also rounds e^(score - maximum) to bf16; sums and softmax stay f32
    (docs/numerics.md). If attention is the only user of an operand, the op that computes the operand rounds it.

    Does not apply to integer attention, odd depths, and exact functions.
  }];
  let dependentDialects = ["::tessera::device::DeviceDialect", "::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numNarrow", "narrow", "Attentions converted to bf16">];
}

def AssignLayoutsPass : Pass<"x86-assign-layouts", "::mlir::func::FuncOp"> {
  let summary = "Choose a layout per tensor and an algorithm per convolution";
  let description = [{
    Before: all tensors row-major. After: convolutions for which the chip has a fast kernel carry its `x86.algorithm`
    and write channel blocks of 16. Pools, maps, resizes, spatial reductions and channel concatenations between them are
    blocked too; everything else, including the function's arguments and results, is row-major. If a consumer requires
    the other layout, there is one identity `device.copy` per tensor, or a `device.reshape` if the bytes are the same.
    Grouped convolutions whose groups are not whole blocks become convolutions with fewer, wider groups. A first
    convolution over few channels reads its row-major input. Weights are unchanged (see x86-pack-weights).

    Does not change convolutions of volumes (see x86-flatten-volumes) or types other than f32, f16, bf16, i8, ui8 and
    i16.
  }];
  let options = [
    Option<"vectorBytes", "vector-bytes", "int64_t", "64", "Bytes of a vector register of the chip: 16, 32 or 64">,
    Option<"bf16Dots", "bf16-dots", "bool", "false", "The chip has dot products of two bf16, summed in f32">,
    Option<"amx", "amx", "bool", "false", "The chip has AMX tiles of bytes and of bf16">,
    Option<"winograd", "winograd", "bool", "true", "Allow Winograd for 3x3 convolutions where it is faster">,
  ];
  let dependentDialects = ["::tessera::device::DeviceDialect", "::tessera::x86::X86Dialect"];
  let statistics = [Statistic<"numCopies", "layout-copies", "Layout changes inserted">,
                    Statistic<"numBlocked", "blocked-tensors", "Results that became channel-blocked">];
}

def VerifyKernelLayoutsPass : Pass<"x86-verify-kernel-layouts", "::mlir::func::FuncOp"> {
  let summary = "Verify that tensors have the layouts that the chosen kernels require";
  let description = [{
    Before and after: the form that x86-assign-layouts produces, unchanged. In addition to device-verify-layouts,
    reports channel blocks whose size is not 16, convolutions that write blocks without an algorithm or row-major
    results with one, and algorithms that read blocks only but have a row-major operand.
  }];
}

def PackBlocksPass : Pass<"x86-pack-blocks", "::mlir::func::FuncOp"> {
  let summary = "Pack the constant weights of block matmuls in the order that their kernel reads";
  let description = [{
    Before: block matmuls have their weights, scales and mins in logical order. After: those with constants and blocks
    of a multiple of 16 up to 256 have one packed constant in the order that `packing = #x86.block_packing<...>` states.
    Weights from 0 to 15 or from -8 to 7 take 4 bits, and scales that are f16 numbers 16 bits.
  }];
  let dependentDialects = ["::tessera::top::TopDialect", "::tessera::x86::X86Dialect"];
}

def PackWeightsPass : Pass<"x86-pack-weights", "::mlir::func::FuncOp"> {
  let summary = "Pack constant weights in the order that their kernels read";
  let description = [{
    Before: convolutions carry an algorithm, weights are in logical order. After: constant weights of these convolutions
    and constant right sides of matmuls are packed in the order that their op's `packing = #x86.packing<...>` states.
    The packing replaces the algorithm; the logical weights are dropped from the module. A convolution whose weights are
    not constant loses its algorithm.
    A chip with `byte-dots` multiplies 8-bit weights by unsigned bytes. If x is signed, the kernel multiplies x + 128,
    and the packed op's bias is lowered by 128 * sum(w).
  }];
  let options = [
    Option<"vectorBytes", "vector-bytes", "int64_t", "64", "Bytes of a vector register of the chip: 16, 32 or 64">,
    Option<"byteDots", "byte-dots", "bool", "false", "The chip has dot products of unsigned and signed bytes">,
    Option<"bf16Dots", "bf16-dots", "bool", "false", "The chip has dot products of two bf16, summed in f32">,
    Option<"amx", "amx", "bool", "false", "The chip has AMX tiles of bytes and of bf16">,
  ];
  let dependentDialects = ["::tessera::device::DeviceDialect", "::tessera::x86::X86Dialect", "::tessera::top::TopDialect"];
  let statistics = [Statistic<"numPacked", "packed-weights", "Weights packed">];
}

def VerifyPackingPass : Pass<"x86-verify-packing", "::mlir::func::FuncOp"> {
  let summary = "Verify that weights are packed in the order that the chosen kernels read";
  let description = [{
    Before and after: the form that x86-pack-weights produces, unchanged. Reports convolutions that write channel blocks
    without packed weights or row-major results with them, packed weights that are not constant, and algorithms whose
    weights were not packed. The ops' own verifiers check that a packing fits its op.
  }];
}

#endif // X86_TRANSFORMS_PASSES
