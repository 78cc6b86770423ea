//===- NpuAttrs.td - Decisions as attributes -------------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef NPU_ATTRS
#define NPU_ATTRS

include "codegen/Npu/IR/NpuDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def Npu_FusedInto : I32EnumAttr<"FusedInto", "op that executes a fused op", [
    I32EnumAttrCase<"readers", 0>, I32EnumAttrCase<"producer", 1>]> {
  let cppNamespace = "::tessera::npu";
  let genSpecializedAttr = 0;
}

def Npu_FusedAttr : AttrDef<Npu_Dialect, "Fused"> {
  let mnemonic = "fused";
  let summary = "The op that executes a copy or a map as part of its own work";
  let description = [{
    `readers`, on a copy: the copy moves nothing; the readers of its result (a norm, an attention, a matmul on rows,
    also through reshapes) read its source directly. On a map of a function argument: the convolution that is the only
    reader of the result computes the map on the data that it loads. `producer`: the norm, attention or matmul whose
    result the op reads executes it. It computes a map on data in local memory, and stores its result (or that of the
    map) in the layout of the copies behind it. `target`, on such copies: the copy's number among the destinations of
    the result. If no copy is destination 0, that is the result itself; otherwise the result has no storage, and all of
    its readers read the copy that is destination 0.

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

def Npu_PieceTime : I32EnumAttr<"PieceTime", "time at which a piece of a copy is moved", [
    I32EnumAttrCase<"turn", 0>, I32EnumAttrCase<"early", 1>, I32EnumAttrCase<"direct", 2>]> {
  let cppNamespace = "::tessera::npu";
  let genSpecializedAttr = 0;
}

def Npu_PiecesAttr : AttrDef<Npu_Dialect, "Pieces"> {
  let mnemonic = "pieces";
  let summary = "Times at which the pieces of a result of the model leave the chip";
  let description = [{
    On a copy that only writes a result of the model, for each of its pieces: `turn`: the piece is moved with the copy;
    `early`: right after the last op that writes its source; `direct`: the ops that compute its source store it, tile by
    tile.

    ```mlir
    %y = device.copy %a, %b {npu.pieces = #npu.pieces<early, direct>, pieces = [...], ...} : ...
    ```
    (C1) There are as many times as the copy has pieces.
  }];
  let parameters = (ins ArrayRefParameter<"PieceTime">:$times);
  let hasCustomAssemblyFormat = 1;
}

def Npu_TapsAs : I32EnumAttr<"TapsAs", "mapping of kernel taps to the matrix unit", [
    I32EnumAttrCase<"window", 0>, I32EnumAttrCase<"rows_loaded", 1>, I32EnumAttrCase<"all_loaded", 2>,
    I32EnumAttrCase<"rows_moved", 3>, I32EnumAttrCase<"all_moved", 4>]> {
  let cppNamespace = "::tessera::npu";
  let genSpecializedAttr = 0;
}

def Npu_TapsAttr : AttrDef<Npu_Dialect, "Taps"> {
  let mnemonic = "taps";
  let summary = "How kernel taps become input channels (im2col)";
  let description = [{
    With few input channels the reduction tree of the matrix unit is mostly idle. Kernel taps become channels if the
    gain is worth laying the input out accordingly. `window`: they stay taps. `rows_loaded`: kernel rows become channels
    while the input is loaded from off-chip memory; `rows_moved`: by moves within local memory. `all_loaded`,
    `all_moved`: kernel columns become channels as well, inside local memory: all of them, or groups of
    `fetched_columns` or `resident_columns` neighbours, with the remaining columns as taps. `fetched` applies if the
    input is in off-chip memory, `resident` if it is in local memory. A conv has one attribute per volume of its input
    (one for images).

    ```mlir
    %y = device.conv %x, %w {npu.taps = [#npu.taps<fetched = all_loaded, resident = window, fetched_columns = 3>], ...} : ...
    ```
    (C1) `resident` is not a loaded form. (C2) Column counts only occur with all_loaded or all_moved, and are at least
    2.
  }];
  let parameters = (ins EnumParameter<Npu_TapsAs>:$fetched, EnumParameter<Npu_TapsAs>:$resident,
      DefaultValuedParameter<"uint32_t", "0">:$fetchedColumns, DefaultValuedParameter<"uint32_t", "0">:$residentColumns);
  let assemblyFormat = [{
    `<` `fetched` `=` $fetched `,` `resident` `=` $resident (`,` `fetched_columns` `=` $fetchedColumns^)?
    (`,` `resident_columns` `=` $residentColumns^)? `>`
  }];
  let genVerifyDecl = 1;
}

def Npu_AttentionMapping : I32EnumAttr<"AttentionMapping", "distribution of an attention over lanes and units", [
    I32EnumAttrCase<"queries", 0>, I32EnumAttrCase<"matrix", 1>, I32EnumAttrCase<"batches", 2>, I32EnumAttrCase<"blocks", 3>]> {
  let cppNamespace = "::tessera::npu";
  let genSpecializedAttr = 0;
}

def Npu_AttentionAttr : AttrDef<Npu_Dialect, "Attention"> {
  let mnemonic = "attention";
  let summary = "Distribution of an attention over lanes and units";
  let description = [{
    `queries`: the lanes share the queries of all batches, and each has all keys. `matrix`: likewise, but the matrix
    unit multiplies, and keys are spread over the lanes, too. `batches`: each lane has its own batches, for few queries.
    `blocks`: each lane has blocks of queries, each of one batch, and that batch's keys; a batch has `blocks` blocks.
    (C1) `blocks` is positive.
  }];
  let parameters = (ins EnumParameter<Npu_AttentionMapping>:$mapping, "int64_t":$blocks);
  let assemblyFormat = "`<` $mapping `,` `blocks` `=` $blocks `>`";
  let genVerifyDecl = 1;
}

def Npu_ResidentAttr : AttrDef<Npu_Dialect, "Resident"> {
  let mnemonic = "resident";
  let summary = "A value is resident in local memory";
  let description = [{
    The op's result is resident in local memory from layer `first`, the first that writes into it, to layer `last`, the
    last that reads it there. Values that share bytes off the chip (parts of a concatenation, slices, views) form an
    alias set and are resident together; all ops that write one of them have the same attribute. `bytes`: per lane.
    `dense`: the planes lie one after another, so parts can be viewed; otherwise only the whole value can. `stored`: the
    value is also stored in off-chip memory, because it is read there.

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
  let summary = "An op runs slice by slice, alternating with the other ops of its group";
  let description = [{
    The layers `first` to `last` form a slice group: they run alternately, some rows at a time, and the values they
    exchange stay in local memory only as long as a slice needs them. In slice i the op computes rows until[i - 1] (or
    0) to until[i] of its result. A result that stays slice by slice is held from row from[i] on: rows before until[i -
    1] are moved there from the previous slice's buffer.

    ```mlir
    %y = device.pool max %x {npu.slices = #npu.slices<layers 4 to 5, from = [0, 14], until = [16, 32]>, ...} : ...
    ```
    (C1) `first` is before `last`. (C2) There are at least two slices, and both lists have one entry per slice. (C3)
    `until` never decreases. (C4) Each slice holds at least the rows that it computes.
  }];
  let parameters = (ins "uint32_t":$first, "uint32_t":$last, ArrayRefParameter<"uint32_t">:$from, ArrayRefParameter<"uint32_t">:$until);
  let assemblyFormat = "`<` `layers` $first `to` $last `,` `from` `=` `[` $from `]` `,` `until` `=` `[` $until `]` `>`";
  let genVerifyDecl = 1;
}

#endif // NPU_ATTRS
