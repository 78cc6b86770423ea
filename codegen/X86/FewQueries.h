//===- FewQueries.h - Attention of few rows over a cache --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_FEWQUERIES_H
#define TESSERA_CODEGEN_X86_FEWQUERIES_H

#include "codegen/Kernels/AttentionShape.h"
#include "codegen/X86/MicroShape.h"

namespace tessera::x86 {

/// Contractions of single rows of attention in f32 with k and v as they lie in memory: packing k costs more than such
/// a row does.
class FewQueries {
public:
  /// For more rows, packing k pays. Limits the guesses that are checked at once (tessera/llm/model.py).
  static constexpr int64_t kMostRows = 4;

  explicit FewQueries(const kernels::AttentionShape &shape);

  /// Returns true if attention of |shape| can read k and v directly.
  static bool canServe(const kernels::AttentionShape &shape);

  /// Stores the products of |query| and each row of |keys| to |scores|.
  void multiplyKeys(mlir::Value query, mlir::Value keys, mlir::Value scores) const;
  /// Stores the sum of the rows of |values|, each times its one of |powers|, to |to|.
  void multiplyValues(mlir::Value powers, mlir::Value values, mlir::Value to) const;

private:
  mlir::Value loadPart(mlir::Value base, mlir::Value row, int64_t stride, int64_t part) const;
  mlir::Value dot(llvm::ArrayRef<mlir::Value> query, mlir::Value keys, mlir::Value key) const;
  mlir::Value sumsOfLanes(llvm::SmallVector<mlir::Value> vectors) const;

  const kernels::AttentionShape &s;
  KernelBuilder &kb;
  int64_t lanes;
  mlir::VectorType vector;
};

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_FEWQUERIES_H
