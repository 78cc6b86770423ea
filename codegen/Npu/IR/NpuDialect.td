//===- NpuDialect.td - Decisions of the NPU's compiler ---------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef NPU_DIALECT
#define NPU_DIALECT

include "mlir/IR/OpBase.td"

def Npu_Dialect : Dialect {
  let name = "npu";
  let cppNamespace = "::tessera::npu";
  let summary = "Decisions of the NPU's compiler, and the programs that it produces";
  let description = [{
    Functions of device ops with addresses become streams of commands in phases. Each phase is a pass
    (codegen/Npu/Passes.td) that writes its decisions on the ops. Later phases read them there and do not decide
    anything again:

    | attribute | on | meaning | written by |
    |---|---|---|---|
    | `npu.fused` | copy, map | the op that executes it as part of its own work | `npu-fuse-copies` |
    | `npu.pieces` | copy | when each piece of a result of the model leaves the chip | `npu-choose-direct-stores` |
    | `npu.taps` | conv | how kernel taps become input channels | `npu-choose-forms` |
    | `npu.attention` | attention | how work is spread over lanes, and which unit multiplies | `npu-choose-forms` |
    | `npu.row_lanes` | matmul | rows of the result, not columns, are spread over the lanes; the number of batches, each of which begins in lane 0 | `npu-choose-forms` |
    | `npu.resident` | ops whose results stay in local memory | the first and the last layer | `npu-schedule` |
    | `npu.slices` | ops of a slice group | the rows of each slice | `npu-schedule` |
    | `npu.single_buffered` | any | only one tile of the op is in local memory at a time | `npu-schedule` |
    | `npu.preserved` | function | results of all layers are also stored, each in its own memory, for debugging | the user |
    | `npu.effort` | function | the effort of the search, also used by later phases | `npu-schedule` |

    Layers are the ops that are neither constants, views nor fused into other ops. They count from 0 in the order of the
    function.

    A decided function becomes a `npu.program`, one stream of commands, which passes through four forms:

    | form | contents | produced by |
    |---|---|---|
    | `staged` | pipeline stages of commands; local memory as buffers without addresses | `npu-emit-commands` |
    | `allocated` | the address of each buffer in every lane, and the stages during which it is in use | `npu-allocate-local` |
    | `ordered` | one list of commands in stream order; loads of constants and inputs are prefetched | `npu-order-commands` |
    | `numbered` | each command's number in its queue, and the one of the other queue that it waits for | `npu-assign-waits` |

    `npu-encode` writes the last form as bytes. docs/isa.md describes the commands.
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
    static constexpr ::llvm::StringLiteral kRowsOnLanesAttr = "npu.row_lanes";
    static constexpr ::llvm::StringLiteral kResidentAttr = "npu.resident";
    static constexpr ::llvm::StringLiteral kSlicesAttr = "npu.slices";
    static constexpr ::llvm::StringLiteral kSingleBufferedAttr = "npu.single_buffered";
    static constexpr ::llvm::StringLiteral kPreservedAttr = "npu.preserved";
    static constexpr ::llvm::StringLiteral kEffortAttr = "npu.effort";
    /// Registers the types and ops of NpuOps.td.
    void addPrograms();
  }];
}

#endif // NPU_DIALECT
