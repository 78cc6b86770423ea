//===- TreeEnsemble.h - Decision trees as tables read with Gather --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IMPORT_ONNX_ML_TREEENSEMBLE_H
#define TESSERA_TOP_DIALECT_IMPORT_ONNX_ML_TREEENSEMBLE_H

#include "top_dialect/Import/Onnx/NodeImporter.h"

namespace tessera::top::onnx_import {

enum class Branch { leq, lt, gte, gt, eq, neq, leaf };
enum class Aggregate { average, sum, min, max };

/// All nodes of all trees. Both successors of a leaf are the leaf itself.
struct Forest {
  llvm::SmallVector<Branch> branches;
  Ints features, whenTrue, whenFalse, missingIsTrue;
  llvm::SmallVector<double> splits;
  Ints roots;
  int64_t targets = 1;
  llvm::SmallVector<double> weights; ///< [nodes, targets]
  std::vector<bool> hasWeight;       ///< [nodes, targets]: false where a leaf has no weight for a target
  Aggregate aggregate = Aggregate::sum;
  llvm::SmallVector<double> base; ///< one value per target, or empty

  int64_t size() const { return static_cast<int64_t>(branches.size()); }
  int64_t add(Branch branch, int64_t feature, double split, bool missingIsTrue);
  void setWeight(int64_t node, int64_t target, double value);
  /// Returns the number of branches on the longest path, or -1 if a path does not end.
  int64_t depth() const;
  bool isComplete() const; ///< whether each leaf has a weight for each target
};

/// The scores for the rows of |x| [B, features], in the type of |x|.
struct ForestScores {
  mlir::Value scores;  ///< [B, targets]
  mlir::Value isKnown; ///< i1 [B, targets]: whether the leaf that was reached has a weight for the target; null if all
                       ///< have
};
ForestScores evaluateForest(NodeImporter &n, const Forest &forest, mlir::Value x);
/// Applies the attribute post_transform, |name|, to scores [B, targets].
mlir::Value postTransform(NodeImporter &n, mlir::Value scores, llvm::StringRef name);
/// Returns the node's input as [B, features], in f64 if its type is f64 or an integer, else in f32. A vector counts as
/// one row.
mlir::Value treeInput(NodeImporter &n);

} // namespace tessera::top::onnx_import

#endif // TESSERA_TOP_DIALECT_IMPORT_ONNX_ML_TREEENSEMBLE_H
