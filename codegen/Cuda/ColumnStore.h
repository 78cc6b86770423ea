//===- ColumnStore.h - Sums of neighbouring columns -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_CUDA_COLUMNSTORE_H
#define TESSERA_CODEGEN_CUDA_COLUMNSTORE_H

#include "codegen/Cuda/BlockBuilder.h"
#include "codegen/Kernels/Epilogue.h"

namespace tessera::cuda {

/// Stores what a thread has summed of a convolution (columns: channels) or matrix product, through bias and epilogue.
class ColumnStore {
public:
  using Value = mlir::Value;

  explicit ColumnStore(BlockBuilder &b);

  /// From here on columns are those of group |group| (i32) of |count| that share the result's.
  void setGroup(Value group, int64_t count);

  /// |sums| (vector) of the columns from |column| (i32, a multiple of their number) on at |indices| (i64) of the
  /// result, of which that of the column is set here, as far as there are such columns; zeros in the lanes beyond of a
  /// channel-blocked result. No thread has a column from |end| on.
  void store(llvm::SmallVector<Value> indices, Value column, Value sums, int64_t end);

  /// Of |lanes| columns that are beyond the last: zeros where the result has them.
  void storePadding(llvm::SmallVector<Value> indices, Value column, int64_t lanes, int64_t end);

private:
  /// Among the result's (i64).
  Value place(Value column) { return b.toIndex(first ? b.add(column, first) : column); }
  Value addBias(Value sums, Value column, unsigned lanes);
  void storeZeros(llvm::ArrayRef<Value> indices, Value column, int64_t lanes, int64_t end);

  BlockBuilder &b;
  kernels::KernelBuilder &kb;
  mlir::Value bias;    ///< null without one
  int64_t dim;         ///< of columns
  int64_t columns;     ///< of the group
  Value first, isLast; ///< column of the group, and whether it is the last one; null where there is one
  kernels::EpilogueStore epilogue;
};

} // namespace tessera::cuda

#endif // TESSERA_CODEGEN_CUDA_COLUMNSTORE_H
