//===- Passes.td - Layouts and packed weights of x86 -----------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef X86_TRANSFORMS_PASSES
#define X86_TRANSFORMS_PASSES

include "mlir/Pass/PassBase.td"

def SplitPhasesPass : Pass<"x86-split-phases", "::mlir::func::FuncOp"> {
  let summary = "Give each phase of a transposed convolution a convolution of its own";
  let description = [{
    Before: all tensors row-major; a transposed convolution is one whose channels are those of all phases, with zeros for the taps that a phase
    lacks, and a copy that puts phases between each other. After: of such a convolution with constant weights, or any other that a copy alone
    reads by ranges of channels, each range is a convolution of its own taps at the positions that are read, where that leaves at most 0.8
    of the work. Its epilogue and padding are the same.

    Leaves alone groups, strides, dilations, scales, and epilogue operands that are neither constants by channel nor one value.
  }];
  let dependentDialects = ["::tessera::device::DeviceDialect", "::tessera::top::TopDialect"];
  let statistics = [Statistic<"numSplit", "split", "Convolutions split by phases">];
}

def FlattenVolumesPass : Pass<"x86-flatten-volumes", "::mlir::func::FuncOp"> {
  let summary = "Make 2-D convolutions and pools of those of volumes";
  let description = [{
    Before: all tensors row-major, weights in logical order. After: a convolution of [N, C, D, H, W] with constant weights is one of images.
    Where its kernel has one row and one column the depth becomes the height of [N, C, D, H * W], the same bytes; else a result's frames, N * OD
    images, have the input channels of all taps along the depth (a `device.copy`, and one back). A maximum over volumes whose windows
    overlap along the depth, two of them at least everywhere, is one over frames, then one along the depth. Integers give the same bits; sums of floats have another order.

    Leaves alone depthwise kernels of several taps along the depth, means, epilogues whose operands are neither the result's nor by channel.
  }];
  let dependentDialects = ["::tessera::device::DeviceDialect", "::tessera::top::TopDialect"];
  let statistics = [Statistic<"numFlattened", "flattened", "Ops on volumes made ops on images">];
}

def ConvToMatMulPass : Pass<"x86-conv-to-matmul", "::mlir::func::FuncOp"> {
  let summary = "Make matrix products of convolutions whose weights are no constants";
  let description = [{
    Before: all tensors row-major. After: a 2-D convolution of floats whose weights are computed or given at run time is a product of them with
    what the windows see (a `device.copy`; of one tap that sees every position, the input itself), for the kernel packs the right side of a
    product as it goes. The bias is added in the epilogue. Depthwise ones stay.
  }];
  let dependentDialects = ["::tessera::device::DeviceDialect", "::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numReplaced", "replaced", "Convolutions made matrix products">];
}

def HoistInputsPass : Pass<"x86-hoist-inputs", "::mlir::func::FuncOp"> {
  let summary = "Multiply the inputs of a recurrent op for all steps at once";
  let description = [{
    Before: all tensors row-major. After: a recurrent op whose weights and biases are constant reads what its inputs add to the gates, the sums
    of one matrix product over all steps and sequences (f32), biases of the state included but for that of a GRU's candidate where the reset
    gate multiplies it. What is left to each step is the product of state and weights, which x86-pack-weights packs.

    Leaves alone ops whose weights come at run time and, of a chip without fused products, weights of 16 bits and functions that are exact.
  }];
  let options = [Option<"vectorBytes", "vector-bytes", "int64_t", "64", "Bytes of a vector register of the chip: 16, 32 or 64">];
  let dependentDialects = ["::tessera::device::DeviceDialect", "::tessera::top::TopDialect"];
  let statistics = [Statistic<"numHoisted", "hoisted", "Recurrent ops whose inputs are multiplied before">];
}

def NarrowAttentionPass : Pass<"x86-narrow-attention", "::mlir::func::FuncOp"> {
  let summary = "Round to bf16 what attention multiplies, where its result is rounded so";
  let description = [{
    Before: attention of f32, the result of which a map alone reads that rounds it to bf16. After: its q, k and v are bf16, whose products the
    chip sums in pairs; the kernel rounds e^(score - maximum) as well, and sums and softmax stay f32 (docs/numerics.md). Rounded is what makes
    them, where attention alone reads it.

    Leaves alone attention of integers, of an odd depth, and functions that are exact.
  }];
  let dependentDialects = ["::tessera::device::DeviceDialect", "::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numNarrow", "narrow", "Attentions made of bf16">];
}

def AssignLayoutsPass : Pass<"x86-assign-layouts", "::mlir::func::FuncOp"> {
  let summary = "Choose channel-blocked or row-major per tensor and an algorithm per convolution";
  let description = [{
    Before: all tensors row-major. After: convolutions that the chip has a fast kernel for carry its `x86.algorithm` and write channel blocks of 16; pools, maps, resizes, spatial reductions and channel concatenations
    between them are blocked too; everything else, the function's arguments and its results are row-major. Where a
    consumer wants the other layout there is one identity `device.copy` (or a `device.reshape` where the bytes agree)
    per tensor. Grouped convolutions whose groups are no whole blocks become convolutions with fewer, wider groups.
    A first convolution over few channels reads its row-major input as it is. Weights stay as they are
    (x86-pack-weights).

    Does not touch convolutions of volumes (x86-flatten-volumes) or types other than f32, i8 and ui8.
  }];
  let options = [
    Option<"vectorBytes", "vector-bytes", "int64_t", "64", "Bytes of a vector register of the chip: 16, 32 or 64">,
    Option<"bf16Dots", "bf16-dots", "bool", "false", "The chip multiplies bf16 and sums two products in f32">,
    Option<"amx", "amx", "bool", "false", "The chip multiplies tiles of bytes and of bf16">,
    Option<"winograd", "winograd", "bool", "true", "Allow Winograd for 3x3 convolutions where it is faster">,
  ];
  let dependentDialects = ["::tessera::device::DeviceDialect", "::tessera::x86::X86Dialect"];
  let statistics = [Statistic<"numCopies", "layout-copies", "Layout changes inserted">,
                    Statistic<"numBlocked", "blocked-tensors", "Results made channel-blocked">];
}

def VerifyKernelLayoutsPass : Pass<"x86-verify-kernel-layouts", "::mlir::func::FuncOp"> {
  let summary = "Check that tensors lie as the kernels of the chosen algorithms want them";
  let description = [{
    Before and after: what x86-assign-layouts makes, unchanged. Beyond device-verify-layouts: reports blocks of another size than
    16, convolutions that write blocks without an algorithm or rows by one, and algorithms whose kernels read blocks alone beside a
    row-major operand.
  }];
}

def PackWeightsPass : Pass<"x86-pack-weights", "::mlir::func::FuncOp"> {
  let summary = "Put constant weights into the order their kernels read";
  let description = [{
    Before: convolutions carry an algorithm, weights lie in logical order. After: constant weights of these convolutions and
    constant right sides of matrix products lie as `packing = #x86.packing<...>` of their op says, which takes the place of
    the algorithm; the logical ones are dropped from the module. A convolution whose weights are no constant loses its algorithm.
    8-bit weights of a chip with `byte-dots` are multiplied with unsigned bytes: where x is signed the kernel multiplies
    x + 128, and the packed op's bias is lowered by 128 * sum(w).
  }];
  let options = [
    Option<"vectorBytes", "vector-bytes", "int64_t", "64", "Bytes of a vector register of the chip: 16, 32 or 64">,
    Option<"byteDots", "byte-dots", "bool", "false", "The chip multiplies unsigned by signed bytes and sums four products">,
    Option<"bf16Dots", "bf16-dots", "bool", "false", "The chip multiplies bf16 and sums two products in f32">,
    Option<"amx", "amx", "bool", "false", "The chip multiplies tiles of bytes and of bf16">,
  ];
  let dependentDialects = ["::tessera::device::DeviceDialect", "::tessera::x86::X86Dialect", "::tessera::top::TopDialect"];
  let statistics = [Statistic<"numPacked", "packed-weights", "Weights packed">];
}

def VerifyPackingPass : Pass<"x86-verify-packing", "::mlir::func::FuncOp"> {
  let summary = "Check that weights are in the order the chosen algorithms read";
  let description = [{
    Before and after: what x86-pack-weights makes, unchanged. Reports convolutions that write channel blocks
    without packed weights or the other way round, packed weights that are no constants, and algorithms that nobody packed for.
    That a packing fits its op, in size and otherwise, the ops' own verifiers check.
  }];
}

#endif // X86_TRANSFORMS_PASSES
