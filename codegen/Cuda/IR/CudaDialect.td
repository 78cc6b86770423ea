//===- CudaDialect.td - Attributes of the cuda family ------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef CUDA_DIALECT
#define CUDA_DIALECT

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "device_dialect/IR/PackingInterface.td"

def Cuda_Dialect : Dialect {
  let name = "cuda";
  let cppNamespace = "::tessera::cuda";
  let summary = "Decisions of the family of NVIDIA GPUs about device ops";
  let description = [{
    The dialect has no ops, only attributes of device ops. `cuda.tile` on a `device.conv` or `device.matmul` states that
    blocks of threads compute it by tiles, and how; so does `cuda.attention` on a `device.attention`, and `cuda.gemv` on
    a `device.matmul` of few rows by integer weights. An op with `cuda.tile` may also have `cuda.candidates`, a list of
    alternative tiles, and `cuda.product`, the key by which a plan identifies the op.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    static constexpr ::llvm::StringLiteral kTileAttr = "cuda.tile";
    static constexpr ::llvm::StringLiteral kCandidatesAttr = "cuda.candidates"; ///< alternatives to cuda.tile
    static constexpr ::llvm::StringLiteral kProductAttr = "cuda.product";       ///< key of an op in plans
    static constexpr ::llvm::StringLiteral kAttentionAttr = "cuda.attention";
    static constexpr ::llvm::StringLiteral kGemvAttr = "cuda.gemv";
  }];
}

def Cuda_TileAttr : AttrDef<Cuda_Dialect, "Tile"> {
  let mnemonic = "tile";
  let summary = "The part of a contraction that a block of threads computes";
  let description = [{
    A block computes `rows` x `columns` sums, `kBytes` bytes of K per step; `stages` steps are being copied or in use in
    shared memory. `warps` states how warps divide rows, columns and K. kBytes counts elements of the left side's type,
    to which weights of other types are converted on their way to shared memory.
    Tensor cores multiply all types but f32, which the cores compute by fused multiply-adds. With `tf32`, f32 operands
    are rounded to 10 bits of fraction, and tensor cores multiply them. `split_k` blocks divide the steps of a tile (1
    is not printed): each stores its sums to scratch, and the last one to arrive adds all of them in the order of K and
    applies the epilogue. Each group of a convolution is a separate contraction.

    (C1) each warp has a multiple of 16 rows, at most 64, and 16, 32 or 64 columns. (C2) kBytes is 32, 64, 128 or 256, a
    multiple of 32 for each warp along K. (C3) at most 16 warps. (C4) 2 to 8 stages, and 48 KiB of shared memory suffice
    for them and for the sums of warps along K. (C5) rows and columns are multiples of the rows that all threads copy at
    once, 16 bytes each. (C6, of the op) tf32 requires f32 operands. (C7) 1 to 64 blocks divide a tile.
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$columns, "int64_t":$kBytes, "int64_t":$warpRows, "int64_t":$warpColumns,
      "int64_t":$warpK, "int64_t":$stages, DefaultValuedParameter<"int64_t", "1">:$splitK, DefaultValuedParameter<"bool", "false">:$tf32);
  let assemblyFormat = [{
    `<` $rows `x` $columns `,` `k_bytes` `=` $kBytes `,` `warps` `=` $warpRows `x` $warpColumns `x` $warpK `,` `stages` `=` $stages `` custom<TileOptions>($splitK, $tf32) `>`
  }];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t threads() const { return 32 * getWarpRows() * getWarpColumns() * getWarpK(); }
    int64_t stageBytes() const { return (getRows() + getColumns()) * getKBytes(); }
    /// Returns the bytes of shared memory.
    int64_t sharedBytes() const;
    /// Returns the bytes of the sums that a block stores for other blocks.
    int64_t partBytes() const { return getRows() * getColumns() * 4; }
    /// Returns the steps of one block for |bytes| of K.
    int64_t stepsOf(int64_t bytes) const {
      return ::llvm::divideCeil(::llvm::divideCeil(bytes, getKBytes()), getSplitK());
    }
    TileAttr withSplit(int64_t split) const {
      return get(getContext(), getRows(), getColumns(), getKBytes(), getWarpRows(), getWarpColumns(), getWarpK(), getStages(), split, getTf32());
    }
  }];
}

def Cuda_AttentionTileAttr : AttrDef<Cuda_Dialect, "AttentionTile"> {
  let mnemonic = "attention";
  let summary = "The part of an attention that a block of threads computes";
  let description = [{
    `warps` warps have 16 rows of q each and iterate over k and v, `keys` rows per step; two steps are being copied or
    in use in shared memory.

    (C1) 1, 2 or 4 warps. (C2) 32 or 64 keys.
  }];
  let parameters = (ins "int64_t":$warps, "int64_t":$keys);
  let assemblyFormat = "`<` `warps` `=` $warps `,` `keys` `=` $keys `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t rows() const { return 16 * getWarps(); }
  }];
}

def Cuda_GemvAttr : AttrDef<Cuda_Dialect, "Gemv"> {
  let mnemonic = "gemv";
  let summary = "The part of a matmul of few rows that a block of threads computes";
  let description = [{
    A warp sums `columns` columns of all rows; its threads read 16 bytes of the weights of each column at once, which
    are contiguous in memory. `warps` states how warps divide columns and K.

    (C1) 2 or 4 columns. (C2) 1 to 8 warps. (C3, of the op) at most 8 rows of f32, whose order of sums is not specified,
    by constant integer weights of one matrix that are packed for it, or whose K and weightGroup allow to pack them.
  }];
  let parameters = (ins "int64_t":$columns, "int64_t":$warpColumns, "int64_t":$warpK);
  let assemblyFormat = "`<` `columns` `=` $columns `,` `warps` `=` $warpColumns `x` $warpK `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t threads() const { return 32 * getWarpColumns() * getWarpK(); }
  }];
}

def Cuda_PackedOrder : I32EnumAttr<"PackedOrder", "the order of K in packed weights", [
    I32EnumAttrCase<"rows", 0>, I32EnumAttrCase<"taps", 1>, I32EnumAttrCase<"depthwise", 2>,
    I32EnumAttrCase<"bytes", 3>, I32EnumAttrCase<"nibbles", 4>]> {
  let cppNamespace = "::tessera::cuda";
  let genSpecializedAttr = 0;
}

def Cuda_PackingAttr : AttrDef<Cuda_Dialect, "Packing", [DeclareAttrInterfaceMethods<PackingInterface>]> {
  let mnemonic = "packing";
  let summary = "The order in which a kernel reads constant weights";
  let description = [{
    `shape`: the logical dims of the weights. The order of the packed weights is one of
    - `rows`: [N][K], K of a matrix, or (channel, kernel position) of a convolution that reads row-major x;
    - `taps`: [N][K], K being (kernel position, channel) of a channel-blocked x, with a run of the group's channels per
      kernel position;
    - `depthwise`: [kernel position][channel], channels padded to a multiple of a block;
    - `bytes`, `nibbles`: [N][K] of 8- or 4-bit integers in the order that `cuda.gemv` reads (GemvRows.h). Each row is
      followed by the scales of its `group`s of K; without a group there are none.
    Rows are padded with zeros to a multiple of 16 bytes of the left side's elements, because narrower weights are
    widened to these as they are read. So are the runs of channels of `taps` if there is a single group.

    (C1) shape: 2 or more dims, none negative. (C2) group: not negative, and 0 except for `bytes` and `nibbles`.
  }];
  let parameters = (ins EnumParameter<Cuda_PackedOrder>:$order, ArrayRefParameter<"int64_t">:$shape,
      DefaultValuedParameter<"int64_t", "0">:$group);
  let assemblyFormat = "`<` $order `,` `shape` `=` `[` $shape `]` (`,` `group` `=` $group^)? `>`";
  let genVerifyDecl = 1;
}

#endif // CUDA_DIALECT
