//===- Passes.td - Passes of the NPU's back end ----------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef NPU_PASSES
#define NPU_PASSES

include "mlir/Pass/PassBase.td"

// Base class of passes that decide for one chip. The ops of a function have addresses (device-assign-addresses) before
// all of these passes except npu-block-rows and npu-early-results.
class Npu_ChipPass<string mnemonic> : Pass<mnemonic, "::mlir::func::FuncOp"> {
  let options = [
    Option<"chipName", "chip", "std::string", "\"npu-base\"", "Name of a built-in chip, or path of a chip description">,
  ];
  let dependentDialects = ["::tessera::npu::NpuDialect"];
}

def BlockRowsPass : Npu_ChipPass<"npu-block-rows"> {
  let summary = "Turn blocks of rows into channels for convolutions with few output channels";
  let description = [{
    Before: fused device ops without addresses. After: chains of integer convolutions by constant 8-bit weights, each
    the only reader of the one before, whose results have fewer channels than the chip has lanes, hold blocks of B rows
    as channels if that is estimated to be faster: channel o * B + j of row r is channel o of row r * B + j. Weights are
    rewritten, with zeros where a row of a block does not see a row of the operand; bias, factors and epilogue are
    repeated for each row of a block. The last result of a chain keeps its rows or, if it is a result of the function, a
    copy restores their order. All values stay bit-identical.

    ```mlir
    %t = device.conv %x, %w {pads = [1, 1, 1, 1], strides = [2, 2]} : (tensor<1x3x64x64xi8>, tensor<4x3x3x3xi8>) -> tensor<1x4x32x32xi8>
    %y = device.conv %t, %v {pads = [1, 1, 1, 1], strides = [2, 2]} : (tensor<1x4x32x32xi8>, tensor<8x4x3x3xi8>) -> tensor<1x8x16x16xi8>
    // becomes
    %t = device.conv %x, %a {pads = [1, 1, 0, 1], strides = [4, 2]} : (tensor<1x3x64x64xi8>, tensor<8x3x5x3xi8>) -> tensor<1x8x16x32xi8>
    %y = device.conv %t, %b {pads = [1, 1, 0, 1], strides = [1, 2]} : (tensor<1x8x16x32xi8>, tensor<8x8x2x3xi8>) -> tensor<1x8x16x16xi8>
    ```
  }];
  let statistics = [Statistic<"numBlocked", "blocked-convolutions", "Convolutions whose results are blocks of rows">];
}

def EarlyResultsPass : Npu_ChipPass<"npu-early-results"> {
  let summary = "Compute large results before ops that they do not depend on";
  let description = [{
    Before: device ops without addresses, in any order. After: for each value that is a result, or a part of a result
    assembled by a copy, and that takes the chip long to store, the ops that contribute to this value alone stand as
    early as their operands allow, those of the largest value first. The remaining ops are then computed while these
    values leave the chip.

    ```mlir
    %t = device.map(%x) ...
    %u = device.map(%t) ...
    %large = device.map(%x) ...
    return %u, %large
    // becomes
    %large = device.map(%x) ...
    %t = device.map(%x) ...
    %u = device.map(%t) ...
    return %u, %large
    ```
  }];
  let statistics = [Statistic<"numEarly", "early-results", "Values that are computed earlier">];
}

def FuseCopiesPass : Npu_ChipPass<"npu-fuse-copies"> {
  let summary = "Fuse copies and maps into norms, attention and matmuls";
  let description = [{
    Before: device ops with addresses. After: `npu.fused` on copies and maps that another op executes as part of its own
    work. Norms, attention and matmuls by constant weights process rows. Transposing rows before them, quantising their
    rows and transposing these back would each pass through off-chip memory.

    A copy is fused into its readers if all of them can read its source as it lies, without wasting bursts. A map is
    fused into the norm or attention in front if it is the only reader of the result and its other operands are
    available. Copies are fused into the op that computes their operand if rows are evenly spaced in them: a norm stores
    any number of copies, other ops store one, which replaces their result. Ops keep their position. Earlier fusion
    decisions are replaced; an earlier schedule is erased, because its layers change.

    ```mlir
    %t = device.copy %x {pieces = [...]} : (tensor<1x24x9x8xf32>) -> tensor<1x9x8x24xf32>
    %n = device.norm %t {...} : (tensor<1x9x8x24xf32>) -> tensor<1x9x8x24xf32>
    // becomes
    %t = device.copy %x {npu.fused = #npu.fused<readers>, pieces = [...]} : (tensor<1x24x9x8xf32>) -> tensor<1x9x8x24xf32>
    %n = device.norm %t {...} : (tensor<1x9x8x24xf32>) -> tensor<1x9x8x24xf32>
    ```
  }];
  let statistics = [Statistic<"numCopies", "fused-copies", "Copies executed by other ops">,
                    Statistic<"numMaps", "fused-maps", "Maps executed by other ops">];
}

def ChooseFormsPass : Npu_ChipPass<"npu-choose-forms"> {
  let summary = "Choose the form in which ops run on the chip";
  let description = [{
    Before: `npu.fused` is decided. After: `npu.taps` on convolutions, `npu.attention` on attentions and `npu.row_lanes`
    on matmuls, chosen by estimates of each op's model (EmissionInterface::chooseForm). An op that the chip does not
    support gets no attribute; emission reports the reason. A map in front of a convolution of few channels, such as the
    quantisation of a picture, gets `npu.fused` if computing it in the convolution is estimated to take less time
    (npu-schedule also tries the alternative). Earlier choices are replaced.

    ```mlir
    %y = device.conv %x, %w {...} : (tensor<1x3x224x224xi8>, tensor<32x3x3x3xi8>) -> tensor<1x32x112x112xi8>
    // becomes
    %y = device.conv %x, %w {npu.taps = [#npu.taps<fetched = all_loaded, resident = all_moved>], ...} : ...
    ```
  }];
}

def ChooseDirectStoresPass : Npu_ChipPass<"npu-choose-direct-stores"> {
  let summary = "Store results of the model directly from the ops that compute them";
  let description = [{
    Before: copies that only write results of the model (pixel shuffle, channels last, a concatenation of heads). After:
    `npu.pieces` on these copies. The convolutions and pools that compute a piece's source store it directly, in the
    order of the result, if that takes about as long as storing it unchanged; otherwise the piece is moved as soon as
    its source is complete. Pieces that are short parts of the same rows are moved together with the copy. Earlier
    choices are replaced.

    ```mlir
    %y = device.copy %a {pieces = [...], device.memories = array<i64: 1>, ...} : ...
    // becomes
    %y = device.copy %a {npu.pieces = #npu.pieces<direct>, pieces = [...], device.memories = array<i64: 1>, ...} : ...
    ```
  }];
  let statistics = [Statistic<"numDirect", "direct-stores", "Pieces stored by the ops that compute them">];
}

def SchedulePass : Pass<"npu-schedule", "::mlir::func::FuncOp"> {
  let summary = "Decide what stays in local memory, and what runs slice by slice";
  let description = [{
    Before: fused copies, forms and direct stores are chosen. After: `npu.resident` on ops whose results stay in local
    memory, `npu.slices` on ops that run slice by slice, `npu.single_buffered` on ops of which two tiles do not fit at
    once, `npu.effort` on the function.

    The search emits several schedules and keeps the one whose program takes the fewest cycles according to the chip's
    scheduler. If tiles do not fit beside the values that a schedule keeps in local memory, the schedule is changed
    until they do (more slices, fewer resident values, fewer tiles at once), and the changed schedule is written. From
    effort 2 on, maps in front of convolutions of few channels are tried both fused and separate, and `npu.fused` and
    `npu.taps` become those of the faster program. With `plan`, the schedule in that file is followed instead (as in
    `model_deploy --plan`). An earlier schedule is replaced.

    ```mlir
    %y = device.lut %x, %table {device.addresses = array<i64: 0>} : (tensor<1x16x8x8xi8>, tensor<256xi8>) -> tensor<1x16x8x8xi8>
    // becomes
    %y = device.lut %x, %table {device.addresses = array<i64: 0>,
        npu.resident = #npu.resident<layers 0 to 1, bytes = 64, dense = true, stored = false>} : ...
    ```
  }];
  let options = [
    Option<"chipName", "chip", "std::string", "\"npu-base\"", "Name of a built-in chip, or path of a chip description">,
    Option<"effort", "effort", "unsigned", "2", "0: op by op, nothing stays in local memory. 1: one schedule. 2: the best of several. 3: the best one, refined">,
    Option<"plan", "plan", "std::string", "\"\"", "JSON file with the schedule to follow">,
  ];
  let dependentDialects = ["::tessera::npu::NpuDialect"];
}

def EmitStreamPass : Pass<"npu-emit-stream", "::mlir::ModuleOp"> {
  let summary = "Print the commands of scheduled functions";
  let description = [{
    Prints a line for each function (bytes of workspace, bytes and hash of the constants) and one for each command of
    its stream. All decisions are read from the ops, and the IR is not changed. For reading and testing: deployment
    emits the same commands without this pass.
  }];
  let options = [
    Option<"chipName", "chip", "std::string", "\"npu-base\"", "Name of a built-in chip, or path of a chip description">,
    Option<"output", "output", "std::string", "\"-\"", "The file to write">,
  ];
  let dependentDialects = ["::tessera::npu::NpuDialect"];
}

def VerifyDecisionsPass : Npu_ChipPass<"npu-verify-decisions"> {
  let summary = "Verify the NPU's decisions";
  let description = [{
    Checks the `npu.` attributes of a function against each other and against what the chip supports. Does not change
    the IR.
  }];
}

// Passes over programs: from stages of commands to bytes.

def EmitCommandsPass : Pass<"npu-emit-commands", "::mlir::ModuleOp"> {
  let summary = "Turn scheduled functions into programs of the NPU";
  let description = [{
    Before: functions of device ops with a schedule (npu-schedule). After: a staged `npu.program` for each. For reading
    and testing: the program does not contain the constants that it reads; deployment emits the same programs without
    this pass.
  }];
  let options = [
    Option<"chipName", "chip", "std::string", "\"npu-base\"", "Name of a built-in chip, or path of a chip description">,
  ];
  let dependentDialects = ["::tessera::npu::NpuDialect"];
}

def AllocateLocalPass : Pass<"npu-allocate-local", "::tessera::npu::ProgramOp"> {
  let summary = "Assign local addresses to buffers";
  let description = [{
    Before: staged. After: allocated. Buffers that are in use during the same stage do not overlap. Large buffers are
    placed first, each at the lowest address where it fits for as long as it is in use. Fails if a buffer does not fit.
  }];
}

def OrderCommandsPass : Pass<"npu-order-commands", "::tessera::npu::ProgramOp"> {
  let summary = "Order commands and prefetch loads";
  let description = [{
    Before: allocated. After: ordered. Loads of overlapped stages come before the computation of the previous stage.
    With `prefetch`, loads of constants and inputs begin as early as their buffers fit and the DMA has time; the buffers
    may move.
  }];
}

def AssignWaitsPass : Pass<"npu-assign-waits", "::tessera::npu::ProgramOp"> {
  let summary = "Number commands and assign minimal waits";
  let description = [{
    Before: ordered. After: numbered. Whatever the timing of the queues, the result is the same as that of running the
    commands one after another.
  }];
}

def EncodePass : Pass<"npu-encode", "::tessera::npu::ProgramOp"> {
  let summary = "Encode the program as bytes";
  let description = [{
    Before: numbered. After: likewise, with the bytes of the stream as the attribute `code`, 256 per command. For
    reading and testing: deployment encodes without this pass.
  }];
}

#endif // NPU_PASSES
