//===- CudaDialect.h - How tensor cores are used ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_CUDA_IR_CUDADIALECT_H
#define TESSERA_CODEGEN_CUDA_IR_CUDADIALECT_H

#include "device_dialect/IR/DeviceComputeOps.h"
#include "device_dialect/IR/DeviceInterfaces.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "llvm/Support/MathExtras.h"
#include <optional>

#include "codegen/Cuda/IR/CudaDialect.h.inc"
#include "codegen/Cuda/IR/CudaEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "codegen/Cuda/IR/CudaAttrs.h.inc"

namespace tessera::cuda {

/// Channels of a block of channel-blocked tensors.
inline constexpr int64_t kBlockChannels = 32;

/// Dims of the constant that |packing| makes of weights of |element|s.
mlir::RankedTensorType packedType(PackingAttr packing, mlir::Operation *op, mlir::Type element);

/// Whether blocks of threads can compute |op| by tiles, with constant weights packed for that, if it has some: a
/// convolution whose groups have more than a channel or a product of 8-bit integers, or of f32, f16 or bf16 whose order
/// of sums is not stated, or of f32 by constant weights of integers, f16 or bf16.
bool fitsTile(mlir::Operation *op);

/// Channels of a kernel position in weights of order `taps`, or of x by these: of one group up to 16 bytes of x's
/// elements, of several what each has.
int64_t channelRun(tessera::device::ConvOp conv);

/// Whether the right side of |op|, which fitsTile(), has another type than the f32 of the left one: constant weights of
/// bytes, f16 or bf16, which become f32 on their way to shared memory.
bool widensWeights(mlir::Operation *op);

/// Whether tensor cores can compute |op|: attention of f16 or bf16 whose order of sums is not stated, of rows of q
/// enough for a tile, of up to kMostFeatures of q and of v, in whole runs of 16 bytes. With |element|: were q, k and v
/// of that.
bool fitsTensorCores(tessera::device::AttentionOp op, mlir::Type element = {});
inline constexpr int64_t kMostFeatures = 128;

/// The tile of an attention that tensor cores compute; null for others.
AttentionTileAttr attentionTileOf(mlir::Operation *op);

/// The tile of an op that is computed by tiles; null for others.
TileAttr tileOf(mlir::Operation *op);

/// Whether tensor cores compute |op|, which has |tile|: all but products of f32, unless their factors become tf32.
bool isOnTensorCores(mlir::Operation *op, TileAttr tile);

/// Whether a warp can sum columns of |op| (GemvAttr).
bool fitsGemv(mlir::Operation *op);

/// How an op of few rows is computed; null for others.
GemvAttr gemvOf(mlir::Operation *op);

/// The packing of an op whose weights are packed; null for others.
PackingAttr packingOf(mlir::Operation *op);

} // namespace tessera::cuda

#endif // TESSERA_CODEGEN_CUDA_IR_CUDADIALECT_H
