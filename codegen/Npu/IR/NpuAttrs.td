//===- NpuAttrs.td - Decisions as attributes -------------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef NPU_ATTRS
#define NPU_ATTRS

include "codegen/Npu/IR/NpuDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def Npu_FusedInto : I32EnumAttr<"FusedInto", "who does a fused op", [
    I32EnumAttrCase<"readers", 0>, I32EnumAttrCase<"producer", 1>]> {
  let cppNamespace = "::tessera::npu";
  let genSpecializedAttr = 0;
}

def Npu_FusedAttr : AttrDef<Npu_Dialect, "Fused"> {
  let mnemonic = "fused";
  let summary = "Which other op does a copy or a map on the way";
  let description = [{
    `readers`: the op is a copy that moves nothing; whoever reads its result (a norm, an attention, a product of rows, also through
    reshapes) reads its source as that lies. `producer`: the norm, attention or product whose result the op reads does it: it computes
    a map on what it has in local memory, and stores its result (or that of the map) as the copies behind want it. `target`: of such
    copies, the number of the copy among the places that are stored. The result itself is place 0 where no copy is; else it has no
    bytes of its own, and all who read it read the copy that is place 0.

    ```mlir
    %t = device.copy %x {npu.fused = #npu.fused<readers>, pieces = [...]} : (tensor<1x24x9x8xf32>) -> tensor<1x9x8x24xf32>
    %n = device.norm %t {axis = 3 : i64, epsilon = 1.0e-05 : f64} : (tensor<1x9x8x24xf32>) -> tensor<1x9x8x24xf32>
    %u = device.copy %n {npu.fused = #npu.fused<producer, target = 0>, pieces = [...]} : (tensor<1x9x8x24xf32>) -> tensor<1x24x9x8xf32>
    ```
    (C1) `target` is given exactly for copies of a producer. (C2) it is not negative.
  }];
  let parameters = (ins EnumParameter<Npu_FusedInto>:$into, DefaultValuedParameter<"int64_t", "-1">:$target);
  let assemblyFormat = "`<` $into (`,` `target` `=` $target^)? `>`";
}

def Npu_ResidentAttr : AttrDef<Npu_Dialect, "Resident"> {
  let mnemonic = "resident";
  let summary = "A value stays in local memory";
  let description = [{
    What the op writes stays in local memory from layer `first`, which is the first to write into it, to layer `last`, the last that
    finds it there. Values that share bytes outside the chip (parts of a concatenation, slices, views: an alias set) stay together,
    and all ops that write one of them say the same. `bytes`: of every lane. `dense`: its planes lie one after another and can be seen
    in part; else it is seen as a whole only. `stored`: it is stored outside the chip as well, for somebody reads it there.

    ```mlir
    %y = device.lut %x, %table {npu.resident = #npu.resident<layers 3 to 7, bytes = 4096, dense = true, stored = false>} : ...
    ```
    (C1) `last` is not before `first`.
  }];
  let parameters = (ins "uint32_t":$first, "uint32_t":$last, "uint64_t":$bytes, "bool":$dense, "bool":$stored);
  let assemblyFormat = "`<` `layers` $first `to` $last `,` `bytes` `=` $bytes `,` `dense` `=` $dense `,` `stored` `=` $stored `>`";
  let genVerifyDecl = 1;
}

def Npu_SlicesAttr : AttrDef<Npu_Dialect, "Slices"> {
  let mnemonic = "slices";
  let summary = "An op runs slice by slice, in turn with others";
  let description = [{
    The layers `first` to `last` are a slice group: they run for some rows after the other, and what they make for each other stays
    in local memory for as long as a slice needs it. In slice i the op computes rows until[i - 1] (or 0) to until[i] of its result, and
    a result that stays so is held from row from[i] on: rows before until[i - 1] move there from the buffer of the slice before.

    ```mlir
    %y = device.pool max %x {npu.slices = #npu.slices<layers 4 to 5, from = [0, 14], until = [16, 32]>, ...} : ...
    ```
    (C1) `first` is before `last`. (C2) two slices at least, as many numbers in both lists. (C3) `until` never falls. (C4) no slice
    holds rows only from behind those that it computes.
  }];
  let parameters = (ins "uint32_t":$first, "uint32_t":$last, ArrayRefParameter<"uint32_t">:$from, ArrayRefParameter<"uint32_t">:$until);
  let assemblyFormat = "`<` `layers` $first `to` $last `,` `from` `=` `[` $from `]` `,` `until` `=` `[` $until `]` `>`";
  let genVerifyDecl = 1;
}

#endif // NPU_ATTRS
