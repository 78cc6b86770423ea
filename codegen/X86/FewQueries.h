//===- FewQueries.h - Attention of few rows over a cache --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_FEWQUERIES_H
#define TESSERA_CODEGEN_X86_FEWQUERIES_H

#include "codegen/Kernels/AttentionShape.h"
#include "codegen/X86/MicroShape.h"

namespace tessera::x86 {

/// Contractions of few rows of attention in f32 with k and v as they lie in memory: packing k costs more than such rows
/// do. All heads of q that read the same k and v, a group, take part in each pass over them. Every row has the bits
/// that it has alone. Row r of head h of the group has number r * group() + h.
class FewQueries {
public:
  /// For more rows of a head, packing k pays. Limits the guesses that are checked at once (tessera/llm/model.py).
  static constexpr int64_t kMostRows = 4;

  explicit FewQueries(const kernels::AttentionShape &shape);

  /// Returns true if attention of |shape| can read k and v directly.
  static bool canServe(const kernels::AttentionShape &shape);
  /// Returns the number of heads that share k and v: the size of q's last batch dim if k and v have size 1 there.
  int64_t group() const { return heads; }

  /// Stores the products of |count| rows of each head from |queries| on and each row of |keys| to |scores|, with
  /// |stride| floats between numbered rows. Stores up to a vector beyond the last key.
  void multiplyKeys(mlir::Value queries, mlir::Value count, mlir::Value keys, mlir::Value scores, int64_t stride) const;
  /// Stores the sums of the rows of |values|, times the |powers| of each numbered row, to |to|.
  void multiplyValues(mlir::Value powers, int64_t stride, mlir::Value count, mlir::Value values, mlir::Value to) const;

private:
  using Rows = llvm::SmallVector<mlir::Value>; ///< addresses of rows

  void forTiles(mlir::Value count, llvm::function_ref<void(mlir::Value row, int64_t head, int64_t heads)> body) const;
  void forKeys(llvm::function_ref<void(mlir::Value begin, mlir::Value end)> body) const;
  Rows rowsOf(const kernels::AttentionShape::Matrices &matrices, mlir::Value base, mlir::Value row, int64_t head,
              int64_t heads) const;
  Rows numberedRows(mlir::Value base, int64_t stride, mlir::Value row, int64_t head, int64_t heads) const;
  mlir::Value floats(mlir::Value base, mlir::Value index) const { return kb.element(kb.b.getF32Type(), base, index); }
  mlir::Value loadPart(mlir::Type element, mlir::Value row, int64_t part) const;
  void storeScores(llvm::ArrayRef<mlir::Value> queries, mlir::Value keys, mlir::Value first, int64_t count,
                   llvm::ArrayRef<mlir::Value> scores) const;
  llvm::SmallVector<mlir::Value> addHalves(llvm::ArrayRef<mlir::Value> vectors, int64_t group) const;
  void addValues(llvm::ArrayRef<mlir::Value> powers, mlir::Value values, mlir::Value first, mlir::Value end,
                 llvm::ArrayRef<mlir::Value> to) const;

  const kernels::AttentionShape &s;
  KernelBuilder &kb;
  int64_t heads = 1;
  int64_t lanes;
  int64_t sums; ///< vectors of sums that stay in registers
  mlir::VectorType vector;
};

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_FEWQUERIES_H
