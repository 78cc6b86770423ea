//===- AttentionShape.h - What attention kernels share ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_ATTENTIONSHAPE_H
#define TESSERA_CODEGEN_KERNELS_ATTENTIONSHAPE_H

#include "codegen/Kernels/KernelBuilder.h"

namespace tessera::kernels {

/// The operands of an attention op: y [..., queries, features] = softmax(scale q k^T + mask) v with q [..., queries,
/// depth], k [..., keys, depth], v [..., keys, features]; batch dims of size 1 broadcast.
struct AttentionShape {
  AttentionShape(KernelBuilder &kb, double scale, bool isMasked);

  /// Element offset of the matrix of |tensor| at the batch indices |at|.
  mlir::Value matrixBase(mlir::RankedTensorType tensor, llvm::ArrayRef<mlir::Value> at) const;
  /// |lanes| values of the mask at (|row|, |key|...), of which those in |active| (null: all) exist.
  mlir::Value loadMask(llvm::ArrayRef<mlir::Value> at, mlir::Value row, mlir::Value key, unsigned lanes,
                       mlir::Value active) const;

  KernelBuilder &kb;
  double scale;
  bool isMasked; ///< operand 3 is a mask
  mlir::RankedTensorType q, k, v, y;
  int64_t queries, depth, keys, features;
};

/// Emits the attention with each row of q shared by kRowThreads threads (KernelBuilder::forSharedRows). Sizes are not
/// 0.
void emitSharedAttention(const AttentionShape &shape);

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_ATTENTIONSHAPE_H
