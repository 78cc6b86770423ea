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
  let summary = "A range of bytes that commands address";
  let description = [{
    Bytes of each lane's local memory (result of `npu.buffer`), or an off-chip region (argument of `npu.program`).
  }];
}

def Npu_Phase : I32EnumAttr<"Phase", "Phase of a program", [
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
    The arguments of its block are the off-chip memories: constants, workspace, then the caller's buffers, inputs before
    outputs. `chip` is the name of a built-in chip or a JSON description. `prefetch`, `disjoint_stores`, `cross_layer_prefetch` and `hold_stores` are
    the kinds of overlap that scheduling may use, chosen by the search over schedules. `prefetch`: loads of constants
    and inputs begin as early as there is room. `disjoint_stores`: the buffers that a stage stores from and those that the next
    stage computes in do not overlap. `cross_layer_prefetch`: loads of an op may begin before the computation of the previous op.
    `hold_stores`: a stored buffer keeps its address until the store is estimated to be complete.

    Example:
    ```mlir
    npu.program @main staged chip "npu-base" inputs 1 layers ["conv"] prefetch disjoint_stores {
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
                       UnitAttr:$prefetch, UnitAttr:$disjointStores, UnitAttr:$crossLayerPrefetch, UnitAttr:$holdStores,
                       OptionalAttr<ElementsAttr>:$code);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name $phase `chip` $chip `inputs` $inputs `layers` $layers (`prefetch` $prefetch^)? (`disjoint_stores` $disjointStores^)?
    (`cross_layer_prefetch` $crossLayerPrefetch^)? (`hold_stores` $holdStores^)? (`code` $code^)? attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// Parses a chip's name or JSON description. Returns false and sets |error| if it is invalid.
    static bool readChip(::llvm::StringRef text, ::bmodel::npu::Chip &chip, ::std::string &error);
    /// Returns a text from which readChip restores the chip.
    static ::std::string nameChip(const ::bmodel::npu::Chip &chip);
  }];
}

def Npu_BufferOp : Op<Npu_Dialect, "buffer"> {
  let summary = "Bytes of each lane's local memory";
  let description = [{
    A buffer of `bytes` per lane, for a dense tensor with the sizes n, c, h, w and the element type that begins in
    `lane`. After allocation: the address in each lane, and the first and last stage during which it is in use.
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
  let summary = "One stage of the pipeline: loads, computation and stores, in this order";
  let description = [{
    `overlapped`: the loads may begin before the computation of the previous stage. `independent`: likewise if the
    previous stage belongs to another op; only programs with `cross_layer_prefetch` use this.
  }];
  let arguments = (ins UnitAttr:$overlapped, UnitAttr:$independent);
  let regions = (region SizedRegion<1>:$loads, SizedRegion<1>:$computes, SizedRegion<1>:$stores);
  let assemblyFormat = [{
    (`overlapped` $overlapped^)? (`independent` $independent^)? `load` $loads `compute` $computes `store` $stores
    attr-dict
  }];
}

/// A descriptor whose present tensors have the region `local` and offsets relative to their memories.
def Npu_CodeProp : Property<"::tessera::npu::CommandCode", "command without addresses"> {
  let convertToAttribute = "return $_storage.toAttribute($_ctxt);";
  let convertFromAttribute = "return ::tessera::npu::CommandCode::fromAttribute($_storage, $_attr, $_diag);";
  let hashProperty = "::llvm::hash_value($_storage.bytes())";
  let readFromMlirBytecode = [{
    ::llvm::ArrayRef<char> bytes;
    if (::mlir::failed($_reader.readBlob(bytes)))
      return ::mlir::failure();
    if (bytes.size() != $_storage.bytes().size()) {
      $_reader.emitError("a command has the wrong number of bytes");
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
    Command and field names are those of docs/isa.md; omitted fields have their defaults. A tensor consists of a memory,
    the offset of its first byte in it, the element type, strides in bytes and, in local memory, the lane in which it
    begins. `layer` is an index into the program's layers. `id` and `wait` are present once commands are numbered.
  }];
  let arguments = (ins Variadic<Npu_MemoryType>:$memories, Npu_CodeProp:$code);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Returns the descriptor as CommandCode stores it: offsets count from the first byte of each memory.
    const ::bmodel::npu::Descriptor &getDescriptor() { return getProperties().code.descriptor; }
    void setDescriptor(const ::bmodel::npu::Descriptor &made) { getProperties().code.descriptor = made; }
  }];
}

#endif // NPU_OPS
