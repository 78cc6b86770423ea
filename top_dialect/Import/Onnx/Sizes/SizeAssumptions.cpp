//===- SizeAssumptions.cpp - Sizes that a network needs to be equal -------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/Sizes/SizeAssumptions.h"

#include "top_dialect/IR/BindDims.h"
#include "top_dialect/IR/SizeUpdates.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace tessera::top::onnx_import {

/// If |size| is a multiple of a symbol that |other| does not contain, plus a number if |allowsNumber|, returns the
/// symbol and the size for it with which the two are equal.
static std::optional<std::pair<SizeSymbolAttr, Dim>> solveFor(Dim size, Dim other, bool allowsNumber) {
  llvm::SetVector<SizeSymbolAttr> symbols, others;
  collectSymbols(size, symbols);
  collectSymbols(other, others);
  if (symbols.size() != 1 || others.empty() || others.contains(symbols[0])) {
    return std::nullopt;
  }
  Dim number = substitute(size, [](SizeSymbolAttr) { return Dim(0); });
  Dim multiple = size - number, wanted = other - number;
  int64_t factor = divisorOf(multiple);
  if ((!allowsNumber && !number.is(0)) || !sameSize(multiple, Dim(factor) * sizeOf(symbols[0])) ||
      !isMultipleOf(wanted, factor)) {
    return std::nullopt;
  }
  Dim result = floorDiv(wanted, factor);
  bool overlaps = minOf(result) <= symbols[0].getMax() && maxOf(result) >= symbols[0].getMin();
  return overlaps && minOf(result) >= 0 ? std::optional(std::pair(symbols[0], result)) : std::nullopt;
}

static std::optional<std::pair<SizeSymbolAttr, Dim>> solve(Dim size, Dim other) { return solveFor(size, other, false); }
/// Solves e.g. a + 1 = b + 1. Comes last: total = past + 1 determines total, not past.
static std::optional<std::pair<SizeSymbolAttr, Dim>> solveWithNumber(Dim size, Dim other) {
  return solveFor(size, other, true);
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
  for (auto solver : {solve, solveWithNumber}) {
    solution = solution ? solution : solver(sizes.b, sizes.a);
    solution = solution ? solution : solver(sizes.a, sizes.b);
  }
  if (!function || !solution) {
    return false;
  }
  replace(function, solution->first, solution->second);
  replaced.push_back(*solution);
  return true;
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

/// If |size| is a multiple of a symbol and |other| a number, returns the symbol and its value. Only regions, which need
/// not run, may fix a symbol.
static std::optional<std::pair<SizeSymbolAttr, Dim>> solveForNumber(Dim size, Dim other) {
  llvm::SetVector<SizeSymbolAttr> symbols;
  collectSymbols(size, symbols);
  if (symbols.size() != 1 || !other.isKnown()) {
    return std::nullopt;
  }
  int64_t factor = divisorOf(size);
  int64_t value = factor > 0 ? other.value() / factor : -1;
  bool isSolved = sameSize(size, Dim(factor) * sizeOf(symbols[0])) && value * factor == other.value() &&
                  value >= symbols[0].getMin() && value <= symbols[0].getMax();
  return isSolved ? std::optional(std::pair(symbols[0], Dim(value))) : std::nullopt;
}

static bool isOutside(mlir::Value value, mlir::Block *block) {
  if (value.getParentBlock() == block) {
    return llvm::isa<mlir::BlockArgument>(value);
  }
  mlir::Region *region = value.getParentRegion();
  while (region && region != block->getParent() && region->getParentOp()) { // without an op: it is being imported
    region = region->getParentRegion();
  }
  return region != block->getParent();
}

/// Returns a cast of |value| to |type| in |block|: one that exists, or a new one before |next|, or at the beginning.
static mlir::Value castTo(mlir::RankedTensorType type, mlir::Value value, mlir::Block *block, mlir::Operation *next) {
  for (mlir::Operation *user : value.getUsers()) {
    if (user->getBlock() == block && isSizeCast(user) && user->getResult(0).getType() == type) {
      return user->getResult(0);
    }
  }
  mlir::OpBuilder builder(value.getContext()); // the region belongs to no op yet
  if (next) {
    builder.setInsertionPoint(next);
  } else {
    builder.setInsertionPointToStart(block);
  }
  return mlir::UnrealizedConversionCastOp::create(builder, value.getLoc(), type, value).getResult(0);
}

/// Returns |value| in the sizes that it has within |region|: itself, or the result of a cast at the region's beginning.
static mlir::Value castInto(OpenRegion &region, mlir::Value value) {
  auto type = mlir::cast<mlir::RankedTensorType>(value.getType());
  if (region.replaced.empty() || Shape(type).isKnown() || !isOutside(value, region.block)) {
    return value;
  }
  for (const auto &[symbol, size] : region.replaced) {
    type = substitute(type, [&, symbol = symbol, size = size](SizeSymbolAttr other) {
      return other == symbol ? size : sizeOf(other);
    });
  }
  return type == value.getType() ? value : castTo(type, value, region.block, nullptr);
}

/// Returns whether |a| is to replace |b| where both are equal. Orders all sizes, so that no size replaces itself again.
static bool isSimpler(Dim a, Dim b) {
  auto key = [](Dim size) { return std::tuple(!size.isKnown(), !asSymbol(size), toText(size)); };
  return key(a) < key(b);
}

/// Gives the operands of |op| that have one of the |sizes| the other one, by casts before |op|. Returns false if there
/// are none.
static bool castOperands(const detail::UnequalSizes &sizes, mlir::Operation *op) {
  Dim from = sizes.a, to = sizes.b;
  if (isSimpler(from, to)) {
    std::swap(from, to);
  }
  bool overlaps = minOf(from) <= maxOf(to) && minOf(to) <= maxOf(from);
  bool isChanged = false;
  for (mlir::OpOperand &operand : op->getOpOperands()) {
    auto dims = Shape(operand.get()).dims();
    bool isFrom = overlaps && from.isSymbolic() && llvm::any_of(dims, [&](Dim dim) { return sameSize(dim, from); });
    if (isFrom) {
      for (Dim &dim : dims) {
        dim = sameSize(dim, from) ? to : dim;
      }
      auto element = mlir::cast<mlir::RankedTensorType>(operand.get().getType()).getElementType();
      operand.set(castTo(tensorType(dims, element), operand.get(), op->getBlock(), op));
    }
    isChanged |= isFrom;
  }
  return isChanged;
}

void replaceAgain(OpenRegion &region) {
  for (const auto &[from, to] : region.replaced) {
    auto replace = [&, from = from, to = to](SizeSymbolAttr symbol) { return symbol == from ? to : sizeOf(symbol); };
    region.block->walk([&](mlir::Operation *op) {
      replaceSymbols(op, replace);
      for (mlir::Region &inner : op->getRegions()) {
        for (mlir::BlockArgument argument : inner.getArguments()) {
          argument.setType(substitute(mlir::cast<mlir::RankedTensorType>(argument.getType()), replace));
        }
      }
    });
  }
  llvm::SmallVector<mlir::OpOperand *> captured;
  region.block->walk([&](mlir::Operation *op) {
    for (mlir::OpOperand &operand : op->getOpOperands()) {
      if (!isSizeCast(op) && !op->hasTrait<mlir::OpTrait::IsTerminator>()) {
        captured.push_back(&operand);
      }
    }
  });
  for (mlir::OpOperand *operand : captured) {
    operand->set(castInto(region, operand->get()));
  }
}

bool assumeEqual(const detail::UnequalSizes &sizes, mlir::Operation *op, OpenRegions &regions) {
  if (regions.empty() || op->getBlock() != regions.back().block) {
    return false;
  }
  OpenRegion &region = regions.back();
  auto solution = solveForTotal(sizes);
  for (auto solver : {solve, solveForNumber, solveWithNumber}) {
    solution = solution ? solution : solver(sizes.b, sizes.a);
    solution = solution ? solution : solver(sizes.a, sizes.b);
  }
  if (!solution) {
    return castOperands(sizes, op);
  }
  llvm::SetVector<SizeSymbolAttr> own = symbolsSetIn(*region.block->getParent()), used;
  collectSymbols(solution->second, used);
  used.insert(solution->first);
  if (llvm::any_of(used, [&](SizeSymbolAttr symbol) { return own.contains(symbol); })) {
    return castOperands(sizes, op); // the sizes are not known when the region begins
  }
  region.replaced.push_back(*solution);
  replaceAgain(region);
  return true;
}

mlir::Value useIn(OpenRegions &regions, mlir::Value value) {
  auto home = llvm::find_if(regions, [&](const OpenRegion &region) { return value.getParentBlock() == region.block; });
  bool isPassedOn = home == regions.end(); // from outside of all regions
  for (auto region = isPassedOn ? regions.begin() : home; region != regions.end(); ++region) {
    value = castInto(*region, value);
  }
  return value;
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
  std::string a = toText(sizes.a), b = toText(sizes.b);
  bool isRounded = llvm::StringRef(a).contains("floordiv") || llvm::StringRef(b).contains("floordiv");
  return llvm::formatv("; {0} and {1} must be equal for all sizes of the range: narrow or fix {2} with --dims{3}", a, b,
                       names, isRounded ? ", or give it a divisor, e.g. NAME=32..1280:32" : "");
}

} // namespace tessera::top::onnx_import
