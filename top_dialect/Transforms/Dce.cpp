//===- Dce.cpp - Removes dead ops and dead results ------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/SizeUpdates.h"
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/Transforms/Passes.h"

namespace tessera::top {
#define GEN_PASS_DEF_DCEPASS
#include "top_dialect/Transforms/Passes.h.inc"

namespace {
using namespace mlir;

/// Replaces `op` by a copy with the results in `keep` only. Removes operand `shift` + i from the yields of its regions
/// for each dropped result i.
Operation *keepResults(RewriterBase &rewriter, Operation *op, const llvm::BitVector &keep, unsigned shift) {
  SmallVector<Type> types;
  SmallVector<StringRef> names;
  for (unsigned i : keep.set_bits()) {
    types.push_back(op->getResult(i).getType());
    names.push_back(getTensorName(op->getResult(i)));
  }
  for (Region &region : op->getRegions()) {
    Operation *yield = region.front().getTerminator();
    for (int i = keep.size() - 1; i >= 0; --i) {
      if (!keep[i]) {
        yield->eraseOperand(shift + i);
      }
    }
  }
  rewriter.setInsertionPoint(op);
  OperationState state(op->getLoc(), op->getName(), op->getOperands(), types);
  state.attributes = op->getDiscardableAttrDictionary().getValue();
  state.propertiesAttr = op->getPropertiesAsAttribute();
  for (Region &region : op->getRegions()) {
    state.addRegion()->takeBody(region);
  }
  Operation *kept = rewriter.create(state);
  if (op->hasAttr(TopDialect::kOutputsAttr)) {
    setTensorNames(kept, names);
  }
  for (auto [i, index] : llvm::enumerate(keep.set_bits())) {
    op->getResult(index).replaceAllUsesWith(kept->getResult(i));
  }
  rewriter.eraseOp(op);
  return kept;
}

/// Returns true if a size of |value| is one of |symbols|.
bool usesAny(Value value, const llvm::SetVector<SizeSymbolAttr> &symbols) {
  llvm::SetVector<SizeSymbolAttr> used;
  collectSymbols(value, used);
  return llvm::any_of(used, [&](SizeSymbolAttr symbol) { return symbols.contains(symbol); });
}

class DcePass : public impl::DcePassBase<DcePass> {
  /// Drops unused results of an if, and unused scanned results of a loop.
  Operation *dropResults(Operation *op, RewriterBase &rewriter) {
    unsigned firstDroppable = 0, shift = 0;
    if (auto loop = dyn_cast<LoopOp>(op)) {
      firstDroppable = loop.getInit().size(); // Carried values are used in the next iteration.
      shift = 1;                              // The body yields its condition first.
    } else if (!isa<IfOp>(op)) {
      return op;
    }
    llvm::BitVector keep(op->getNumResults(), true);
    llvm::SetVector<SizeSymbolAttr> own = symbolsSetBy(op);
    for (unsigned i = firstDroppable; i < op->getNumResults(); ++i) {
      keep[i] = !op->getResult(i).use_empty() || usesAny(op->getResult(i), own);
    }
    if (keep.all()) {
      return op;
    }
    erasedResults += keep.size() - keep.count();
    return keepResults(rewriter, op, keep, shift);
  }

  /// Visits ops from the last one to the first: users before their operands.
  void visit(Operation *op, RewriterBase &rewriter) {
    for (Region &region : op->getRegions()) {
      for (Block &block : region) {
        for (Operation &inner : llvm::make_early_inc_range(llvm::reverse(block))) {
          if (isUnused(&inner)) {
            rewriter.eraseOp(&inner);
            ++erased;
          } else {
            visit(dropResults(&inner, rewriter), rewriter);
          }
        }
      }
    }
  }

  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    visit(getOperation(), rewriter);
  }
};
} // namespace
} // namespace tessera::top
