//===- StageSizes.cpp - Dim slots of a stage ------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Pipelines/StageSizes.h"

#include "top_dialect/IR/BindDims.h"
#include "top_dialect/IR/State.h"
#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/IR/Unsupported.h"

using namespace mlir;

namespace tessera::codegen {

static bmodel::DimOp toOp(SizeStep::Kind kind) {
  switch (kind) {
  case SizeStep::Add:
    return bmodel::DimOp::Add;
  case SizeStep::Multiply:
    return bmodel::DimOp::Mul;
  case SizeStep::FloorDiv:
    return bmodel::DimOp::FloorDiv;
  case SizeStep::Min:
    return bmodel::DimOp::Min;
  case SizeStep::Max:
    return bmodel::DimOp::Max;
  case SizeStep::Number:
  case SizeStep::Symbol:
    break;
  }
  llvm_unreachable("a number or a symbol");
}

bool StageSizes::isBound(Dim size) const {
  llvm::SetVector<top::SizeSymbolAttr> used;
  collectSymbols(size, used);
  return llvm::all_of(used, [&](top::SizeSymbolAttr symbol) { return symbols.contains(symbol); });
}

/// Binds the symbol of an input's size c * symbol: the size itself is the slot that the shape binds, and a multiple of
/// c. Returns false for sizes of another form.
bool StageSizes::bind(Dim size) {
  ArrayRef<int64_t> coefficients = size.expression().getCoefficients();
  ArrayAttr atoms = size.expression().getMonomials().front();
  auto symbol = atoms.size() == 1 ? dyn_cast<top::SizeSymbolAttr>(atoms[0]) : top::SizeSymbolAttr();
  if (coefficients.size() != 1 || coefficients[0] < 1 || !symbol) {
    return false;
  }
  int64_t factor = coefficients[0];
  bmodel::DimRange range{minOf(size), maxOf(size)};
  std::string name = symbol.getName().str();
  if (factor == 1) {
    symbols[symbol] = slots[size.expression()] = addDim(stage, name, range, 1, symbol.getLikely());
    return true;
  }
  uint32_t whole = addDim(stage, toText(size), range, factor, factor * symbol.getLikely());
  slots[size.expression()] = whole;
  symbols[symbol] = bmodel::addDerivedDim(
      stage, name, {bmodel::slotTerm(whole), bmodel::constantTerm(factor), bmodel::opTerm(bmodel::DimOp::FloorDiv)},
      {symbol.getMin(), symbol.getMax()}, symbol.getLikely());
  return true;
}

void StageSizes::limitSizes(func::FuncOp function) {
  for (auto &dim : stage.dims) {
    if (dim->next >= 0) { // a run may not leave more behind than the capacity
      bmodel::DimSlotDefT &next = *stage.dims[size_t(dim->next)];
      next.max = dim->max, next.likely = std::min(next.likely, next.max);
    }
  }
  for (BlockArgument argument : function.getArguments()) {
    auto limits = function.getArgAttrOfType<DenseI64ArrayAttr>(argument.getArgNumber(), top::kSizeLimitsAttr);
    for (auto [dim, size] : llvm::enumerate(Shape(argument).dims())) {
      if (limits && size.isSymbolic()) {
        bmodel::DimSlotDefT &slot = *stage.dims[slotOf(size)];
        slot.min = std::max(slot.min, limits[2 * dim]);
        slot.max = std::min(slot.max, limits[2 * dim + 1]);
        slot.likely = llvm::alignDown(std::clamp(slot.likely, slot.min, slot.max), slot.divisor);
        slot.likely = std::max<int64_t>(slot.likely, llvm::alignTo(slot.min, slot.divisor));
      }
    }
  }
}

/// Binds the lengths of states to slots that the context keeps.
void StageSizes::bindLengths(func::FuncOp function) {
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    std::optional<top::Growth> growth = top::getGrowth(function, i);
    if (!growth || slots.contains(growth->before.expression()) || !isBound(growth->after - growth->before)) {
      continue;
    }
    uint32_t before = addDim(stage, growth->name(), {0, growth->capacity()}, 1, likelyOf(growth->before));
    llvm::SetVector<top::SizeSymbolAttr> symbol;
    collectSymbols(growth->before, symbol);
    symbols[symbol.front()] = slots[growth->before.expression()] = before;
    stage.dims[before]->next = int32_t(slotOf(growth->after));
  }
}

llvm::Error StageSizes::bindInputs(func::FuncOp function) {
  llvm::SetVector<top::SizeSymbolAttr> lengths; // bound by states, not by inputs
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    if (std::optional<top::Growth> growth = top::getGrowth(function, i)) {
      collectSymbols(growth->before, lengths);
    }
  }
  auto isLength = [&](Dim size) {
    llvm::SetVector<top::SizeSymbolAttr> used;
    collectSymbols(size, used);
    return llvm::any_of(used, [&](top::SizeSymbolAttr symbol) { return lengths.contains(symbol); });
  };
  auto visit = [&](llvm::function_ref<llvm::Error(BlockArgument, size_t, Dim)> action) -> llvm::Error {
    for (BlockArgument argument : function.getArguments()) {
      for (auto [dim, size] : llvm::enumerate(Shape(argument).dims())) {
        if (llvm::Error error = size.isSymbolic() ? action(argument, dim, size) : llvm::Error::success()) {
          return error;
        }
      }
    }
    return llvm::Error::success();
  };
  // The second visit finds sums whose symbols later inputs bind.
  llvm::cantFail(visit([&](BlockArgument, size_t, Dim size) -> llvm::Error {
    if (!isBound(size) && !isLength(size)) {
      bind(size);
    }
    return llvm::Error::success();
  }));
  bindLengths(function);
  return visit([&](BlockArgument argument, size_t dim, Dim size) -> llvm::Error {
    if (isBound(size)) {
      return llvm::Error::success();
    }
    auto name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), top::TopDialect::kNameAttr);
    return top::unsupported("dim " + std::to_string(dim) + " of input '" + (name ? name.str() : "") + "' is " +
                            toText(size) +
                            ", from which its symbols cannot be computed; give another input's dim one "
                            "of them as its name (--dims), or fix the dim with --input_shapes");
  });
}

void StageSizes::bindSteps(func::FuncOp function) {
  for (top::SizeSymbolAttr symbol : top::symbolsSetIn(function.getBody())) {
    if (!symbols.contains(symbol)) {
      bmodel::DimRange range{symbol.getMin(), symbol.getMax()};
      symbols[symbol] = slots[sizeOf(symbol).expression()] =
          addDim(stage, symbol.getName().str(), range, 1, symbol.getLikely());
    }
  }
}

std::vector<bmodel::DimTerm> StageSizes::termsOf(Dim size) const {
  std::vector<bmodel::DimTerm> terms;
  for (const SizeStep &step : toPostfix(size)) {
    if (step.kind == SizeStep::Number) {
      terms.push_back(bmodel::constantTerm(step.number));
    } else if (step.kind == SizeStep::Symbol) {
      terms.push_back(bmodel::slotTerm(symbols.at(step.symbol)));
    } else {
      terms.push_back(bmodel::opTerm(toOp(step.kind)));
    }
  }
  return terms;
}

bmodel::EvalDimDefT StageSizes::update(const top::SizeUpdate &update) const {
  bmodel::EvalDimDefT step;
  step.slot = symbols.at(update.symbol), step.terms = termsOf(update.size);
  return step;
}

bmodel::EvalDimDefT StageSizes::check(Dim a, Dim b) {
  bmodel::EvalDimDefT step; // sets a dim that can only be 0 to the difference
  step.slot = addDim(stage, "difference of " + toText(a) + " and " + toText(b), {0, 0});
  step.terms = termsOf(max(a - b, b - a));
  return step;
}

uint32_t StageSizes::slotOf(Dim size) {
  if (auto known = slots.find(size.expression()); known != slots.end()) {
    return known->second;
  }
  // Interval arithmetic may find negative bounds, e.g. of floor(7 * n / 8) - n / 2, but no size is negative.
  bmodel::DimRange range{std::max<int64_t>(minOf(size), 0), maxOf(size)};
  return slots[size.expression()] = bmodel::addDerivedDim(stage, toText(size), termsOf(size), range, likelyOf(size));
}

} // namespace tessera::codegen
