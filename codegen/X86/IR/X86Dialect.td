//===- X86Dialect.td - Attributes of the x86 family --------*- tablegen -*-===//
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
  let summary = "Decisions of the x86 family about device ops";
  let description = [{
    The dialect has no ops, only attributes of device ops. `x86.algorithm` on a `device.conv` names the kernel that will
    compute it, from x86-assign-layouts until its weights are packed; from then on `packing` implies the kernel.
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
  let summary = "The algorithm of a convolution whose weights are not packed yet";
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

def X86_PackedOrder : X86_Enum<"PackedOrder", "the kernel, and the order in which it iterates over K", [
    I32EnumAttrCase<"matrix", 0>, I32EnumAttrCase<"blocks", 1>, I32EnumAttrCase<"taps", 2>, I32EnumAttrCase<"apart", 3>,
    I32EnumAttrCase<"winograd", 4>, I32EnumAttrCase<"depthwise", 5>, I32EnumAttrCase<"windows", 6>,
    I32EnumAttrCase<"channels_last", 7>, I32EnumAttrCase<"pixels", 8>]>;

def X86_PackedStep : X86_Enum<"PackedStep", "what one K step of one column holds", [
    I32EnumAttrCase<"f32", 0>, I32EnumAttrCase<"bf16", 1>, I32EnumAttrCase<"f16", 2>, I32EnumAttrCase<"i8", 3>, I32EnumAttrCase<"i4", 4>,
    I32EnumAttrCase<"i8x4", 5>, I32EnumAttrCase<"i16x4", 6>, I32EnumAttrCase<"i16x2", 7>,
    I32EnumAttrCase<"bf16x2", 8>]>;

def X86_PackingAttr : AttrDef<X86_Dialect, "Packing", [DeclareAttrInterfaceMethods<PackingInterface>]> {
  let mnemonic = "packing";
  let summary = "The byte order in which a kernel reads constant weights";
  let description = [{
    The decision of x86-pack-weights about the weights of a convolution, matmul or recurrent op, on which the emitter of
    the kernel relies. Columns are output channels, 16 to a block.

    `order`: the order of K within a panel of `columns` columns. Panels and groups are the outer dims.
    - `matrix`: the rows of a matrix, [N / columns][K][columns];
    - `blocks`: (block of 16 input channels, kernel row, kernel column, channel), for channel-blocked inputs;
    - `taps`: (channel, kernel row, kernel column) of a row-major input; a K step holds neighbouring kernel columns;
    - `apart`: as `taps`, but with one kernel column per K step, for dilated rows;
    - `winograd`: the transformed weights, by channel, for each point of F(m x m, 3 x 3), m = `output_tile`;
    - `depthwise`: [C / 16][kernel row, kernel column][16];
    - `windows`: depthwise by dot products of four neighbouring kernel columns, see DepthwiseWindows;
    - `channels_last`: (kernel row, kernel column, channel), the channels of a tap padded by paddedDepth(). The kernel
      copies its channel-blocked input to that order;
    - `pixels`: as `channels_last`, for row-major inputs of up to four channels.

    `step`: the contents of one column of a K step:
    - `f32`, `f16`, `bf16`: one float;
    - `i8`, `i4`: one integer that is multiplied by a float; two K steps of `i4` share a byte;
    - `i8x4`: four i8 for dot products of bytes. Signed x is multiplied as x + 128, and the bias is lowered by
      128 * sum(w);
    - `i16x4`: i16 (k0, k2) and (k1, k3);
    - `i16x2`: i16 (k0, k1);
    - `bf16x2`: bf16 (k0, k1) for dot products of bf16.

    `shape`: the logical dims of the weights. `tile`: rows x columns of the register tile; the last panel has only the
    remaining columns.
    `scale_group`: the number of entries of K (input channels of a convolution) that share a scale. The scales follow
    the integers of each panel, in rows. 0: the scales are in the epilogue.
    `chunk`: the bytes of K in a row of A that one AMX tile operation multiplies; `matrix` has its K padded to whole
    chunks. 0: vector instructions multiply. AMX tiles multiply signed bytes as they are and the two bytes of an i16
    separately; for `bf16x2` they sum the even and the odd products of a chunk separately (docs/numerics.md).

    (C1) shape: 2 or more dims, none negative. (C2) columns a positive multiple of 16, rows positive; 16 columns for
    depthwise orders. (C3) output_tile 2 or 4 for winograd, else 0. (C4) the order has a kernel for the step.
    (C5) scale_group a multiple of 16, for integers in matrix or blocks only. (C6) chunk a multiple of 4 up to 64, with
    a tile of at most 32 x 32, for `i8x4` and `bf16x2` in `matrix`, `channels_last` and `pixels`; the last two have no
    kernel without a chunk. 0 elsewhere.
  }];
  let parameters = (ins EnumParameter<X86_PackedOrder>:$order, EnumParameter<X86_PackedStep>:$step, ArrayRefParameter<"int64_t">:$shape,
      "int64_t":$rows, "int64_t":$columns, DefaultValuedParameter<"int64_t", "0">:$output_tile, DefaultValuedParameter<"int64_t", "0">:$scale_group,
      DefaultValuedParameter<"int64_t", "0">:$chunk);
  let assemblyFormat = [{
    `<` $order `,` $step `,` `shape` `=` `[` $shape `]` `,` `tile` `=` $rows `x` $columns (`,` struct($output_tile, $scale_group, $chunk)^)? `>`
  }];
  let genVerifyDecl = 1;
}

def X86_BlockPackingAttr : AttrDef<X86_Dialect, "BlockPacking", [DeclareAttrInterfaceMethods<PackingInterface>]> {
  let mnemonic = "block_packing";
  let summary = "The byte order in which a kernel reads the constant weights of a device.block_matmul";
  let description = [{
    The weights of 16 columns form a panel. A panel holds one block of K after another, the last one padded with zeros:
    its K steps, then 16 scales and, with `mins`, 16 mins. A K step of a column holds four entries of K in four bytes.

    `step`: `i8`, or `i4` for weights from `lowest` to `lowest` + 15: the low halves of the bytes of a vector hold
    weight - lowest of one K step, the high halves those of the next. `shape`: [K, N]. `block`: entries of K per block.
    `halves`: scales and mins are f16, else f32.

    (C1) shape: two dims, none negative. (C2) block a multiple of 16 up to 256. (C3) step i4 with lowest 0 or -8, or i8
    with lowest -128.
  }];
  let parameters = (ins EnumParameter<X86_PackedStep>:$step, ArrayRefParameter<"int64_t">:$shape, "int64_t":$block,
      "int64_t":$lowest, "bool":$mins, "bool":$halves);
  let assemblyFormat = [{
    `<` $step `,` `shape` `=` `[` $shape `]` `,` `block` `=` $block `,` `lowest` `=` $lowest `,` `mins` `=` $mins `,` `halves` `=` $halves `>`
  }];
  let extraClassDeclaration = [{
    int64_t blocks() const { return (getShape()[0] + getBlock() - 1) / getBlock(); }
    int64_t panels() const { return (getShape()[1] + 15) / 16; }
    /// Returns the bytes of the K steps of a block of a panel.
    int64_t weightBytesOfBlock() const { return getBlock() * (getStep() == PackedStep::i4 ? 8 : 16); }
    /// Returns the bytes of the scales, or of the mins, of a block of a panel.
    int64_t scaleBytesOfBlock() const { return getHalves() ? 32 : 64; }
    /// Returns the bytes of a block of a panel.
    int64_t bytesOfBlock() const { return weightBytesOfBlock() + scaleBytesOfBlock() * (getMins() ? 2 : 1); }
    int64_t bytesOfPanel() const { return blocks() * bytesOfBlock(); }
    int64_t bytes() const { return panels() * bytesOfPanel(); }
  }];
  let genVerifyDecl = 1;
}

#endif // X86_DIALECT
