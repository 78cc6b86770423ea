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
    `readers`: of a copy, that it moves nothing; whoever reads its result (a norm, an attention, a product of rows, also through
    reshapes) reads its source as that lies. Of a map of a tensor of the caller's, that the convolution which alone reads its result
    computes it on what it loads. `producer`: the norm, attention or product whose result the op reads does it: it computes
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

def Npu_PieceTime : I32EnumAttr<"PieceTime", "when a piece of a copy is moved", [
    I32EnumAttrCase<"turn", 0>, I32EnumAttrCase<"early", 1>, I32EnumAttrCase<"direct", 2>]> {
  let cppNamespace = "::tessera::npu";
  let genSpecializedAttr = 0;
}

def Npu_PiecesAttr : AttrDef<Npu_Dialect, "Pieces"> {
  let mnemonic = "pieces";
  let summary = "When each piece of a result of the model leaves the chip";
  let description = [{
    On a copy that only makes a result of the model, for each of its pieces: `turn`: when the copy's turn comes; `early`: behind the op
    after which all of its source is there; `direct`: tile by tile, by the ops that make its source.

    ```mlir
    %y = device.copy %a, %b {npu.pieces = #npu.pieces<early, direct>, pieces = [...], ...} : ...
    ```
    (C1) as many as the copy has pieces.
  }];
  let parameters = (ins ArrayRefParameter<"PieceTime">:$times);
  let hasCustomAssemblyFormat = 1;
}

def Npu_TapsAs : I32EnumAttr<"TapsAs", "what taps of a kernel are to the matrix unit", [
    I32EnumAttrCase<"window", 0>, I32EnumAttrCase<"rows_loaded", 1>, I32EnumAttrCase<"all_loaded", 2>,
    I32EnumAttrCase<"rows_moved", 3>, I32EnumAttrCase<"all_moved", 4>]> {
  let cppNamespace = "::tessera::npu";
  let genSpecializedAttr = 0;
}

def Npu_TapsAttr : AttrDef<Npu_Dialect, "Taps"> {
  let mnemonic = "taps";
  let summary = "Whether taps of a kernel are input channels";
  let description = [{
    Few input channels leave the reduction of the matrix unit idle: taps become channels where that pays for laying the input out so.
    `window`: they stay taps. `rows_loaded`: rows of the kernel are channels, laid out on the way from outside; `rows_moved`: from
    local memory to local memory. `all_loaded`, `all_moved`: columns follow, inside: all, or as many neighbours as `fetched_columns` and
    `resident_columns` say, which leaves the others as taps. `fetched`: where the input comes from outside
    the chip; `resident`: where it stays in local memory. On a conv one for each volume of its input, images being one.

    ```mlir
    %y = device.conv %x, %w {npu.taps = [#npu.taps<fetched = all_loaded, resident = window, fetched_columns = 3>], ...} : ...
    ```
    (C1) what is resident is not loaded. (C2) parts of columns are those of all_loaded or all_moved, two at least.
  }];
  let parameters = (ins EnumParameter<Npu_TapsAs>:$fetched, EnumParameter<Npu_TapsAs>:$resident,
      DefaultValuedParameter<"uint32_t", "0">:$fetchedColumns, DefaultValuedParameter<"uint32_t", "0">:$residentColumns);
  let assemblyFormat = [{
    `<` `fetched` `=` $fetched `,` `resident` `=` $resident (`,` `fetched_columns` `=` $fetchedColumns^)?
    (`,` `resident_columns` `=` $residentColumns^)? `>`
  }];
  let genVerifyDecl = 1;
}

def Npu_AttentionWay : I32EnumAttr<"AttentionWay", "what lanes have, and who multiplies, in an attention", [
    I32EnumAttrCase<"queries", 0>, I32EnumAttrCase<"matrix", 1>, I32EnumAttrCase<"batches", 2>, I32EnumAttrCase<"blocks", 3>]> {
  let cppNamespace = "::tessera::npu";
  let genSpecializedAttr = 0;
}

def Npu_AttentionAttr : AttrDef<Npu_Dialect, "Attention"> {
  let mnemonic = "attention";
  let summary = "How an attention is spread over lanes";
  let description = [{
    `queries`: lanes have queries of all batches, and all keys. `matrix`: the same, but the matrix unit multiplies, and keys are over
    lanes, too. `batches`: lanes have batches, for queries are few. `blocks`: lanes have blocks of queries, each of one batch, and the keys of
    that one; a batch has as many as `blocks` says.
    (C1) `blocks` is positive.
  }];
  let parameters = (ins EnumParameter<Npu_AttentionWay>:$way, "int64_t":$blocks);
  let assemblyFormat = "`<` $way `,` `blocks` `=` $blocks `>`";
  let genVerifyDecl = 1;
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
