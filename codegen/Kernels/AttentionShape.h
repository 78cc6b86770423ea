//===- AttentionShape.h - Operands shared by attention kernels --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_ATTENTIONSHAPE_H
#define TESSERA_CODEGEN_KERNELS_ATTENTIONSHAPE_H

#include "codegen/Kernels/KernelBuilder.h"
#include "device_dialect/IR/DeviceComputeOps.h"

namespace tessera::kernels {

/// Describes the operands of an attention op: y [..., queries, features] = softmax(scale q k^T + mask) v with q [...,
/// queries, depth], k [..., keys, depth], v [..., keys, features]. Batch dims of size 1 broadcast. Elements of a row
/// are contiguous; the op's views give the offsets and strides of rows. Depth and features are numbers.
struct AttentionShape {
  explicit AttentionShape(KernelBuilder &kb);

  /// A stack of matrices: all dims of |sizes| but the last two count matrices.
  struct Matrices {
    llvm::SmallVector<Dim> sizes, strides; ///< in elements
    int64_t offset;                        ///< of the first element

    Matrices(device::AttentionOp op, unsigned index);
    int64_t rowStride() const { return strides[strides.size() - 2].value(); }
    /// Returns true if every row begins at a multiple of |elements|.
    bool begin(int64_t elements) const;
  };

  /// Returns the element offset of the matrix at batch indices |at|.
  mlir::Value matrixBase(const Matrices &matrices, llvm::ArrayRef<mlir::Value> at) const;
  /// Returns the element offset of the mask at (|row|, |key|).
  mlir::Value maskOffset(llvm::ArrayRef<mlir::Value> at, mlir::Value row, mlir::Value key) const;
  /// Loads |lanes| neighbouring values of the mask, from (|row|, |key|) on; lanes that |active| (null: all lanes)
  /// excludes are not read.
  mlir::Value loadMask(llvm::ArrayRef<mlir::Value> at, mlir::Value row, mlir::Value key, unsigned lanes,
                       mlir::Value active) const;
  llvm::ArrayRef<Dim> batchDims() const { return llvm::ArrayRef(q.sizes).drop_back(2); }

  bool isOfIntegers() const { return levels != 0; }
  /// Returns the type for sums of |count| products of integers of magnitude up to |reach| with bytes: f32 if its sums
  /// are exact, because vector units multiply and add floats in one instruction, otherwise i32.
  mlir::Type sumType(int64_t count, int64_t reach) const;
  mlir::Type scoreSumType() const { return sumType(depth, 128); }
  mlir::Type valueSumType() const { return sumType(maxOf(keys), levels); }
  /// Converts |value|, a scalar or vector of a register type, to |type|, which is f32 or i32. Integers are signed.
  mlir::Value convert(mlir::Value value, mlir::Type type) const;
  /// For integer attention: rounds |power|, in [0, 1], to the nearest of |levels| steps; returns the step's number as
  /// f32.
  mlir::Value rounded(mlir::Value power) const;
  /// Returns the number to subtract from a row's scores before exp: |best|, their maximum, or a finite number if masked
  /// rows are zeroed and |best| is -inf.
  mlir::Value referenceOf(mlir::Value best) const;
  /// Returns the factor that scales the sums over v, if the row's powers add up to |total|.
  mlir::Value factorOf(mlir::Value total) const;

  /// Applies the op's epilogue to |value|, results in f32.
  mlir::Value stored(mlir::Value value) const;
  mlir::Type resultElement() const { return kb.resultType().getElementType(); }

  KernelBuilder &kb;
  double scale, valueScale = 1; ///< |valueScale| is the scale of v in integer attention
  int64_t levels = 0;           ///< number of steps of a power in integer attention, 0 in float attention
  bool isMasked;                ///< operand 3 is a mask
  bool zeroesMaskedRows;        ///< rows whose scores are all -inf give 0
  Matrices q, k, v, y;
  Dim queries, keys;
  int64_t depth, features;
};

/// Describes attention whose sizes are all numbers.
struct FixedAttentionShape : AttentionShape {
  explicit FixedAttentionShape(const AttentionShape &shape)
      : AttentionShape(shape), queries(shape.queries.value()), keys(shape.keys.value()),
        batch(llvm::map_to_vector(shape.batchDims(), [](Dim size) { return size.value(); })) {}

  llvm::ArrayRef<int64_t> batchDims() const { return batch; }

  int64_t queries, keys;

private:
  llvm::SmallVector<int64_t> batch;
};

/// Emits attention in which kRowThreads threads share each row of q (KernelBuilder::forSharedRows). No constant
/// dimension may be 0.
void emitSharedAttention(const AttentionShape &shape);

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_ATTENTIONSHAPE_H
