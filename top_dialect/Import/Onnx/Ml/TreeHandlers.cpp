//===- TreeHandlers.cpp - Handlers of TreeEnsemble and its two predecessors --===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/Ml/TreeEnsemble.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

#include <limits>

using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

/// Names of the attributes with the weights of the leaves in TreeEnsembleClassifier and TreeEnsembleRegressor.
struct WeightNames {
  const char *trees, *nodes, *targets, *weights;
};

std::optional<Branch> branchOf(llvm::StringRef mode) {
  return llvm::StringSwitch<std::optional<Branch>>(mode)
      .Case("BRANCH_LEQ", Branch::leq)
      .Case("BRANCH_LT", Branch::lt)
      .Case("BRANCH_GTE", Branch::gte)
      .Case("BRANCH_GT", Branch::gt)
      .Case("BRANCH_EQ", Branch::eq)
      .Case("BRANCH_NEQ", Branch::neq)
      .Case("LEAF", Branch::leaf)
      .Default(std::nullopt);
}

/// Returns the attribute |name|, or the attribute with doubles that may replace it.
llvm::SmallVector<double> doublesAttr(NodeImporter &n, const std::string &name) {
  if (const onnx::AttributeProto *tensor = n.findAttr(name + "_as_tensor")) {
    auto values = getConstantDoubles(n.constant(tensor->t(), name));
    return values ? *values : llvm::SmallVector<double>();
  }
  return n.floatsAttr(name);
}

using NodeIds = std::map<std::pair<int64_t, int64_t>, int64_t>;

/// Reads the nodes from the attributes nodes_* and fills |ids|.
void readNodes(NodeImporter &n, Forest &forest, NodeIds &ids) {
  Ints trees = n.intsAttr("nodes_treeids"), nodes = n.intsAttr("nodes_nodeids"),
       features = n.intsAttr("nodes_featureids"), yes = n.intsAttr("nodes_truenodeids"),
       no = n.intsAttr("nodes_falsenodeids"),
       missing = n.intsAttr("nodes_missing_value_tracks_true", Ints(trees.size(), 0));
  llvm::SmallVector<std::string> modes = n.stringsAttr("nodes_modes");
  llvm::SmallVector<double> splits = doublesAttr(n, "nodes_values");
  for (size_t size :
       {nodes.size(), features.size(), yes.size(), no.size(), missing.size(), modes.size(), splits.size()}) {
    if (!n.failed() && (size != trees.size() || size == 0)) {
      n.fail(llvm::formatv("its lists of nodes have {0} and {1} entries; they must have the same number, at least one",
                           size, trees.size()));
    }
  }
  if (n.failed()) {
    return;
  }
  for (size_t i = 0; i < trees.size(); ++i) {
    auto branch = branchOf(modes[i]);
    if (!branch || !ids.try_emplace({trees[i], nodes[i]}, forest.size()).second) {
      n.fail(llvm::formatv("node {0} of tree {1} is listed twice, or its mode '{2}' is unknown", nodes[i], trees[i],
                           modes[i]));
      return;
    }
    forest.add(*branch, *branch == Branch::leaf ? 0 : features[i], splits[i], missing[i] != 0);
    if (i == 0 || trees[i] != trees[i - 1]) {
      forest.roots.push_back(static_cast<int64_t>(i)); // the first node of a tree is its root
    }
  }
  for (size_t i = 0; i < trees.size(); ++i) {
    auto whenTrue = ids.find({trees[i], yes[i]}), whenFalse = ids.find({trees[i], no[i]});
    if (forest.branches[i] == Branch::leaf) {
      continue;
    }
    if (whenTrue == ids.end() || whenFalse == ids.end()) {
      n.fail(llvm::formatv("node {0} of tree {1} has a child that does not exist", nodes[i], trees[i]));
      return;
    }
    forest.whenTrue[i] = whenTrue->second;
    forest.whenFalse[i] = whenFalse->second;
  }
}

void readWeights(NodeImporter &n, Forest &forest, const NodeIds &ids, const WeightNames &names) {
  Ints trees = n.intsAttr(names.trees), nodes = n.intsAttr(names.nodes), targets = n.intsAttr(names.targets);
  llvm::SmallVector<double> weights = doublesAttr(n, names.weights);
  if (!n.failed() &&
      (nodes.size() != trees.size() || targets.size() != trees.size() || weights.size() != trees.size())) {
    n.fail("its lists of weights have different lengths");
  }
  for (size_t i = 0; i < trees.size() && !n.failed(); ++i) {
    auto node = ids.find({trees[i], nodes[i]});
    if (node == ids.end() || targets[i] < 0 || targets[i] >= forest.targets) {
      n.fail(llvm::formatv("a weight belongs to node {0} of tree {1} and target {2} of {3}, which do not exist",
                           nodes[i], trees[i], targets[i], forest.targets));
      return;
    }
    forest.setWeight(node->second, targets[i], weights[i]);
  }
}

std::optional<Aggregate> aggregateOf(llvm::StringRef name) {
  return llvm::StringSwitch<std::optional<Aggregate>>(name)
      .Case("AVERAGE", Aggregate::average)
      .Case("SUM", Aggregate::sum)
      .Case("MIN", Aggregate::min)
      .Case("MAX", Aggregate::max)
      .Default(std::nullopt);
}

void treeEnsembleRegressor(NodeImporter &n) {
  Forest forest;
  NodeIds ids;
  forest.targets = n.intAttr("n_targets", 1);
  auto aggregate = aggregateOf(n.stringAttr("aggregate_function", "SUM"));
  forest.base = doublesAttr(n, "base_values");
  auto bases = static_cast<int64_t>(forest.base.size());
  if (forest.targets < 1 || !aggregate || (bases != 0 && bases != forest.targets)) {
    n.fail(llvm::formatv("{0} targets with {1} base values and aggregate_function '{2}' are not possible",
                         forest.targets, bases, n.stringAttr("aggregate_function", "SUM")));
    return;
  }
  forest.aggregate = *aggregate;
  readNodes(n, forest, ids);
  if (!n.failed()) {
    readWeights(n, forest, ids, {"target_treeids", "target_nodeids", "target_ids", "target_weights"});
  }
  std::string transform = n.stringAttr("post_transform", "NONE");
  if (forest.targets == 1 && transform != "NONE") {
    n.unsupported(llvm::formatv("post_transform '{0}' of one target, which onnxruntime ignores: append an operator "
                                "that does",
                                transform));
  }
  auto [scores, isKnown] = evaluateForest(n, forest, treeInput(n));
  if (isKnown) { // targets without weights do not even get their base value, as in onnxruntime
    scores = n.create<WhereOp>(isKnown, scores, n.scalarLike(scores, 0));
  }
  n.setOutput(0, n.cast(postTransform(n, scores, transform), n.b.getF32Type()));
}

/// Returns the label of each row: the class with the largest score.
Value labelOf(NodeImporter &n, Value scores, const Ints &labels) {
  return n.create<GatherOp>(n.intVector(labels), n.create<ArgReduceOp>(scores, 1, false, false, false), 0);
}

/// For two classes with weights for only one of them. The score of the other one is computed from it.
void setBinary(NodeImporter &n, Value score, const Ints &labels, bool isProbability, llvm::StringRef transform) {
  Value one = n.scalarLike(score, 1), limit = n.scalarLike(score, isProbability ? 0.5 : 0.0);
  Value isSecond = n.create<CompareOp>(score, limit, CompareKind::gt);
  Value label = n.create<GatherOp>(n.intVector(labels), n.cast(isSecond, n.b.getI64Type()), 0);
  n.setOutput(0, n.reshape(label, {NodeImporter::dim(score, 0)}));
  bool isLogistic = transform == "LOGISTIC";
  Value first = isProbability && !isLogistic ? n.create<SubOp>(one, score) : n.create<NegOp>(score), second = score;
  if (isLogistic) {
    first = n.create<SigmoidOp>(first);
    second = n.create<SigmoidOp>(second);
  } else if (transform != "NONE") {
    n.unsupported(llvm::formatv("post_transform '{0}' of two classes with weights for one; supported are NONE and "
                                "LOGISTIC",
                                transform));
  }
  n.setOutput(1, n.cast(n.create<ConcatOp>(mlir::ValueRange{first, second}, 1), n.b.getF32Type()));
}

void treeEnsembleClassifier(NodeImporter &n) {
  Ints labels = n.intsAttr("classlabels_int64s"), classes = n.intsAttr("class_ids");
  if (n.hasAttr("classlabels_strings")) {
    n.unsupported("attribute 'classlabels_strings': strings are not supported");
  }
  Forest forest;
  NodeIds ids;
  forest.targets = static_cast<int64_t>(labels.size());
  bool isBinary = labels.size() == 2 && !classes.empty() && llvm::all_equal(classes);
  llvm::SmallVector<double> base = doublesAttr(n, "base_values"), weights = doublesAttr(n, "class_weights");
  if (!n.failed() && (labels.empty() || (!base.empty() && (base.size() != labels.size() || labels.size() == 2)))) {
    n.unsupported(llvm::formatv("{0} labels with {1} base values are not supported; supported are none, or three or "
                                "more labels and one for each",
                                labels.size(), base.size()));
  }
  if (!n.failed() && labels.size() == 2 && (!isBinary || classes[0] != 0)) {
    n.unsupported(
        "with two classes, only weights of the first class are supported; write the weights of that class only");
  }
  readNodes(n, forest, ids);
  if (!n.failed()) {
    readWeights(n, forest, ids, {"class_treeids", "class_nodeids", "class_ids", "class_weights"});
  }
  forest.base = base;
  auto [scores, isKnown] = evaluateForest(n, forest, treeInput(n));
  std::string transform = n.stringAttr("post_transform", "NONE");
  if (n.failed()) {
    return;
  }
  if (isBinary) {
    Value column = n.create<SliceOp>(scores, Ints{0, 0}, Ints{NodeImporter::dim(scores, 0), 1}, Ints{1, 1});
    bool arePositive = llvm::all_of(weights, [](double weight) { return weight >= 0; });
    setBinary(n, column, labels, arePositive, transform);
    return;
  }
  Value compared = scores;
  if (isKnown && base.empty()) {
    compared = n.create<WhereOp>(isKnown, scores, n.scalarLike(scores, -std::numeric_limits<double>::infinity()));
  }
  n.setOutput(0, labelOf(n, compared, labels));
  n.setOutput(1, n.cast(postTransform(n, scores, transform), n.b.getF32Type()));
}

//===----------------------------------------------------------------------===//
// TreeEnsemble of ai.onnx.ml 5
//===----------------------------------------------------------------------===//

llvm::SmallVector<double> tensorAttr(NodeImporter &n, llvm::StringRef name) {
  const onnx::AttributeProto *tensor = n.typedAttr(name, onnx::AttributeProto::TENSOR);
  auto values = tensor ? getConstantDoubles(n.constant(tensor->t(), name)) : std::nullopt;
  return values ? *values : llvm::SmallVector<double>();
}

/// The attributes that describe interior nodes and leaves.
struct TreeLists {
  Ints features, yes, no, yesIsLeaf, noIsLeaf, missing, roots, leafTargets;
  llvm::SmallVector<double> modes, splits, weights, members;

  explicit TreeLists(NodeImporter &n)
      : features(n.intsAttr("nodes_featureids")), yes(n.intsAttr("nodes_truenodeids")),
        no(n.intsAttr("nodes_falsenodeids")), yesIsLeaf(n.intsAttr("nodes_trueleafs")),
        noIsLeaf(n.intsAttr("nodes_falseleafs")),
        missing(n.intsAttr("nodes_missing_value_tracks_true", Ints(features.size(), 0))),
        roots(n.intsAttr("tree_roots")), leafTargets(n.intsAttr("leaf_targetids")), modes(tensorAttr(n, "nodes_modes")),
        splits(tensorAttr(n, "nodes_splits")), weights(tensorAttr(n, "leaf_weights")),
        members(tensorAttr(n, "membership_values")) {}

  bool agree() const {
    size_t count = features.size();
    return count > 0 && yes.size() == count && no.size() == count && yesIsLeaf.size() == count &&
           noIsLeaf.size() == count && missing.size() == count && modes.size() == count && splits.size() == count &&
           weights.size() == leafTargets.size() && !roots.empty();
  }
};

constexpr int kMember = 6;

/// Adds the nodes and leaves of |lists|. A membership test becomes a chain of comparisons, one per member.
void buildForest(NodeImporter &n, Forest &forest, const TreeLists &lists) {
  constexpr Branch kBranches[] = {Branch::leq, Branch::lt, Branch::gte, Branch::gt, Branch::eq, Branch::neq};
  size_t count = lists.features.size(), member = 0;
  llvm::SmallVector<Ints> chains(count); // the nodes that represent each entry
  for (size_t i = 0; i < count; ++i) {
    auto mode = static_cast<int64_t>(lists.modes[i]);
    bool isMissingTrue = lists.missing[i] != 0;
    if (mode < 0 || mode > kMember) {
      n.fail(llvm::formatv("node {0} has the mode {1}; allowed are 0 to 6", i, mode));
      return;
    }
    if (mode < kMember) {
      chains[i].push_back(forest.add(kBranches[mode], lists.features[i], lists.splits[i], isMissingTrue));
      continue;
    }
    for (; member < lists.members.size() && lists.members[member] == lists.members[member]; ++member) {
      chains[i].push_back(forest.add(Branch::eq, lists.features[i], lists.members[member], isMissingTrue));
    }
    ++member; // a NaN ends a list of members
    if (chains[i].empty()) {
      n.fail(llvm::formatv("node {0} tests membership of an empty list", i));
      return;
    }
  }
  int64_t leaves = forest.size();
  for (auto [target, weight] : llvm::zip_equal(lists.leafTargets, lists.weights)) {
    int64_t leaf = forest.add(Branch::leaf, 0, 0, false);
    if (target < 0 || target >= forest.targets) {
      n.fail(llvm::formatv("a leaf belongs to target {0} of {1}", target, forest.targets));
      return;
    }
    forest.setWeight(leaf, target, weight);
  }
  auto place = [&](int64_t index, bool isLeaf) {
    int64_t limit = isLeaf ? forest.size() - leaves : static_cast<int64_t>(count);
    if (index < 0 || index >= limit) {
      n.fail(llvm::formatv("a child has the number {0} of {1}", index, limit));
      return int64_t{0};
    }
    return isLeaf ? leaves + index : chains[index].front();
  };
  for (size_t i = 0; i < count; ++i) {
    int64_t whenTrue = place(lists.yes[i], lists.yesIsLeaf[i] != 0),
            whenFalse = place(lists.no[i], lists.noIsLeaf[i] != 0);
    for (auto [k, node] : llvm::enumerate(chains[i])) {
      forest.whenTrue[node] = whenTrue;
      forest.whenFalse[node] = k + 1 < chains[i].size() ? chains[i][k + 1] : whenFalse;
    }
  }
  for (int64_t root : lists.roots) {
    // A tree with a single leaf has one node whose children are both that leaf.
    forest.roots.push_back(place(root, false));
  }
}

void treeEnsemble(NodeImporter &n) {
  constexpr Aggregate kAggregates[] = {Aggregate::average, Aggregate::sum, Aggregate::min, Aggregate::max};
  constexpr const char *kTransforms[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  int64_t aggregate = n.intAttr("aggregate_function", 1), transform = n.intAttr("post_transform", 0);
  TreeLists lists(n);
  Forest forest;
  forest.targets = n.intAttr("n_targets", 1);
  if (!n.failed() &&
      (!lists.agree() || forest.targets < 1 || aggregate < 0 || aggregate > 3 || transform < 0 || transform > 4)) {
    n.fail("its lists have different lengths or are empty, or n_targets, aggregate_function or post_transform are "
           "unknown");
  }
  if (n.failed()) {
    return;
  }
  forest.aggregate = kAggregates[aggregate];
  buildForest(n, forest, lists);
  mlir::Type element = NodeImporter::elementType(n.input(0));
  Value scores = evaluateForest(n, forest, treeInput(n)).scores;
  n.setOutput(0, n.cast(postTransform(n, scores, kTransforms[transform]), element));
}

constexpr llvm::StringLiteral kDomain = "ai.onnx.ml";
constexpr HandlerEntry kHandlers[] = {
    {kDomain, "TreeEnsemble", treeEnsemble, 5},
    {kDomain, "TreeEnsembleRegressor", treeEnsembleRegressor},
    {kDomain, "TreeEnsembleClassifier", treeEnsembleClassifier},
};

} // namespace

llvm::ArrayRef<HandlerEntry> treeHandlers() { return kHandlers; }

} // namespace tessera::top::onnx_import
