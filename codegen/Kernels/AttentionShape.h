//===- AttentionShape.h - What attention kernels share ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_ATTENTIONSHAPE_H
#define TESSERA_CODEGEN_KERNELS_ATTENTIONSHAPE_H

#include "codegen/Kernels/KernelBuilder.h"
#include "device_dialect/IR/DeviceComputeOps.h"

namespace tessera::kernels {

/// The operands of an attention op: y [..., queries, features] = softmax(scale q k^T + mask) v with q [..., queries,
/// depth], k [..., keys, depth], v [..., keys, features]; batch dims of size 1 broadcast. Elements of a row are
/// neighbours, rows lie where the op's views say.
struct AttentionShape {
  explicit AttentionShape(KernelBuilder &kb);

  /// Matrices, one for each of |sizes| but the last two.
  struct Matrices : device::AttentionOp::View {
    int64_t rowStride() const { return strides[strides.size() - 2]; } ///< in elements
    /// Whether all rows begin at multiples of |elements|.
    bool begin(int64_t elements) const;
  };

  /// Element offset of the one of |matrices| at the batch indices |at|.
  mlir::Value matrixBase(const Matrices &matrices, llvm::ArrayRef<mlir::Value> at) const;
  /// Element offset of the mask at (|row|, |key|).
  mlir::Value maskOffset(llvm::ArrayRef<mlir::Value> at, mlir::Value row, mlir::Value key) const;
  /// |lanes| values of the mask at (|row|, |key|...), of which those in |active| (null: all) exist.
  mlir::Value loadMask(llvm::ArrayRef<mlir::Value> at, mlir::Value row, mlir::Value key, unsigned lanes,
                       mlir::Value active) const;
  llvm::ArrayRef<int64_t> batchDims() const { return llvm::ArrayRef(q.sizes).drop_back(2); }

  bool isOfIntegers() const { return levels != 0; }
  /// The type of sums of |count| products of integers up to |reach| with bytes: f32 where that is exact, which vectors
  /// multiply and add at once.
  mlir::Type sumType(int64_t count, int64_t reach) const;
  mlir::Type scoreSumType() const { return sumType(depth, 128); }
  mlir::Type valueSumType() const { return sumType(keys, levels); }
  /// |value| of a register type as |type|, f32 or i32; integers have signs. Scalar or vector.
  mlir::Value convert(mlir::Value value, mlir::Type type) const;
  /// Of integers: |power|, at most 1, in so many steps, as a whole f32.
  mlir::Value rounded(mlir::Value power) const;
  /// The number that a row's scores are reduced by, where |best| is the largest of them.
  mlir::Value referenceOf(mlir::Value best) const;
  /// The factor of sums over v, where the sum of the powers is |total|.
  mlir::Value factorOf(mlir::Value total) const;

  /// What is stored of |value|, results in f32: the op's epilogue runs.
  mlir::Value stored(mlir::Value value) const;
  mlir::Type resultElement() const { return kb.resultType().getElementType(); }

  KernelBuilder &kb;
  double scale, valueScale = 1; ///< the latter of integers
  int64_t levels = 0;           ///< of powers where products are of integers
  bool isMasked;                ///< operand 3 is a mask
  bool zeroesMaskedRows;        ///< a row whose scores are all -inf is 0
  Matrices q, k, v, y;
  int64_t queries, depth, keys, features;
};

/// Emits the attention with each row of q shared by kRowThreads threads (KernelBuilder::forSharedRows). Sizes are not
/// 0.
void emitSharedAttention(const AttentionShape &shape);

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_ATTENTIONSHAPE_H
