//===- ColumnStore.h - Stores sums of neighbouring columns ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_CUDA_CONTRACTION_COLUMNSTORE_H
#define TESSERA_CODEGEN_CUDA_CONTRACTION_COLUMNSTORE_H

#include "codegen/Cuda/Kernels/BlockBuilder.h"
#include "codegen/Kernels/Epilogue.h"

namespace tessera::cuda {

/// Applies bias and epilogue to a thread's sums of a convolution (whose columns are channels) or matmul, and stores
/// them.
class ColumnStore {
public:
  using Value = mlir::Value;

  explicit ColumnStore(BlockBuilder &b);

  /// Makes columns relative to group |group| (i32) of |count| groups that divide the columns of the result.
  void setGroup(Value group, int64_t count);

  /// Stores |sums| (a vector) of the columns from |column| on (i32, a multiple of their number) at |indices| (i64) of
  /// the result; sets the index of the column itself. Does not store columns beyond the last one, but writes zeros to
  /// padding lanes of a channel-blocked result. No thread has columns from |end| on.
  void store(llvm::SmallVector<Value> indices, Value column, Value sums, int64_t end);

  /// Stores zeros for |lanes| columns beyond the last one if the result has such lanes.
  void storePadding(llvm::SmallVector<Value> indices, Value column, int64_t lanes, int64_t end);

private:
  /// Returns the column's index in the result (i64).
  Value place(Value column) { return b.toIndex(first ? b.add(column, first) : column); }
  Value addBias(Value sums, Value column, unsigned lanes);
  void storeZeros(llvm::ArrayRef<Value> indices, Value column, int64_t lanes, int64_t end);

  BlockBuilder &b;
  kernels::KernelBuilder &kb;
  mlir::Value bias;    ///< null without a bias
  int64_t dim;         ///< dim of the columns in the result
  int64_t columns;     ///< number of columns of the group
  Value first, isLast; ///< first column of the group, and whether it is the last group; null without groups
  kernels::EpilogueStore epilogue;
};

} // namespace tessera::cuda

#endif // TESSERA_CODEGEN_CUDA_CONTRACTION_COLUMNSTORE_H
