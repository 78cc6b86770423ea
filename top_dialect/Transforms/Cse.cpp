//===- Cse.cpp - Merges ops that compute the same values ------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/SymbolicLists.h"
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/Transforms/Passes.h"
#include "top_dialect/Transforms/Values.h"
#include "llvm/ADT/ScopedHashTable.h"
#include "llvm/Support/RecyclingAllocator.h"

namespace tessera::top {
#define GEN_PASS_DEF_CSEPASS
#include "top_dialect/Transforms/Passes.h.inc"

namespace {
using namespace mlir;

/// Compares ops by what they compute: ignores locations and discardable attributes such as names, except for lists of
/// sizes.
struct ComputationInfo : llvm::DenseMapInfo<Operation *> {
  static constexpr auto kFlags = static_cast<OperationEquivalence::Flags>(OperationEquivalence::IgnoreLocations |
                                                                          OperationEquivalence::IgnoreDiscardableAttrs);

  static unsigned getHashValue(const Operation *op) {
    return OperationEquivalence::computeHash(const_cast<Operation *>(op), OperationEquivalence::directHashValue,
                                             OperationEquivalence::ignoreHashValue, kFlags);
  }
  static bool isEqual(const Operation *left, const Operation *right) {
    auto *a = const_cast<Operation *>(left), *b = const_cast<Operation *>(right);
    if (a == b || a == getTombstoneKey() || a == getEmptyKey() || b == getTombstoneKey() || b == getEmptyKey()) {
      return a == b;
    }
    return a->getDiscardableAttr(kDimsAttr) == b->getDiscardableAttr(kDimsAttr) &&
           a->getDiscardableAttr(kStartDimsAttr) == b->getDiscardableAttr(kStartDimsAttr) &&
           OperationEquivalence::isEquivalentTo(a, b, OperationEquivalence::exactValueMatch, nullptr, kFlags);
  }
};

/// First occurrences of ops. An entry is valid in its block and the regions nested in it.
using Seen = llvm::ScopedHashTable<
    Operation *, Operation *, ComputationInfo,
    llvm::RecyclingAllocator<llvm::BumpPtrAllocator, llvm::ScopedHashTableVal<Operation *, Operation *>>>;

class CsePass : public impl::CsePassBase<CsePass> {
  /// Gives `kept` the names of its equal `op`. Tensor names of `kept` take precedence.
  static void mergeNames(Operation *kept, Operation *op) {
    if (isConstant(kept->getResult(0))) {
      return;
    }
    if (!kept->hasAttr(TopDialect::kOutputsAttr)) {
      return copyNames(op, kept);
    }
    kept->setLoc(fuseNames(kept->getContext(), {kept->getLoc(), op->getLoc()}));
  }

  void visit(Operation *op, Seen &seen) {
    for (Region &region : op->getRegions()) {
      for (Block &block : region) {
        Seen::ScopeTy scope(seen);
        for (Operation &inner : llvm::make_early_inc_range(block)) {
          visit(&inner, seen);
        }
      }
    }
    if (op->getNumRegions() != 0 || op->getNumResults() == 0 || !isPure(op)) {
      return;
    }
    Operation *kept = seen.lookup(op);
    if (!kept) {
      return seen.insert(op, op);
    }
    if (isa<WeightOp>(op)) {
      mergedBytes += byteSize(typeOf(op->getResult(0)));
    }
    mergeNames(kept, op);
    op->replaceAllUsesWith(kept);
    op->erase();
    ++merged;
  }

  void runOnOperation() override {
    Seen seen;
    Seen::ScopeTy scope(seen);
    visit(getOperation(), seen);
  }
};
} // namespace
} // namespace tessera::top
