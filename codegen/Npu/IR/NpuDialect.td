//===- NpuDialect.td - What is decided for an NPU --------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef NPU_DIALECT
#define NPU_DIALECT

include "mlir/IR/OpBase.td"

def Npu_Dialect : Dialect {
  let name = "npu";
  let cppNamespace = "::tessera::npu";
  let summary = "Decisions of the NPU's compiler, and the programs it makes";
  let description = [{
    Functions of device ops with addresses become streams of commands in phases. Each phase is a pass (codegen/Npu/Passes.td)
    that writes what it decides on the ops; whoever comes behind reads it there and decides nothing again:

    | attribute | on | says | by |
    |---|---|---|---|
    | `npu.fused` | copy, map | which other op does it on the way | `npu-fuse-copies` |
    | `npu.pieces` | copy | when each piece of a result of the model leaves the chip | `npu-choose-direct-stores` |
    | `npu.taps` | conv | whether taps of the kernel are input channels | `npu-choose-forms` |
    | `npu.attention` | attention | what lanes have, and which unit multiplies | `npu-choose-forms` |
    | `npu.row_lanes` | matmul | lanes have rows of its result, not columns; in how many batches, each of which begins in the first lane | `npu-choose-forms` |
    | `npu.resident` | ops whose results stay in local memory | from which layer to which | `npu-schedule` |
    | `npu.slices` | ops of a slice group | the rows of each slice | `npu-schedule` |
    | `npu.single_buffered` | any | no two tiles of the op are in local memory at once | `npu-schedule` |
    | `npu.kept` | function | what layers make is stored too, each in memory of its own, for people to look at | the user |
    | `npu.effort` | function | the effort of the search, which later phases share | `npu-schedule` |

    Layers are the ops that are neither constants, views nor fused into others, counted from 0 in the order of the function.

    A decided function becomes a `npu.program`, one stream of commands, which goes through four forms:

    | form | holds | by |
    |---|---|---|
    | `staged` | pipeline stages of commands; local memory as buffers without addresses | `npu-emit-commands` |
    | `allocated` | the address of each buffer in every lane, and the stages during which it is in use | `npu-allocate-local` |
    | `ordered` | one list of commands in the order of the stream; loads of constants and inputs begin early | `npu-order-commands` |
    | `numbered` | each command's number in its queue, and the one of the other queue that it waits for | `npu-assign-waits` |

    `npu-encode` writes the last form as bytes. docs/isa.md tells what each command does.
  }];
  let dependentDialects = ["::tessera::device::DeviceDialect"];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    static constexpr ::llvm::StringLiteral kFusedAttr = "npu.fused";
    static constexpr ::llvm::StringLiteral kPiecesAttr = "npu.pieces";
    static constexpr ::llvm::StringLiteral kTapsAttr = "npu.taps";
    static constexpr ::llvm::StringLiteral kAttentionAttr = "npu.attention";
    static constexpr ::llvm::StringLiteral kRowLanesAttr = "npu.row_lanes";
    static constexpr ::llvm::StringLiteral kResidentAttr = "npu.resident";
    static constexpr ::llvm::StringLiteral kSlicesAttr = "npu.slices";
    static constexpr ::llvm::StringLiteral kSingleBufferedAttr = "npu.single_buffered";
    static constexpr ::llvm::StringLiteral kKeptAttr = "npu.kept";
    static constexpr ::llvm::StringLiteral kEffortAttr = "npu.effort";
    /// The types and ops of NpuOps.td.
    void addPrograms();
  }];
}

#endif // NPU_DIALECT
