//===- SizeTerms.cpp - Sizes over the parameters of a kernel --------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Kernels/SizeTerms.h"

using namespace mlir;

namespace tessera::kernels {

SizeSymbols symbolsOf(Operation *op) {
  SizeSymbols symbols;
  auto collect = [&](Type type) {
    if (auto tensor = dyn_cast<RankedTensorType>(type)) {
      collectSymbols(tensor, symbols);
    }
  };
  llvm::for_each(op->getOperandTypes(), collect);
  llvm::for_each(op->getResultTypes(), collect);
  op->getAttrDictionary().walk([&](top::SizeSymbolAttr symbol) { symbols.insert(symbol); });
  return symbols;
}

bool hasOpenSizes(Operation *op) {
  auto isOpen = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && !Shape(tensor).isKnown();
  };
  return !symbolsOf(op).empty() || llvm::any_of(op->getOperandTypes(), isOpen) ||
         llvm::any_of(op->getResultTypes(), isOpen);
}

static uint8_t operationOf(SizeStep::Kind kind) {
  switch (kind) {
  case SizeStep::Number:
    return BM_DIM_CONST;
  case SizeStep::Symbol:
    return BM_DIM_PARAM;
  case SizeStep::Add:
    return BM_DIM_ADD;
  case SizeStep::Multiply:
    return BM_DIM_MUL;
  case SizeStep::FloorDiv:
    return BM_DIM_FLOOR_DIV;
  case SizeStep::Min:
    return BM_DIM_MIN;
  case SizeStep::Max:
    return BM_DIM_MAX;
  }
  llvm_unreachable("covered switch");
}

SizeTerms termsOf(Dim size, const SizeSymbols &symbols) {
  SizeTerms terms;
  for (const SizeStep &step : toPostfix(size)) {
    int64_t value = step.kind == SizeStep::Symbol ? llvm::find(symbols, step.symbol) - symbols.begin() : step.number;
    terms.push_back({value, operationOf(step.kind), {}});
  }
  return terms;
}

Dim sizeOf(top::SizeSymbolAttr symbol) {
  return Dim::symbol(symbol.getContext(), symbol.getName(), symbol.getMin(), symbol.getMax(), symbol.getLikely());
}

Dim sizeOf(const SizeTerms &terms, const SizeSymbols &symbols) {
  SmallVector<Dim> stack;
  for (const bm_dim_term &term : terms) {
    if (term.op == BM_DIM_CONST) {
      stack.push_back(term.value);
      continue;
    }
    if (term.op == BM_DIM_PARAM) {
      stack.push_back(sizeOf(symbols[term.value]));
      continue;
    }
    Dim b = stack.pop_back_val(), a = stack.pop_back_val();
    stack.push_back(term.op == BM_DIM_ADD         ? a + b
                    : term.op == BM_DIM_MUL       ? a * b
                    : term.op == BM_DIM_FLOOR_DIV ? floorDiv(a, b)
                    : term.op == BM_DIM_MIN       ? min(a, b)
                                                  : max(a, b));
  }
  return stack.back();
}

} // namespace tessera::kernels
