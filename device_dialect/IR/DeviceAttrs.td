//===- DeviceAttrs.td - Layouts and copy regions ---------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef DEVICE_ATTRS
#define DEVICE_ATTRS

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/TensorEncoding.td"
include "device_dialect/IR/DeviceDialect.td"
include "top_dialect/IR/SizesInterface.td"

// Tensor encoding: the layout in memory. Without an encoding: row-major.
def Device_BlockedAttr
    : AttrDef<Device_Dialect, "Blocked", [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>,
                                          DeclareAttrInterfaceMethods<SizesInterface, ["withSizes"]>]> {
  let mnemonic = "blocked";
  let summary = "Channel-blocked layout";
  let description = [{
    Logical [N, C, D...] is stored as [N, ceil(C / block), D..., block]. The lanes beyond C hold zero: every op that
    writes such a tensor writes them. `sizes` are those of a tensor with symbolic sizes, as in `#top.dims`, which this
    encoding replaces: `#device.blocked<16, [batch[1:8], 3, 4, 4]>`. (C1) block positive. (C2) rank at least 2. (C3) the
    number of channels is not symbolic.
  }];
  let parameters = (ins "int64_t":$block, OptionalArrayRefParameter<"::tessera::top::SizeAttr">:$sizes);
  let builders = [AttrBuilder<(ins "int64_t":$block), "return $_get($_ctxt, block, ::llvm::ArrayRef<::tessera::top::SizeAttr>());">];
  let assemblyFormat = "`<` $block (`,` custom<Sizes>($sizes)^)? `>`";
  let genVerifyDecl = 1;
}

// One rectangular region of a copy, over an iteration space `sizes` (one entry per dim of the result).
// For iteration index i:  dst index of dim d = dstOffsets[d] + i[d] * dstSteps[d]
//                         src index of dim s = srcOffsets[s] + sum over d with srcDims[d] == s of i[d] * srcSteps[d]
// srcDims[d] = -1: iteration dim d does not move the source (broadcast). A single region can thus be a permutation,
// slice (any step), reversal, broadcast, spread (dstSteps > 1) or a part of a concatenation, pad or tile.
// A size or offset that is known at run time only is written `?`; `symbolic` lists these in the order of the text.
def Device_PieceAttr : AttrDef<Device_Dialect, "Piece"> {
  let mnemonic = "piece";
  let summary = "One rectangle of a copy";
  let parameters = (ins "int64_t":$source,
      ArrayRefParameter<"int64_t">:$sizes, ArrayRefParameter<"int64_t">:$dstOffsets, ArrayRefParameter<"int64_t">:$dstSteps,
      ArrayRefParameter<"int64_t">:$srcDims, ArrayRefParameter<"int64_t">:$srcOffsets, ArrayRefParameter<"int64_t">:$srcSteps,
      OptionalArrayRefParameter<"::tessera::top::SizeAttr">:$symbolic);
  let builders = [AttrBuilder<(ins "int64_t":$source, "::llvm::ArrayRef<int64_t>":$sizes, "::llvm::ArrayRef<int64_t>":$dstOffsets,
      "::llvm::ArrayRef<int64_t>":$dstSteps, "::llvm::ArrayRef<int64_t>":$srcDims, "::llvm::ArrayRef<int64_t>":$srcOffsets,
      "::llvm::ArrayRef<int64_t>":$srcSteps),
      "return $_get($_ctxt, source, sizes, dstOffsets, dstSteps, srcDims, srcOffsets, srcSteps, ::llvm::ArrayRef<::tessera::top::SizeAttr>());">];
  let assemblyFormat = [{
    `<` `source` `=` $source `,` `sizes` `=` custom<Numbers>($sizes) `,` `dst_offsets` `=` custom<Numbers>($dstOffsets) `,`
    `dst_steps` `=` `[` $dstSteps `]` `,` `src_dims` `=` `[` $srcDims `]` `,` `src_offsets` `=` custom<Numbers>($srcOffsets) `,`
    `src_steps` `=` `[` $srcSteps `]` (`,` `symbolic` `=` custom<Sizes>($symbolic)^)? `>`
  }];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Returns true if all sizes and offsets are numbers.
    bool isKnown() const { return getSymbolic().empty(); }
  }];
}
def Device_PieceArrayAttr : TypedArrayAttrBase<Device_PieceAttr, "pieces">;

#endif // DEVICE_ATTRS
