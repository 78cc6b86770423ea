//===- SizeAssumptions.cpp - Sizes that a network needs to be equal -------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/SizeAssumptions.h"

#include "top_dialect/IR/BindDims.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace tessera::top::onnx_import {

/// If |size| is a multiple of a symbol that |other| does not contain, returns the symbol and the size for it with which
/// the two are equal.
static std::optional<std::pair<SizeSymbolAttr, Dim>> solve(Dim size, Dim other) {
  llvm::SetVector<SizeSymbolAttr> symbols, others;
  collectSymbols(size, symbols);
  collectSymbols(other, others);
  if (symbols.size() != 1 || others.empty() || others.contains(symbols[0])) {
    return std::nullopt;
  }
  int64_t factor = divisorOf(size);
  if (!sameSize(size, Dim(factor) * sizeOf(symbols[0])) || !isMultipleOf(other, factor)) {
    return std::nullopt;
  }
  Dim result = floorDiv(other, factor);
  bool overlaps = minOf(result) <= symbols[0].getMax() && maxOf(result) >= symbols[0].getMin();
  return overlaps && minOf(result) >= 0 ? std::optional(std::pair(symbols[0], result)) : std::nullopt;
}

/// If the |sizes| are equal exactly where one symbol is the sum of the others, returns the symbol and the sum. This
/// solves e.g. seq = max(0, total - min(past, total)) for total, although seq is a symbol too.
static std::optional<std::pair<SizeSymbolAttr, Dim>> solveForTotal(const detail::UnequalSizes &sizes) {
  llvm::SetVector<SizeSymbolAttr> symbols;
  collectSymbols(sizes.a, symbols);
  collectSymbols(sizes.b, symbols);
  for (SizeSymbolAttr total : symbols) {
    Dim sum = 0;
    for (SizeSymbolAttr part : symbols) {
      sum += part == total ? Dim(0) : sizeOf(part);
    }
    auto known = [&](Dim size) {
      return substitute(size, [&](SizeSymbolAttr symbol) { return symbol == total ? sum : sizeOf(symbol); });
    };
    if (symbols.size() > 2 && sameSize(known(sizes.a), known(sizes.b)) && minOf(sum) <= total.getMax() &&
        maxOf(sum) >= total.getMin()) {
      return std::pair(total, sum);
    }
  }
  return std::nullopt;
}

static void replace(mlir::func::FuncOp function, SizeSymbolAttr from, Dim to) {
  replaceSymbols(function, [&](SizeSymbolAttr symbol) { return symbol == from ? to : sizeOf(symbol); });
}

bool assumeEqual(const detail::UnequalSizes &sizes, mlir::Operation *op, ReplacedSymbols &replaced) {
  auto function = llvm::dyn_cast_or_null<mlir::func::FuncOp>(op->getParentOp());
  auto solution = solveForTotal(sizes);
  solution = solution ? solution : solve(sizes.b, sizes.a);
  solution = solution ? solution : solve(sizes.a, sizes.b);
  if (!function || !solution) {
    return false;
  }
  replace(function, solution->first, solution->second);
  replaced.push_back(*solution);
  return true;
}

void replaceAgain(mlir::func::FuncOp function, const ReplacedSymbols &replaced) {
  for (auto [symbol, size] : replaced) {
    replace(function, symbol, size);
  }
}

std::string adviceFor(const detail::UnequalSizes &sizes) {
  llvm::SetVector<SizeSymbolAttr> symbols;
  collectSymbols(sizes.a, symbols);
  collectSymbols(sizes.b, symbols);
  std::string names =
      llvm::join(llvm::map_range(symbols, [](SizeSymbolAttr symbol) { return symbol.getName(); }), ", ");
  return llvm::formatv("; {0} and {1} must be equal for all sizes of the range: narrow or fix {2} with --dims",
                       toText(sizes.a), toText(sizes.b), names);
}

} // namespace tessera::top::onnx_import
