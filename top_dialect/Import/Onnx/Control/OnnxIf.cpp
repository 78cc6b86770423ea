//===- OnnxIf.cpp - The handler of If -------------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/Control/Subgraphs.h"

#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/SizeUpdates.h"
#include "top_dialect/Import/Onnx/GraphImporter.h"
#include "top_dialect/Import/Onnx/Model/OnnxModel.h"
#include "top_dialect/Import/Onnx/Sizes/IndexArithmetic.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using llvm::StringRef;
using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

/// The two graphs of an If.
struct Branches {
  const onnx::GraphProto *graphs[2]; ///< else_branch, then_branch: by the value of the condition
  const onnx::GraphProto &of(bool condition) const { return *graphs[condition]; }
  static StringRef nameOf(bool condition) { return condition ? "then_branch" : "else_branch"; }
};

/// The things that decide a condition: an input of the network, sizes, or values that the network computes.
struct Deciders {
  std::string input;                       ///< the first input, or ""
  llvm::SetVector<SizeSymbolAttr> symbols; ///< of the sizes
  bool areSizes = true;                    ///< only sizes decide
};

Deciders decidersOf(Value cond) {
  Deciders deciders;
  llvm::SetVector<Value> open;
  open.insert(cond);
  for (size_t i = 0; i < open.size() && i < 64; ++i) {
    mlir::Operation *op = open[i].getDefiningOp();
    if (auto argument = llvm::dyn_cast<mlir::BlockArgument>(open[i])) {
      deciders.areSizes = false;
      deciders.input = deciders.input.empty() ? getInputName(argument).str() : deciders.input;
    } else if (auto shape = llvm::dyn_cast<ShapeOp>(op)) {
      collectSymbols(shape.getX(), deciders.symbols);
    } else {
      deciders.areSizes &= op->getNumRegions() == 0;
      open.insert(op->operand_begin(), op->operand_end());
    }
  }
  deciders.areSizes &= open.size() <= 64 && !deciders.symbols.empty();
  return deciders;
}

/// Returns why both branches are imported and what the user can do about it.
std::string adviceFor(const Deciders &deciders) {
  if (deciders.areSizes) {
    auto names = llvm::map_range(deciders.symbols, [](SizeSymbolAttr symbol) { return symbol.getName(); });
    return llvm::formatv(
        "; both branches are imported because the condition depends on sizes: if it is the same at all "
        "sizes that occur, narrow or fix {0} with --dims",
        llvm::join(names, ", "));
  }
  std::string advice = "; both branches are imported because the condition is computed at run time";
  if (!deciders.input.empty()) {
    advice += llvm::formatv(": if input '{0}' always has the same value, --input_values {0}=VALUE removes the branch "
                            "that is not taken",
                            deciders.input);
  }
  return advice;
}

/// Runs |import| for a branch. |advice| is appended to errors.
void importBranch(NodeImporter &n, bool condition, const llvm::Twine &advice, llvm::function_ref<void()> import) {
  if (n.failed()) {
    return;
  }
  import();
  if (n.failed()) {
    n.explainError("its " + Branches::nameOf(condition) + ": ", advice);
  }
}

/// Checks the operators of branches when they are imported, because a branch may not be taken.
void checkBranches(NodeImporter &n, llvm::ArrayRef<const onnx::GraphProto *> branches) {
  if (llvm::Error error = checkOperators(n.graph.model, branches)) {
    n.fail(std::move(error));
  }
}

/// Gives the results of |op|, the tensors |names|, symbols for the sizes that differ between its branches.
void openResults(NodeImporter &n, IfOp op, llvm::ArrayRef<std::string> names) {
  auto yielded = [](mlir::Region &region) { return region.front().getTerminator()->getOperands(); };
  for (auto [i, result] : llvm::enumerate(op.getResults())) {
    Shape first = yielded(op.getThenRegion())[i], second = yielded(op.getElseRegion())[i];
    auto sizes = NodeImporter::sizes(result);
    for (size_t d = 0; d < sizes.size() && !n.failed(); ++d) {
      if (sizes[d].isUnknown() && !first[d].isUnknown() && !second[d].isUnknown()) {
        DimRange range{std::min(minOf(first[d]), minOf(second[d])), std::max(maxOf(first[d]), maxOf(second[d]))};
        range.likely = range.max;
        sizes[d] = n.graph.model.state->runTimeSizes.declare(
            n.b.getContext(), llvm::formatv("{0}.{1}", n.graph.nameOf(names[i]), d).str(), range);
      }
    }
    result.setType(tensorType(sizes, NodeImporter::elementType(result)));
  }
}

using Region = std::unique_ptr<mlir::Region>;

mlir::ValueRange yielded(const Region &region) { return region->front().getTerminator()->getOperands(); }

/// Returns a text about the first result that has another rank in each branch, or "".
std::string describeRanks(const Region (&regions)[2]) {
  for (auto [i, first, second] : llvm::enumerate(yielded(regions[true]), yielded(regions[false]))) {
    int64_t ranks[] = {NodeImporter::rank(first), NodeImporter::rank(second)};
    if (ranks[0] != ranks[1]) {
      return llvm::formatv("output {0} has ranks {1} and {2}", i, ranks[0], ranks[1]);
    }
  }
  return "";
}

/// Creates the op from the regions of its else_branch and then_branch. Its results are the tensors |names|.
Values createIf(NodeImporter &n, Value cond, Region (&regions)[2], llvm::ArrayRef<std::string> names) {
  llvm::SmallVector<mlir::Type> types(names.size(), NodeImporter::placeholder(n.b));
  auto op = IfOp::create(n.b, n.loc, types, cond);
  op.getThenRegion().takeBody(*regions[true]);
  op.getElseRegion().takeBody(*regions[false]);
  Values results = n.finish(op);
  if (!n.failed()) {
    openResults(n, op, names);
  }
  return results;
}

//===----------------------------------------------------------------------===//
// Branches with results of different ranks
//===----------------------------------------------------------------------===//

/// Imports a branch and the nodes that follow the If, as the only block of a region that yields the graph's outputs.
Region importWithRest(NodeImporter &n, const onnx::GraphProto &branch) {
  return importRegion(n, {}, [&](mlir::OpBuilder &builder, const Values &) {
    mlir::OpBuilder::InsertionGuard guard(n.b);
    n.b.setInsertionPointToEnd(builder.getInsertionBlock());
    auto outputs = n.graph.importRest([&] {
      for (auto [i, value] : llvm::enumerate(importInto(n, branch, n.b, {}))) {
        n.setOutput(i, value);
      }
      return n.failed() ? n.getError() : llvm::Error::success();
    });
    if (!outputs) {
      n.fail(outputs.takeError());
      return Values();
    }
    return *outputs;
  });
}

/// Imports the taken branch at the position of the If. A run whose condition has the other value ends with an error.
Values requireBranch(NodeImporter &n, Value cond, const Branches &branches, bool taken, const llvm::Twine &why) {
  require(n, n.cast(n.reshape(cond, {1}), n.b.getI64Type()), taken, "condition");
  n.graph.model.state->warnOnce(llvm::formatv(
      "{0}: the network cannot be computed at sizes that take its {1}, which end a run with an error: {2}",
      describeNode(n.node), Branches::nameOf(!taken), why));
  return importInto(n, branches.of(taken), n.b, {});
}

/// Imports branches that give a result different ranks: the nodes that follow become part of both. If they fit one
/// branch only, sizes that take the other one cannot occur in a run that succeeds.
void importWithRests(NodeImporter &n, Value cond, const Branches &branches, const llvm::Twine &mismatch) {
  ImportState &state = *n.graph.model.state;
  if (++state.splitGraphs > kMaxSplitGraphs) {
    n.unsupported(mismatch + llvm::formatv("; more than {0} times, which is not supported", kMaxSplitGraphs));
    return;
  }
  Deciders deciders = decidersOf(cond);
  Region regions[2];
  std::string errors[2];
  for (bool condition : {true, false}) {
    RunTimeSizes before = state.runTimeSizes;
    NodeImporter trial(n.graph, n.node, n.opset, n.b, n.loc);
    regions[condition] = importWithRest(trial, branches.of(condition));
    if (trial.failed()) {
      errors[condition] = llvm::toString(trial.getError());
      regions[condition].reset();
      state.runTimeSizes = std::move(before);
    }
  }
  if (regions[true] && regions[false]) {
    if (std::string outputs = describeRanks(regions); !outputs.empty()) {
      n.unsupported(mismatch + "; with the nodes that follow in both branches, " + outputs +
                    ": an output of the graph whose rank is decided at run time is not supported" +
                    adviceFor(deciders));
      return;
    }
    auto names = llvm::map_to_vector(n.graph.proto.output(), [](const auto &output) { return output.name(); });
    Values results = createIf(n, cond, regions, names);
    auto full = llvm::map_to_vector(names, [&](const std::string &name) { return n.graph.nameOf(name); });
    setTensorNames(results.front().getDefiningOp(), llvm::to_vector_of<StringRef>(full));
    n.graph.finishWith(results);
    return;
  }
  bool taken = regions[true] != nullptr;
  if (!deciders.areSizes || !regions[taken]) {
    n.unsupported(llvm::formatv("{0}; with its {1}, {2}{3}", mismatch.str(), Branches::nameOf(!taken), errors[!taken],
                                adviceFor(deciders)));
    return;
  }
  regions[taken].reset();
  for (auto [i, value] : llvm::enumerate(requireBranch(n, cond, branches, taken, errors[!taken]))) {
    n.setOutput(i, value);
  }
}

/// Imports both branches into the regions of an op.
void importBoth(NodeImporter &n, Value cond, const Branches &branches) {
  std::string advice = adviceFor(decidersOf(cond));
  Region regions[2];
  checkBranches(n, {branches.graphs[true], branches.graphs[false]});
  RunTimeSizes before = n.graph.model.state->runTimeSizes;
  for (bool condition : {true, false}) {
    importBranch(n, condition, advice, [&] { regions[condition] = importRegion(n, branches.of(condition), {}); });
  }
  if (n.failed()) {
    return;
  }
  size_t counts[] = {yielded(regions[false]).size(), yielded(regions[true]).size()};
  if (counts[true] != counts[false]) {
    n.fail(llvm::formatv("its branches have {0} and {1} outputs; they must have the same number", counts[true],
                         counts[false]));
    return;
  }
  if (std::string mismatch = describeRanks(regions); !mismatch.empty()) {
    regions[true].reset(), regions[false].reset();
    n.graph.model.state->runTimeSizes = std::move(before);
    importWithRests(n, cond, branches, "in its branches, " + mismatch);
    return;
  }
  llvm::SmallVector<std::string> names(n.node.output().begin(), n.node.output().end());
  names.resize(counts[true]);
  for (auto [i, value] : llvm::enumerate(createIf(n, cond, regions, names))) {
    n.setOutput(i, value);
  }
}

} // namespace

void importIf(NodeImporter &n) {
  Value cond = n.input(0);
  const onnx::GraphProto *thenGraph = subgraph(n, "then_branch");
  const onnx::GraphProto *elseGraph = subgraph(n, "else_branch");
  if (n.failed()) {
    return;
  }
  Branches branches{{elseGraph, thenGraph}};
  auto known = getConstantInts(cond);
  if (!known || known->size() != 1) {
    importBoth(n, cond, branches);
    return;
  }
  bool condition = known->front() != 0;
  const onnx::GraphProto &taken = branches.of(condition);
  checkBranches(n, {&taken});
  Values outputs;
  importBranch(n, condition, "", [&] { outputs = importInto(n, taken, n.b, {}); });
  for (auto [i, value] : llvm::enumerate(outputs)) {
    n.setOutput(i, value);
  }
}

} // namespace tessera::top::onnx_import
