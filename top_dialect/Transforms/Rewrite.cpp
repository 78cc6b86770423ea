//===- Rewrite.cpp - Linear driver of the Top passes ----------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Transforms/Rewrite.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/SizeUpdates.h"
#include "top_dialect/IR/TopDialect.h"
#include "llvm/ADT/SetVector.h"

namespace tessera::top {
using namespace mlir;

namespace {
/// Visits ops in program order, and ops that a visit creates immediately after it.
class ForwardWalk : public RewriterBase::Listener {
public:
  ForwardWalk(MLIRContext *context, Visitor visit) : rewriter(context, this), visit(visit) {}

  int64_t run(Operation *root) {
    int64_t changed = 0;
    for (Region &region : root->getRegions()) {
      for (Block &block : region) {
        for (Operation &op : llvm::make_early_inc_range(block)) {
          created.clear();
          changed += visitOne(&op);
          while (!created.empty()) {
            Operation *next = created.front();
            created.erase(created.begin());
            changed += visitOne(next);
          }
        }
      }
    }
    return changed;
  }

private:
  int64_t visitOne(Operation *op) {
    if (isUnused(op)) {
      rewriter.eraseOp(op);
      return 0;
    }
    int64_t changed = 0;
    if (op->getNumRegions() != 0) {
      auto outer = std::exchange(created, {});
      changed = run(op);
      created = std::move(outer);
    }
    rewriter.setInsertionPoint(op);
    return changed + visit(op, rewriter);
  }

  void notifyOperationInserted(Operation *op, OpBuilder::InsertPoint previous) override { created.insert(op); }
  void notifyOperationErased(Operation *op) override { created.remove(op); }

  IRRewriter rewriter;
  Visitor visit;
  llvm::SmallSetVector<Operation *, 8> created;
};
} // namespace

int64_t rewriteForward(Operation *root, Visitor visit) { return ForwardWalk(root->getContext(), visit).run(root); }

void eraseDeadChain(RewriterBase &rewriter, Operation *op, SmallVectorImpl<Location> *locations) {
  SmallVector<Operation *> dead;
  if (isUnused(op)) {
    dead.push_back(op);
  }
  while (!dead.empty()) {
    Operation *next = dead.pop_back_val();
    if (locations && !isConstant(next->getResult(0))) {
      locations->push_back(next->getLoc());
    }
    llvm::SmallSetVector<Operation *, 4> producers;
    for (Value operand : next->getOperands()) {
      if (Operation *def = operand.getDefiningOp()) {
        producers.insert(def);
      }
    }
    rewriter.eraseOp(next);
    llvm::copy_if(producers, std::back_inserter(dead), isUnused);
  }
}

/// Gives `value`, which equals the result of `root`, the tensor name of `root` if it does not have its own.
static void inheritTensorName(Operation *root, Value value) {
  Operation *def = value.getDefiningOp();
  Attribute names = root->getAttr(TopDialect::kOutputsAttr);
  if (def && names && def->getNumResults() == 1 && !isConstant(value) && !def->hasAttr(TopDialect::kOutputsAttr)) {
    def->setAttr(TopDialect::kOutputsAttr, names);
  }
}

void replaceAndErase(RewriterBase &rewriter, Operation *root, ValueRange results) {
  if (results.size() == 1) {
    inheritTensorName(root, results.front());
  }
  rewriter.replaceAllUsesWith(root->getResults(), results);
  eraseDeadChain(rewriter, root);
}

void replaceFused(RewriterBase &rewriter, Operation *root, Operation *by) {
  SmallVector<Location> locations;
  bool isOlder = by->getLoc() != root->getLoc(); // an older op already did part of the work
  if (Attribute names = root->getAttr(TopDialect::kOutputsAttr)) {
    by->setAttr(TopDialect::kOutputsAttr, names);
  } else {
    by->removeAttr(TopDialect::kOutputsAttr); // It computes a different tensor now.
  }
  rewriter.replaceAllUsesWith(root->getResults(), by->getResults());
  eraseDeadChain(rewriter, root, &locations);
  if (isOlder) {
    locations.push_back(by->getLoc());
  }
  std::reverse(locations.begin(), locations.end()); // Producers were erased last.
  by->setLoc(fuseNames(by->getContext(), locations));
}

} // namespace tessera::top
