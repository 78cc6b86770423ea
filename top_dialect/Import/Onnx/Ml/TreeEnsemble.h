//===- TreeEnsemble.h - Decision trees as tables that a walk gathers from -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "top_dialect/Import/Onnx/NodeImporter.h"

namespace tessera::top::onnx_import {

enum class Branch { leq, lt, gte, gt, eq, neq, leaf };
enum class Aggregate { average, sum, min, max };

/// All nodes of all trees; those of leaves point to themselves.
struct Forest {
  llvm::SmallVector<Branch> branches;
  Ints features, whenTrue, whenFalse, missingIsTrue;
  llvm::SmallVector<double> splits;
  Ints roots;
  int64_t targets = 1;
  llvm::SmallVector<double> weights; ///< [nodes, targets]
  std::vector<bool> hasWeight;       ///< like weights: a target that a leaf says nothing of has none
  Aggregate aggregate = Aggregate::sum;
  llvm::SmallVector<double> base; ///< one per target, or none

  int64_t size() const { return static_cast<int64_t>(branches.size()); }
  int64_t add(Branch branch, int64_t feature, double split, bool missingIsTrue);
  void setWeight(int64_t node, int64_t target, double value);
  /// Returns the number of branches on the longest path; -1 if a path does not end.
  int64_t depth() const;
  bool isComplete() const; ///< each leaf has a weight for each target
};

/// The scores of the rows of |x| [B, features], in its type.
struct ForestScores {
  mlir::Value scores;  ///< [B, targets]
  mlir::Value isKnown; ///< i1 [B, targets]: a leaf has a weight for the target; null if all have
};
ForestScores evaluateForest(NodeImporter &n, const Forest &forest, mlir::Value x);
/// The attribute post_transform applied to scores [B, targets].
mlir::Value postTransform(NodeImporter &n, mlir::Value scores, llvm::StringRef name);
/// |x| [B, features] in f64 if its type is f64 or an integer, else in f32; a vector counts as one row.
mlir::Value treeInput(NodeImporter &n);

} // namespace tessera::top::onnx_import
