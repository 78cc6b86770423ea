//===- CudaDialect.h - Attributes of the cuda family ------------*- C++ -*-===//
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

/// Channels per block of channel-blocked tensors.
inline constexpr int64_t kBlockChannels = 32;

/// Returns the type of the constant that holds weights of |element|s of |op| packed by |packing|.
mlir::RankedTensorType packedType(PackingAttr packing, mlir::Operation *op, mlir::Type element);

/// Returns true if blocks of threads can compute |op| by tiles, with packed weights if they are constant. |op| is a
/// convolution whose groups have more than one channel, or a matmul; of 8-bit integers, of f32, f16 or bf16 whose order
/// of sums is not specified, or of f32 by constant weights of integers, f16 or bf16.
bool fitsTile(mlir::Operation *op);

/// Returns the number of channels per kernel position in weights of order `taps`, and in x as they read it: with a
/// single group padded to 16 bytes of x's elements, with several groups the channels of a group.
int64_t channelRun(tessera::device::ConvOp conv);

/// Returns true if |op|, for which fitsTile() holds, multiplies f32 by constant weights of bytes, f16 or bf16, which
/// become f32 on their way to shared memory.
bool widensWeights(mlir::Operation *op);

/// Returns true if tensor cores can compute |op|: attention of f16 or bf16 whose order of sums is not specified, with
/// enough rows of q for a tile and up to kMostFeatures elements per row of q and v, in whole runs of 16 bytes.
/// If |element| is given, q, k and v are assumed to have that type.
bool fitsTensorCores(tessera::device::AttentionOp op, mlir::Type element = {});
inline constexpr int64_t kMostFeatures = 128;

/// Returns the tile of an attention that tensor cores compute; null for other ops.
AttentionTileAttr attentionTileOf(mlir::Operation *op);

/// Returns the tile of an op that is computed by tiles; null for other ops.
TileAttr tileOf(mlir::Operation *op);

/// Returns true if tensor cores compute |op| with |tile|: all types but f32, and f32 that is rounded to tf32.
bool isOnTensorCores(mlir::Operation *op, TileAttr tile);

/// Returns true if |op| can have cuda.gemv (GemvAttr).
bool fitsGemv(mlir::Operation *op);

/// Returns cuda.gemv of |op|; null for other ops.
GemvAttr gemvOf(mlir::Operation *op);

/// Returns the packing of an op whose weights are packed; null for other ops.
PackingAttr packingOf(mlir::Operation *op);

} // namespace tessera::cuda

#endif // TESSERA_CODEGEN_CUDA_IR_CUDADIALECT_H
