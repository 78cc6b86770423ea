//===- SizeUpdates.cpp - Sizes that control flow sets ---------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/SizeUpdates.h"

#include "top_dialect/IR/BindDims.h"
#include "top_dialect/IR/TopConstOps.h"
#include "top_dialect/IR/TopShapeOps.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace tessera::top {

SizeSymbolAttr asSymbol(Dim size) {
  llvm::SetVector<SizeSymbolAttr> symbols;
  collectSymbols(size, symbols);
  return symbols.size() == 1 && sameSize(size, sizeOf(symbols[0])) ? symbols[0] : SizeSymbolAttr();
}

std::optional<SizeUpdates> findUpdates(TypeRange to, TypeRange from) {
  SizeUpdates updates;
  if (to.size() != from.size()) {
    return std::nullopt;
  }
  for (auto [target, source] : llvm::zip_equal(to, from)) {
    Shape wanted = cast<RankedTensorType>(target), given = cast<RankedTensorType>(source);
    if (wanted.rank() != given.rank() || !given.isDetermined() || !wanted.isDetermined()) {
      return std::nullopt;
    }
    for (size_t d = 0; d < wanted.rank(); ++d) {
      if (sameSize(wanted[d], given[d])) {
        continue;
      }
      SizeSymbolAttr symbol = asSymbol(wanted[d]);
      auto *known = llvm::find_if(updates, [&](const SizeUpdate &other) { return other.symbol == symbol; });
      if (!symbol || (known != updates.end() && !sameSize(known->size, given[d]))) {
        return std::nullopt;
      }
      if (known == updates.end()) {
        updates.push_back({symbol, given[d]});
      }
    }
  }
  return updates;
}

bool isSizeCast(Operation *op) {
  return isa<UnrealizedConversionCastOp>(op) && op->getNumResults() == 1 &&
         isa<RankedTensorType>(op->getResult(0).getType());
}

static void addSymbols(ValueRange to, ValueRange from, llvm::SetVector<SizeSymbolAttr> &symbols) {
  if (auto updates = findUpdates(to.getTypes(), from.getTypes())) {
    for (const SizeUpdate &update : *updates) {
      symbols.insert(update.symbol);
    }
  }
}

/// Adds the symbols of a loop's carried values, and of the number of slices that it stacks.
static void addSymbols(LoopOp loop, llvm::SetVector<SizeSymbolAttr> &symbols) {
  size_t carried = loop.getInit().size();
  ValueRange results = loop.getResults().take_front(carried);
  addSymbols(results, loop.getInit(), symbols);
  addSymbols(loop.getBody().getArguments().drop_front(2), results, symbols);
  for (Value stacked : loop.getResults().drop_front(carried)) {
    if (SizeSymbolAttr symbol = loop->hasAttr(kOpenPassesAttr) ? asSymbol(Shape(stacked)[0]) : SizeSymbolAttr()) {
      symbols.insert(symbol);
    }
  }
}

llvm::SetVector<SizeSymbolAttr> symbolsSetBy(Operation *op) {
  llvm::SetVector<SizeSymbolAttr> found;
  if (auto bind = dyn_cast<BindOp>(op)) {
    found.insert(bind.getSymbol());
  } else if (auto branch = dyn_cast<IfOp>(op)) {
    for (Region *each : {&branch.getThenRegion(), &branch.getElseRegion()}) {
      if (!each->empty()) { // a pass may have moved the region
        addSymbols(branch.getResults(), each->front().getTerminator()->getOperands(), found);
      }
    }
  } else if (auto loop = dyn_cast<LoopOp>(op)) {
    if (!loop.getBody().empty()) {
      addSymbols(loop, found);
    }
  }
  return found;
}

bool isUnused(Operation *op) { return isOpTriviallyDead(op) && symbolsSetBy(op).empty(); }

llvm::SetVector<SizeSymbolAttr> symbolsSetIn(Region &region) {
  llvm::SetVector<SizeSymbolAttr> found;
  region.walk([&](Operation *op) { found.set_union(symbolsSetBy(op)); });
  return found;
}

} // namespace tessera::top
