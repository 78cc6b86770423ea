//===- TreeEnsemble.cpp - Decision trees as tables read with Gather -------===//
// SPDX-License-Identifier: Apache-2.0
//
// All trees are evaluated at the same time: each step gathers the comparisons of the current nodes [B, trees] and moves
// to one of their children. The number of steps is the depth of the deepest tree.
#include "top_dialect/Import/Onnx/Ml/TreeEnsemble.h"

#include "llvm/Support/FormatVariadic.h"

#include <limits>

using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

constexpr int64_t kDeepest = 256;

Value table(NodeImporter &n, const Ints &values) { return n.cast(n.intVector(values), n.b.getI32Type()); }

Value lookUp(NodeImporter &n, Value table, Value at) { return n.create<GatherOp>(table, at, 0); }

CompareKind kindOf(Branch branch) {
  switch (branch) {
  case Branch::leq:
    return CompareKind::le;
  case Branch::lt:
    return CompareKind::lt;
  case Branch::gte:
    return CompareKind::ge;
  case Branch::gt:
    return CompareKind::gt;
  case Branch::neq:
    return CompareKind::ne;
  default:
    return CompareKind::eq;
  }
}

/// One evaluation of all trees.
class Walk {
public:
  Walk(NodeImporter &n, const Forest &forest, Value x) : n(n), forest(forest), x(x) {
    features = table(n, forest.features);
    whenTrue = table(n, forest.whenTrue);
    whenFalse = table(n, forest.whenFalse);
    splits = n.floatConstant(NodeImporter::elementType(x), {forest.size()}, forest.splits);
    for (Branch branch : forest.branches) {
      if (branch != Branch::leaf && !llvm::is_contained(kinds, branch)) {
        kinds.push_back(branch);
      }
    }
    if (llvm::any_of(forest.missingIsTrue, [](int64_t flag) { return flag != 0; })) {
      missingIsTrue = n.cast(n.intVector(forest.missingIsTrue), n.b.getI1Type());
    }
  }

  /// Returns the leaves [B, trees] that the rows of x reach.
  Value run() {
    Ints dims{NodeImporter::dim(x, 0), static_cast<int64_t>(forest.roots.size())};
    Value at = n.create<ExpandOp>(n.reshape(table(n, forest.roots), {1, dims[1]}), Value(), dims);
    for (int64_t step = 0; step < forest.depth() && !n.failed(); ++step) {
      at = n.create<WhereOp>(decide(at), lookUp(n, whenTrue, at), lookUp(n, whenFalse, at));
    }
    return at;
  }

private:
  Value decide(Value at) {
    Value value = n.create<GatherElementsOp>(x, lookUp(n, features, at), 1), split = lookUp(n, splits, at);
    Value holds;
    for (Branch kind : kinds) {
      Value one = n.create<CompareOp>(value, split, kindOf(kind));
      if (!holds) {
        holds = one;
        continue;
      }
      Ints flags;
      for (Branch branch : forest.branches) {
        flags.push_back(branch == kind);
      }
      Value isKind = lookUp(n, n.cast(n.intVector(flags), n.b.getI1Type()), at);
      holds = n.create<WhereOp>(isKind, one, holds);
    }
    if (missingIsTrue) {
      Value isMissing = n.create<AndOp>(n.create<IsNanOp>(value), lookUp(n, missingIsTrue, at));
      holds = n.create<OrOp>(holds, isMissing);
    }
    return holds;
  }

  NodeImporter &n;
  const Forest &forest;
  Value x, features, whenTrue, whenFalse, splits, missingIsTrue;
  llvm::SmallVector<Branch> kinds;
};

/// Returns the contribution of a leaf that has no weight for a target.
double neutral(Aggregate aggregate) {
  double infinity = std::numeric_limits<double>::infinity();
  return aggregate == Aggregate::min ? infinity : aggregate == Aggregate::max ? -infinity : 0.0;
}

/// Replaces infinities by 0. They occur for targets without any weight.
Value dropInfinities(NodeImporter &n, Value scores) {
  return n.create<WhereOp>(n.create<IsInfOp>(scores, true, true), n.scalarLike(scores, 0), scores);
}

/// Returns for which targets a leaf reached by a row has a weight, as i1 [B, targets].
Value findKnown(NodeImporter &n, const Forest &forest, Value leaves) {
  Ints flags(forest.hasWeight.begin(), forest.hasWeight.end());
  Value flagTable = n.reshape(table(n, flags), {forest.size(), forest.targets});
  Value count = n.create<ReduceOp>(lookUp(n, flagTable, leaves), ReduceKind::max, Ints{1}, false);
  return n.cast(count, n.b.getI1Type());
}

} // namespace

bool Forest::isComplete() const {
  for (int64_t node = 0; node < size(); ++node) {
    for (int64_t target = 0; branches[node] == Branch::leaf && target < targets; ++target) {
      if (!hasWeight[node * targets + target]) {
        return false;
      }
    }
  }
  return true;
}

int64_t Forest::add(Branch branch, int64_t feature, double split, bool isTrueIfMissing) {
  int64_t node = size();
  branches.push_back(branch);
  features.push_back(feature);
  splits.push_back(split);
  missingIsTrue.push_back(isTrueIfMissing);
  whenTrue.push_back(node);
  whenFalse.push_back(node);
  weights.resize(weights.size() + targets, 0.0);
  hasWeight.resize(weights.size(), false);
  return node;
}

void Forest::setWeight(int64_t node, int64_t target, double value) {
  weights[node * targets + target] += value;
  hasWeight[node * targets + target] = true;
}

int64_t Forest::depth() const {
  Ints level(roots);
  std::vector<bool> isThere;
  for (int64_t depth = 0; depth <= kDeepest; ++depth) {
    isThere.assign(branches.size(), false);
    Ints next;
    for (int64_t node : level) {
      for (int64_t child : {whenTrue[node], whenFalse[node]}) {
        if (branches[node] != Branch::leaf && !isThere[child]) {
          isThere[child] = true;
          next.push_back(child);
        }
      }
    }
    if (next.empty()) {
      return depth;
    }
    level = next;
  }
  return -1;
}

ForestScores evaluateForest(NodeImporter &n, const Forest &forest, Value x) {
  int64_t columns = NodeImporter::dim(x, 1);
  if (!n.failed() &&
      (NodeImporter::rank(x) != 2 || llvm::any_of(NodeImporter::shape(x), mlir::ShapedType::isDynamic))) {
    n.unsupported("its input is not a matrix of static dims: fix them with --input_shapes");
  }
  if (!n.failed() && forest.depth() < 0) {
    n.fail(llvm::formatv("its trees have a cycle, or more than {0} branches on a path", kDeepest));
  }
  for (int64_t feature : forest.features) {
    if (!n.failed() && (feature < 0 || feature >= columns)) {
      n.fail(llvm::formatv("a node reads feature {0}; the input has {1} columns", feature, columns));
    }
  }
  if (n.failed()) {
    return {x, {}};
  }
  Value leaves = Walk(n, forest, x).run();
  llvm::SmallVector<double> weights(forest.weights);
  for (size_t i = 0; i < weights.size(); ++i) {
    weights[i] = forest.hasWeight[i] ? weights[i] : neutral(forest.aggregate);
  }
  mlir::Type element = NodeImporter::elementType(x);
  Value byTree = lookUp(n, n.floatConstant(element, {forest.size(), forest.targets}, weights), leaves);
  bool isMin = forest.aggregate == Aggregate::min, isMax = forest.aggregate == Aggregate::max;
  ReduceKind kind = isMin ? ReduceKind::min : isMax ? ReduceKind::max : ReduceKind::sum;
  Value scores = n.create<ReduceOp>(byTree, kind, Ints{1}, false);
  if (isMin || isMax) {
    scores = dropInfinities(n, scores);
  }
  if (forest.aggregate == Aggregate::average) {
    scores = n.create<DivOp>(scores, n.scalar(element, static_cast<double>(forest.roots.size())));
  }
  if (!forest.base.empty()) {
    auto count = static_cast<int64_t>(forest.base.size());
    scores = n.create<AddOp>(scores, n.floatConstant(element, {count}, forest.base));
  }
  return {scores, forest.isComplete() ? Value() : findKnown(n, forest, leaves)};
}

Value postTransform(NodeImporter &n, Value scores, llvm::StringRef name) {
  if (name == "NONE") {
    return scores;
  }
  if (name == "LOGISTIC") {
    return n.create<SigmoidOp>(scores);
  }
  if (name == "SOFTMAX") {
    return n.create<SoftmaxOp>(scores, 1, false);
  }
  if (name == "SOFTMAX_ZERO") { // scores of 0 are unchanged and do not take part
    Value isZero = n.create<CompareOp>(n.create<AbsOp>(scores), n.scalarLike(scores, 1e-7), CompareKind::le);
    Value hidden = n.create<WhereOp>(isZero, n.scalarLike(scores, -std::numeric_limits<double>::infinity()), scores);
    return n.create<WhereOp>(isZero, n.scalarLike(scores, 0), n.create<SoftmaxOp>(hidden, 1, false));
  }
  n.unsupported(llvm::formatv("post_transform '{0}' is not supported; supported are NONE, LOGISTIC, SOFTMAX and "
                              "SOFTMAX_ZERO",
                              name));
  return scores;
}

Value treeInput(NodeImporter &n) {
  Value x = n.input(0);
  bool isWide = NodeImporter::elementType(x).isF64() || !NodeImporter::isFloat(x);
  x = n.cast(x, isWide ? n.b.getF64Type() : n.b.getF32Type());
  return NodeImporter::rank(x) == 1 ? n.reshape(x, {1, NodeImporter::dim(x, 0)}) : x;
}

} // namespace tessera::top::onnx_import
