//===- Passes.td - Passes of the NPU's back end ----------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef NPU_PASSES
#define NPU_PASSES

include "mlir/Pass/PassBase.td"

// Decides for one chip. A function's ops have addresses (device-assign-addresses) before any of these passes but
// npu-block-rows and npu-early-results.
class Npu_ChipPass<string mnemonic> : Pass<mnemonic, "::mlir::func::FuncOp"> {
  let options = [
    Option<"chipName", "chip", "std::string", "\"npu-base\"", "A built-in chip, or the path of a description">,
  ];
  let dependentDialects = ["::tessera::npu::NpuDialect"];
}

def BlockRowsPass : Npu_ChipPass<"npu-block-rows"> {
  let summary = "Give convolutions to few channels blocks of rows as channels";
  let description = [{
    Before: fused device ops without addresses. After: chains of convolutions of integers by constant bytes, each all that reads the
    one before, whose results have fewer channels than the chip has lanes, hold blocks of B rows as channels where that is estimated
    to be faster: channel o * B + j of row r is channel o of row r * B + j. Weights are written anew, with zeros where a row of a block
    does not see a row of the operand; bias, factors and epilogue are those of the channel. The last result of a chain has its rows as
    they were, or, if it is a result of the function, a copy brings them in order. All values stay the same to the bit.

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
  let summary = "Compute large results before what they do not need";
  let description = [{
    Before: device ops without addresses, in any order. After: for each value that is a result, or that a copy puts into a result
    beside others, and whose store takes the chip long, the ops that make it and nothing else stand as early as their operands let
    them, the largest value's first. So the rest is computed while these leave the chip.

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
  let statistics = [Statistic<"numEarly", "early-results", "Values that are made earlier">];
}

def FuseCopiesPass : Npu_ChipPass<"npu-fuse-copies"> {
  let summary = "Let norms, attention and products do the copies and maps around them";
  let description = [{
    Before: device ops with addresses. After: `npu.fused` on copies and maps that another op does on the way. Norms, attention and
    products by constant weights work on rows; what turns rows before them, quantises theirs, and turns these again would pass
    outside memory once more for each step.

    A copy is fused into its readers where all of them can read its source as that lies and no burst is wasted for it; a map
    into the norm or attention in front where it is the only reader and the other operands are there; copies into what makes
    their operand where rows lie evenly in them: a norm stores any number of them, the others one, which is their result then.
    Ops stay where they are. An earlier decision is taken back, and so is a schedule, which is of other layers then.

    ```mlir
    %t = device.copy %x {pieces = [...]} : (tensor<1x24x9x8xf32>) -> tensor<1x9x8x24xf32>
    %n = device.norm %t {...} : (tensor<1x9x8x24xf32>) -> tensor<1x9x8x24xf32>
    // becomes
    %t = device.copy %x {npu.fused = #npu.fused<readers>, pieces = [...]} : (tensor<1x24x9x8xf32>) -> tensor<1x9x8x24xf32>
    %n = device.norm %t {...} : (tensor<1x9x8x24xf32>) -> tensor<1x9x8x24xf32>
    ```
  }];
  let statistics = [Statistic<"numCopies", "fused-copies", "Copies that other ops do">,
                    Statistic<"numMaps", "fused-maps", "Maps that other ops do">];
}

def ChooseFormsPass : Npu_ChipPass<"npu-choose-forms"> {
  let summary = "Decide which of several forms ops take on the chip";
  let description = [{
    Before: `npu.fused` is there. After: `npu.taps` on convolutions, `npu.attention` on attentions, `npu.row_lanes` on products, by estimates that the model of each
    op makes (EmissionInterface::chooseForm). An op that has no form on the chip gets no attribute; whoever emits it says why. A map in
    front of a convolution of few channels, as pictures are quantised by, gets `npu.fused` where it is estimated to take less time as a part of that (npu-schedule tries the other way, too). Earlier
    choices are replaced.

    ```mlir
    %y = device.conv %x, %w {...} : (tensor<1x3x224x224xi8>, tensor<32x3x3x3xi8>) -> tensor<1x32x112x112xi8>
    // becomes
    %y = device.conv %x, %w {npu.taps = [#npu.taps<fetched = all_loaded, resident = all_moved>], ...} : ...
    ```
  }];
}

def ChooseDirectStoresPass : Npu_ChipPass<"npu-choose-direct-stores"> {
  let summary = "Let results leave the chip as they are made";
  let description = [{
    Before: copies that only make results of the model (pixel shuffle, channels last, a concatenation of heads). After: `npu.pieces` on
    them. A piece is stored by the convolutions and pools that make its source, in its own order, where that takes about as long as
    storing it as it is; else it is moved as soon as its source is there. Pieces that are short parts of the same rows leave
    together when the copy's turn comes. Earlier choices are replaced.

    ```mlir
    %y = device.copy %a {pieces = [...], device.memories = array<i64: 1>, ...} : ...
    // becomes
    %y = device.copy %a {npu.pieces = #npu.pieces<direct>, pieces = [...], device.memories = array<i64: 1>, ...} : ...
    ```
  }];
  let statistics = [Statistic<"numDirect", "direct-stores", "Pieces that are stored as they are made">];
}

def SchedulePass : Pass<"npu-schedule", "::mlir::func::FuncOp"> {
  let summary = "Decide what stays in local memory, and what runs slice by slice";
  let description = [{
    Before: fused copies, forms and direct stores are chosen. After: `npu.resident` on the ops whose results stay in local memory, `npu.slices` on those
    that run slice by slice, `npu.single_buffered` where two tiles at once have no room, `npu.effort` on the function.

    Several schedules are emitted, and the one is kept whose program takes the fewest cycles by the chip's own scheduler. Where tiles find
    no room beside what a schedule keeps in local memory, the schedule is changed until they do: more slices, fewer values that
    stay, fewer tiles at once; what is written is what was emitted. From effort 2 on maps in front of convolutions of few channels
    are tried both ways, as a part of these and on their own, and `npu.fused` and `npu.taps` become those of the faster program. With `plan` the schedule in that file is followed (as `model_deploy
    --plan`) instead. An earlier schedule is replaced.

    ```mlir
    %y = device.lut %x, %table {device.addresses = array<i64: 0>} : (tensor<1x16x8x8xi8>, tensor<256xi8>) -> tensor<1x16x8x8xi8>
    // becomes
    %y = device.lut %x, %table {device.addresses = array<i64: 0>,
        npu.resident = #npu.resident<layers 0 to 1, bytes = 64, dense = true, stored = false>} : ...
    ```
  }];
  let options = [
    Option<"chipName", "chip", "std::string", "\"npu-base\"", "A built-in chip, or the path of a description">,
    Option<"effort", "effort", "unsigned", "2", "0: nothing stays. 1: one schedule. 2: the best of several. 3: it is refined">,
    Option<"plan", "plan", "std::string", "\"\"", "A file with the schedule to follow">,
  ];
  let dependentDialects = ["::tessera::npu::NpuDialect"];
}

def EmitStreamPass : Pass<"npu-emit-stream", "::mlir::ModuleOp"> {
  let summary = "Write the commands that scheduled functions become";
  let description = [{
    Writes a line for each function (bytes of workspace, bytes and hash of the constants) and one for each command of its
    stream. Nothing is decided here that the ops say, and nothing is changed. For reading and testing: deployment emits without this
    pass, the same commands.
  }];
  let options = [
    Option<"chipName", "chip", "std::string", "\"npu-base\"", "A built-in chip, or the path of a description">,
    Option<"output", "output", "std::string", "\"-\"", "The file to write">,
  ];
  let dependentDialects = ["::tessera::npu::NpuDialect"];
}

def VerifyDecisionsPass : Npu_ChipPass<"npu-verify-decisions"> {
  let summary = "Check what was decided for the NPU";
  let description = [{
    Checks the `npu.` attributes of a function against each other and against what the chip can do; it changes nothing.
  }];
}

// Passes over programs: from stages of commands to bytes.

def EmitCommandsPass : Pass<"npu-emit-commands", "::mlir::ModuleOp"> {
  let summary = "Turn scheduled functions into programs of the NPU";
  let description = [{
    Before: functions of device ops with a schedule (npu-schedule). After: a staged `npu.program` for each. For reading and testing:
    the constants that a program reads are not part of it; deployment emits without this pass, the same programs.
  }];
  let options = [
    Option<"chipName", "chip", "std::string", "\"npu-base\"", "A built-in chip, or the path of a description">,
  ];
  let dependentDialects = ["::tessera::npu::NpuDialect"];
}

def AllocateLocalPass : Pass<"npu-allocate-local", "::tessera::npu::ProgramOp"> {
  let summary = "Give every buffer an address in local memory";
  let description = [{
    Before: staged. After: allocated; the buffers that are in use during the same stage have no bytes in common. Large
    buffers are placed first, each at the lowest address where it fits for as long as it is in use. Fails where one
    does not.
  }];
}

def OrderCommandsPass : Pass<"npu-order-commands", "::tessera::npu::ProgramOp"> {
  let summary = "Bring commands into the order of the stream, early loads included";
  let description = [{
    Before: allocated. After: ordered. Loads of overlapped stages come before the computation of the stage before;
    with `prefetch`, loads of constants and inputs begin as early as there is room for them and the DMA has time, and
    their buffers may move for that.
  }];
}

def AssignWaitsPass : Pass<"npu-assign-waits", "::tessera::npu::ProgramOp"> {
  let summary = "Number commands and let each wait for as little as needed";
  let description = [{
    Before: ordered. After: numbered; whatever the timing of the queues, the result is that of running the commands
    one after another.
  }];
}

def EncodePass : Pass<"npu-encode", "::tessera::npu::ProgramOp"> {
  let summary = "Write the program as the bytes of its stream";
  let description = [{
    Before: numbered. After: the same, with the stream's bytes as the attribute `code`, 256 of them a command. For
    reading and testing: deployment encodes without this pass.
  }];
}

#endif // NPU_PASSES
