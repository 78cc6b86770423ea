//===- X86Dialect.td - How x86's kernels want their weights ----*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef X86_DIALECT
#define X86_DIALECT

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "device_dialect/IR/PackingInterface.td"

def X86_Dialect : Dialect {
  let name = "x86";
  let cppNamespace = "::tessera::x86";
  let summary = "Decisions about device ops that only the x86 family takes";
  let description = [{
    No ops: attributes of device ops. `x86.algorithm` on a `device.conv` is the kernel that it gets, from x86-assign-layouts until
    its weights are packed; `packing` says everything then.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    static constexpr ::llvm::StringLiteral kAlgorithmAttr = "x86.algorithm";
  }];
}

class X86_Enum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::tessera::x86";
  let genSpecializedAttr = 0;
}

//===----------------------------------------------------------------------===//
// Algorithms
//===----------------------------------------------------------------------===//

def X86_ConvAlgorithm : X86_Enum<"ConvAlgorithm", "how a convolution is computed", [
    I32EnumAttrCase<"direct", 0>, I32EnumAttrCase<"winograd", 1>, I32EnumAttrCase<"depthwise", 2>]>;

def X86_AlgorithmAttr : AttrDef<X86_Dialect, "Algorithm"> {
  let mnemonic = "algorithm";
  let summary = "The kernel of a convolution whose weights are not packed yet";
  let description = [{
    `outputTile`: m of Winograd F(m x m, 3 x 3). (C1) 2 or 4 for winograd, else 0.
  }];
  let parameters = (ins EnumParameter<X86_ConvAlgorithm>:$value, DefaultValuedParameter<"int64_t", "0">:$outputTile);
  let assemblyFormat = "`<` $value (`,` `output_tile` `=` $outputTile^)? `>`";
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Packed weights
//===----------------------------------------------------------------------===//

def X86_PackedOrder : X86_Enum<"PackedOrder", "what the kernel computes and in which order it walks K", [
    I32EnumAttrCase<"matrix", 0>, I32EnumAttrCase<"blocks", 1>, I32EnumAttrCase<"taps", 2>, I32EnumAttrCase<"apart", 3>,
    I32EnumAttrCase<"winograd", 4>, I32EnumAttrCase<"depthwise", 5>, I32EnumAttrCase<"windows", 6>,
    I32EnumAttrCase<"channels_last", 7>, I32EnumAttrCase<"pixels", 8>]>;

def X86_PackedStep : X86_Enum<"PackedStep", "what one K step of one column holds", [
    I32EnumAttrCase<"f32", 0>, I32EnumAttrCase<"bf16", 1>, I32EnumAttrCase<"f16", 2>, I32EnumAttrCase<"i8", 3>, I32EnumAttrCase<"i4", 4>,
    I32EnumAttrCase<"i8x4", 5>, I32EnumAttrCase<"i16x4", 6>, I32EnumAttrCase<"i16x2", 7>,
    I32EnumAttrCase<"bf16x2", 8>]>;

def X86_PackingAttr : AttrDef<X86_Dialect, "Packing", [DeclareAttrInterfaceMethods<PackingInterface>]> {
  let mnemonic = "packing";
  let summary = "The order of bytes in which a kernel reads constant weights";
  let description = [{
    What x86-pack-weights decides about a convolution or matrix product and the emitter of its kernel relies on. Columns are output
    channels, 16 to a block.

    `order`, of K within a panel of `columns` columns, panels and groups outside of it:
    - `matrix`: the rows of a matrix, [N / columns][K][columns];
    - `blocks`: (block of 16 input channels, kernel row, kernel column, channel), for channel-blocked inputs;
    - `taps`: (channel, kernel row, kernel column) of a row-major input, steps of neighbouring kernel columns;
    - `apart`: the same with one kernel column a step, for dilated rows;
    - `winograd`: channels, for each point of F(m x m, 3 x 3), m = `output_tile`, transformed;
    - `depthwise`: [C / 16][kernel row, kernel column][16];
    - `windows`: depthwise by dot products of four neighbouring kernel columns, see DepthwiseWindows;
    - `channels_last`: (kernel row, kernel column, channel), the channels of a tap padded by paddedDepth(), for a copy of channel-blocked
      inputs in that order;
    - `pixels`: the same for row-major inputs of up to four channels.

    `step`, of one column: one float (`f32`, `f16`, `bf16`), one integer that a float multiplies (`i8`, `i4`: two K steps share a
    byte), four i8 for dot products of bytes (`i8x4`: signed x is multiplied as x + 128, and the bias is lowered by 128 * sum(w)), i16
    (k0, k2) and (k1, k3) (`i16x4`), i16 (k0, k1) (`i16x2`), or bf16 (k0, k1) for dot products of bf16
    (`bf16x2`).

    `shape`: the logical dims of the weights. `tile`: rows x columns of the register tile; the last panel is as narrow as the columns left.
    `scale_group`: entries of K (input channels of a convolution) that share a scale, in rows behind the integers of each panel; 0: the scales
    are in the epilogue.
    `chunk`: bytes of K in a row of A that one product of AMX tiles takes; 0: vectors multiply. `matrix` has its K padded to whole chunks.
    Tiles multiply signed bytes as they are, those of an i16 apart, and of `bf16x2` they sum the chunk's even and odd products apart
    (docs/numerics.md).

    (C1) shape: 2 or more dims, none negative. (C2) columns a positive multiple of 16, rows positive; 16 columns for depthwise orders.
    (C3) output_tile 2 or 4 for winograd, else 0. (C4) the order has a kernel for the step. (C5) scale_group a multiple of 16, for
    integers in matrix or blocks alone. (C6) chunk a multiple of 4 up to 64, with a tile of at most 32 x 32, for `i8x4` and `bf16x2` in
    `matrix`, `channels_last` and `pixels`, the last two of which have no other kernel; 0 elsewhere.
  }];
  let parameters = (ins EnumParameter<X86_PackedOrder>:$order, EnumParameter<X86_PackedStep>:$step, ArrayRefParameter<"int64_t">:$shape,
      "int64_t":$rows, "int64_t":$columns, DefaultValuedParameter<"int64_t", "0">:$output_tile, DefaultValuedParameter<"int64_t", "0">:$scale_group,
      DefaultValuedParameter<"int64_t", "0">:$chunk);
  let assemblyFormat = [{
    `<` $order `,` $step `,` `shape` `=` `[` $shape `]` `,` `tile` `=` $rows `x` $columns (`,` struct($output_tile, $scale_group, $chunk)^)? `>`
  }];
  let genVerifyDecl = 1;
}

#endif // X86_DIALECT
