//===- NpuOps.td - Programs of the NPU -------------------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef NPU_OPS
#define NPU_OPS

include "codegen/Npu/IR/NpuDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/Properties.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"

def Npu_MemoryType : TypeDef<Npu_Dialect, "Memory"> {
  let mnemonic = "memory";
  let summary = "A run of bytes that commands address";
  let description = [{
    Bytes of each lane's local memory (of `npu.buffer`), or a region outside the chip (arguments of `npu.program`).
  }];
}

def Npu_Phase : I32EnumAttr<"Phase", "How far a program has come", [
  I32EnumAttrCase<"staged", 0>, I32EnumAttrCase<"allocated", 1>, I32EnumAttrCase<"ordered", 2>,
  I32EnumAttrCase<"numbered", 3>
]> {
  let cppNamespace = "::tessera::npu";
}

def Npu_ProgramOp : Op<Npu_Dialect, "program", [
  IsolatedFromAbove, NoTerminator, SingleBlock, Symbol, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>
]> {
  let summary = "One stream of commands";
  let description = [{
    The arguments of its block are the memories outside the chip: constants, workspace, then the caller's buffers,
    inputs before outputs. `chip` is the one that the program is made for: a built-in one's name, or a description (JSON). `prefetch`, `apart`,
    `across` and `held` are what scheduling may do, decided by the search over schedules: loads of constants and inputs
    begin as early as there is room; what a stage stores and what the one behind it computes have no bytes in common;
    loads of an op may begin before the computation of the op before it; what is stored keeps its place for as long as
    that takes.

    Example:
    ```mlir
    npu.program @main staged chip "npu-base" inputs 1 layers ["conv"] prefetch apart {
    ^bb0(%constants: !npu.memory, %workspace: !npu.memory, %input0: !npu.memory, %output0: !npu.memory):
      %0 = npu.buffer 64 : [1, 8, 4, 4] "i8"
      npu.stage load {
        npu.command copy y = %0[0] : i8 [64, 16, 4, 1], x = %input0[0] : i8 [128, 16, 4, 1], shape = [1, 8, 4, 4] layer 0
      } compute {
      } store {
        npu.command copy y = %output0[0] : i8 [128, 16, 4, 1], x = %0[0] : i8 [64, 16, 4, 1], shape = [1, 8, 4, 4] layer 0
      }
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Npu_Phase:$phase, StrAttr:$chip, I32Attr:$inputs, StrArrayAttr:$layers,
                       UnitAttr:$prefetch, UnitAttr:$apart, UnitAttr:$across, UnitAttr:$held,
                       OptionalAttr<ElementsAttr>:$code);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name $phase `chip` $chip `inputs` $inputs `layers` $layers (`prefetch` $prefetch^)? (`apart` $apart^)?
    (`across` $across^)? (`held` $held^)? (`code` $code^)? attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// The chip of that text; false and what is wrong where it is none.
    static bool readChip(::llvm::StringRef text, ::bmodel::npu::Chip &chip, ::std::string &error);
    /// What readChip makes that chip of.
    static ::std::string nameChip(const ::bmodel::npu::Chip &chip);
  }];
}

def Npu_BufferOp : Op<Npu_Dialect, "buffer"> {
  let summary = "Bytes of each lane's local memory";
  let description = [{
    `bytes` of every lane, for a dense tensor of the sizes n, c, h, w and the element type that begins in `lane`.
    Once it is allocated: the address in each lane, and the first and last stage during which it is in use.
  }];
  let arguments = (ins I64Attr:$bytes, DenseI64ArrayAttr:$sizes, StrAttr:$element, DefaultValuedAttr<I32Attr, "0">:$lane,
                       OptionalAttr<I64Attr>:$address, OptionalAttr<DenseI64ArrayAttr>:$live);
  let results = (outs Npu_MemoryType:$memory);
  let assemblyFormat = [{
    $bytes `:` $sizes $element (`lane` $lane^)? (`at` $address^ `live` $live)? attr-dict
  }];
  let hasVerifier = 1;
}

def Npu_StageOp : Op<Npu_Dialect, "stage", [NoTerminator, SingleBlock]> {
  let summary = "One stage of the pipeline: what is loaded, computed and stored, in this order";
  let description = [{
    `overlapped`: its loads may stand before the computation of the stage before it. `independent`: the same of a stage
    of another op, which a program that is `across` makes use of.
  }];
  let arguments = (ins UnitAttr:$overlapped, UnitAttr:$independent);
  let regions = (region SizedRegion<1>:$loads, SizedRegion<1>:$computes, SizedRegion<1>:$stores);
  let assemblyFormat = [{
    (`overlapped` $overlapped^)? (`independent` $independent^)? `load` $loads `compute` $computes `store` $stores
    attr-dict
  }];
}

/// A descriptor whose tensors have no region and begin at their operand's first byte.
def Npu_CodeProp : Property<"::tessera::npu::CommandCode", "command without addresses"> {
  let convertToAttribute = "return $_storage.toAttribute($_ctxt);";
  let convertFromAttribute = "return ::tessera::npu::CommandCode::fromAttribute($_storage, $_attr, $_diag);";
  let hashProperty = "::llvm::hash_value($_storage.bytes())";
  let readFromMlirBytecode = [{
    ::llvm::ArrayRef<char> bytes;
    if (::mlir::failed($_reader.readBlob(bytes)))
      return ::mlir::failure();
    if (bytes.size() != $_storage.bytes().size()) {
      $_reader.emitError("a command has another number of bytes");
      return ::mlir::failure();
    }
    ::std::memcpy(&$_storage.descriptor, bytes.data(), bytes.size());
  }];
  let writeToMlirBytecode = [{
    $_writer.writeOwnedBlob({$_storage.bytes().data(), $_storage.bytes().size()});
  }];
}

def Npu_CommandOp : Op<Npu_Dialect, "command"> {
  let summary = "A command of the instruction set";
  let description = [{
    Named as in docs/isa.md, with its fields; those that are left out have their defaults. A tensor is a memory, how far
    into it the tensor begins, in bytes, its element type, strides in bytes and, in local memory, the lane in which it
    begins. `layer` counts into the program's layers; `id` and `wait` are there once commands are numbered.
  }];
  let arguments = (ins Variadic<Npu_MemoryType>:$memories, Npu_CodeProp:$code);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The command as CommandCode has it: addresses count from the beginning of each memory.
    const ::bmodel::npu::Descriptor &getDescriptor() { return getProperties().code.descriptor; }
    void setDescriptor(const ::bmodel::npu::Descriptor &made) { getProperties().code.descriptor = made; }
  }];
}

#endif // NPU_OPS
