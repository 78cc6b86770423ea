//===- CudaDialect.td - How tensor cores are used --------------*- tablegen -*-===//
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
  let summary = "Decisions about device ops that only the family of NVIDIA's GPUs takes";
  let description = [{
    No ops: attributes of device ops. `cuda.tile` on a `device.conv` or `device.matmul` says that blocks of threads compute it by tiles,
    and how; `cuda.attention` on a `device.attention` the same, and `cuda.gemv` on a `device.matmul` of few rows by integer weights.
    `cuda.candidates`, a list of tiles that could be taken instead, and `cuda.product`, by which a plan names the product, stand beside
    `cuda.tile`.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    static constexpr ::llvm::StringLiteral kTileAttr = "cuda.tile";
    static constexpr ::llvm::StringLiteral kCandidatesAttr = "cuda.candidates"; ///< tiles, beside cuda.tile
    static constexpr ::llvm::StringLiteral kProductAttr = "cuda.product";       ///< content address, beside cuda.tile
    static constexpr ::llvm::StringLiteral kAttentionAttr = "cuda.attention";
    static constexpr ::llvm::StringLiteral kGemvAttr = "cuda.gemv";
  }];
}

def Cuda_TileAttr : AttrDef<Cuda_Dialect, "Tile"> {
  let mnemonic = "tile";
  let summary = "The part of a product that a block of threads computes";
  let description = [{
    `rows` x `columns` sums of `kBytes` bytes of K a step, of which `stages` are on their way or in use in shared memory. Warps share
    rows, columns and K as `warps` says; kBytes are of the left side's elements, which weights of other types become on their way.
    Tensor cores multiply, but for f32, whose products the cores add by fused multiply-adds; with
    `tf32` the factors of those are rounded to 10 bits of fraction, and tensor cores multiply them. `split_k` blocks share the steps of
    a tile (1 is not printed): each leaves its sums in scratch, and the last one to arrive adds all of them, in the order of K, and
    goes through the epilogue. Groups of a convolution are products of their own.

    (C1) each warp has a multiple of 16 rows, at most 64, and 16, 32 or 64 columns. (C2) kBytes is 32, 64, 128 or 256, a multiple
    of 32 for each warp along K. (C3) at most 16 warps. (C4) 2 to 8 stages, and 48 KiB of shared memory suffice for them and
    for the sums of warps along K. (C5) rows and columns are multiples of the rows that all threads copy at once, 16 bytes each.
    (C6, of the op) tf32 is for factors of f32. (C7) 1 to 64 blocks share a tile.
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
    /// Of shared memory.
    int64_t sharedBytes() const;
    /// Of the sums that a block leaves for others.
    int64_t partBytes() const { return getRows() * getColumns() * 4; }
    /// Of |bytes| of K, for one block.
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
    `warps` warps have 16 rows of q each, and go through k and v by `keys` rows a step, of which two are on their way or in use in shared
    memory.

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
  let summary = "The part of a product of few rows that a block of threads computes";
  let description = [{
    A warp sums `columns` columns of all rows: its threads read 16 bytes of the weights of each at once, neighbours in memory. Warps
    share columns and K as `warps` says.

    (C1) 2 or 4 columns. (C2) 1 to 8 warps. (C3, of the op) at most 8 rows of f32, whose order of sums is not stated, by constant
    integer weights of one matrix, packed for it or with K and weightGroup that can be.
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
    `shape`: the logical dims of the weights. They lie as
    - `rows`: [N][K], K of a matrix, or (channel, kernel position) of a convolution that reads row-major x;
    - `taps`: [N][K], K being (kernel position, channel) of a channel-blocked x, a run of channels (of the group) each;
    - `depthwise`: [kernel position][channel], channels up to a multiple of a block;
    - `bytes`, `nibbles`: [N][K] of integers of 8 or 4 bits in the order of `cuda.gemv` (GemvRows.h), and behind each row the
      scales of its `group`s of K; without a group there are none.
    Rows, and of one group the runs of channels of `taps`, are padded with zeros to a multiple of 16 bytes of the left side's elements:
    weights that are narrower than these become such as they are read.

    (C1) shape: 2 or more dims, none negative. (C2) group: of `bytes` and `nibbles` alone, not negative.
  }];
  let parameters = (ins EnumParameter<Cuda_PackedOrder>:$order, ArrayRefParameter<"int64_t">:$shape,
      DefaultValuedParameter<"int64_t", "0">:$group);
  let assemblyFormat = "`<` $order `,` `shape` `=` `[` $shape `]` (`,` `group` `=` $group^)? `>`";
  let genVerifyDecl = 1;
}

#endif // CUDA_DIALECT
