//===- State.cpp - Tensors that a network keeps between runs --------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/State.h"

#include "top_dialect/IR/BindDims.h"
#include "top_dialect/IR/Sizes.h"
#include "top_dialect/IR/TopOps.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace tessera::top {
namespace {

template <typename... Args>
llvm::Error fail(const char *format, Args &&...args) {
  return llvm::createStringError(llvm::formatv(format, std::forward<Args>(args)...).str());
}

/// Adds the names of the states in |attributes|, by number of the argument or result.
llvm::Error collect(StringRef kind, unsigned count, llvm::function_ref<Attribute(unsigned)> attributeOf,
                    llvm::StringMap<unsigned> &found) {
  for (unsigned i = 0; i < count; ++i) {
    Attribute attribute = attributeOf(i);
    if (!attribute) {
      continue;
    }
    auto name = dyn_cast<StringAttr>(attribute);
    if (!name || name.getValue().empty()) {
      return fail("'{0}' of {1} {2} must be a name", kStateAttr, kind, i);
    }
    if (!found.try_emplace(name.getValue(), i).second) {
      return fail("state '{0}' has two {1}s, {2} and {3}", name.getValue(), kind, found[name.getValue()], i);
    }
  }
  return llvm::Error::success();
}

/// The growth of a state, an attribute of its argument.
constexpr llvm::StringLiteral kGrowthAttr = "top.growth";

void setGrowth(func::FuncOp function, unsigned argument, const Growth &growth) {
  Builder builder(function.getContext());
  function.setArgAttr(
      argument, kGrowthAttr,
      builder.getDictionaryAttr({{builder.getStringAttr("after"), growth.after.expression()},
                                 {builder.getStringAttr("axis"), builder.getI64IntegerAttr(growth.axis)},
                                 {builder.getStringAttr("before"), growth.before.expression()}}));
}

/// Returns the symbol that |size| is, or null.
SizeSymbolAttr symbolOf(Dim size) {
  llvm::SetVector<SizeSymbolAttr> symbols;
  collectSymbols(size, symbols);
  return symbols.size() == 1 && sameSize(size, sizeOf(symbols.front())) ? symbols.front() : SizeSymbolAttr();
}

llvm::Error verifyPair(func::FuncOp function, const State &state) {
  Type type = function.getArgumentTypes()[state.argument], result = function.getResultTypes()[state.result];
  if (std::optional<Growth> growth = findGrowth(type, result)) {
    int64_t capacity = growth->capacity(), added = maxOf(growth->after - growth->before);
    if (minOf(growth->before) != 0) {
      return fail("state '{0}' is empty before the first run, so the range of {1} must begin at 0 (--dims {1}=0..{2})",
                  state.name, growth->name(), capacity);
    }
    if (added > capacity) {
      return fail(
          "state '{0}' has space for {1} indices, the range of {2}, but a run may append {3}; raise that range, or "
          "lower the ranges of other dims (--dims)",
          state.name, capacity, growth->name(), added);
    }
    return function.getArgAttr(state.argument, kInitialAttr)
               ? fail("state '{0}' grows, so it cannot have the initial value '{1}'", state.name, kInitialAttr)
               : llvm::Error::success();
  }
  if (type != result) {
    return fail("state '{0}' is {1} as argument and {2} as result; both must have the same type, or all sizes but one "
                "must be numbers (--dims batch=1) and this one the name of a dim before a run and that plus the new "
                "indices after it",
                state.name, type, result);
  }
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !Shape(tensor).isKnown()) {
    return fail("state '{0}' is {1}; the sizes of a state must be numbers", state.name, type);
  }
  Attribute initial = function.getArgAttr(state.argument, kInitialAttr);
  auto elements = dyn_cast_or_null<DenseElementsAttr>(initial);
  return !initial || (elements && elements.getType() == type)
             ? llvm::Error::success()
             : fail("'{0}' of state '{1}' must be a dense value of type {2}", kInitialAttr, state.name, type);
}

} // namespace

SmallVector<State> listStates(func::FuncOp function) {
  SmallVector<State> states;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    auto name = function.getArgAttrOfType<StringAttr>(i, kStateAttr);
    for (unsigned k = 0; name && k < function.getNumResults(); ++k) {
      if (function.getResultAttr(k, kStateAttr) == name) {
        states.push_back({name.getValue(), i, k});
      }
    }
  }
  return states;
}

bool isStateArgument(func::FuncOp function, unsigned argument) {
  return bool(function.getArgAttr(argument, kStateAttr));
}

bool isStateResult(func::FuncOp function, unsigned result) { return bool(function.getResultAttr(result, kStateAttr)); }

std::optional<Growth> findGrowth(Type argument, Type result) {
  auto from = dyn_cast<RankedTensorType>(argument), to = dyn_cast<RankedTensorType>(result);
  if (!from || !to || from.getRank() != to.getRank() || from.getElementType() != to.getElementType()) {
    return std::nullopt;
  }
  std::optional<Growth> growth;
  for (int64_t d = 0; d < from.getRank(); ++d) {
    Dim before = Shape(from)[d], after = Shape(to)[d];
    if (before.isKnown() && sameSize(before, after)) {
      continue;
    }
    SizeSymbolAttr length = symbolOf(before);
    llvm::SetVector<SizeSymbolAttr> added;
    collectSymbols(after - before, added);
    bool grows = minOf(after - before) >= 0 && maxOf(after - before) > 0;
    if (growth || !length || !after.isSymbolic() || !grows || added.contains(length)) {
      return std::nullopt;
    }
    growth = Growth{unsigned(d), before, after};
  }
  return growth;
}

std::optional<Growth> findGrowth(func::FuncOp function, unsigned argument) {
  for (const State &state : listStates(function)) {
    if (state.argument == argument) {
      return findGrowth(function.getArgumentTypes()[argument], function.getResultTypes()[state.result]);
    }
  }
  return std::nullopt;
}

llvm::DenseMap<SizeSymbolAttr, Dim> lengthsBelowCapacity(func::FuncOp function) {
  llvm::DenseMap<SizeSymbolAttr, Dim> lengths;
  for (const State &state : listStates(function)) {
    if (std::optional<Growth> growth =
            findGrowth(function.getArgumentTypes()[state.argument], function.getResultTypes()[state.result])) {
      SizeSymbolAttr length = symbolOf(growth->before);
      int64_t most = length.getMax() - maxOf(growth->after - growth->before);
      lengths.try_emplace(
          length, Dim::symbol(function.getContext(), length.getName(), 0, most, std::min(length.getLikely(), most)));
    }
  }
  return lengths;
}

std::optional<Growth> getGrowth(func::FuncOp function, unsigned argument) {
  auto stored = function.getArgAttrOfType<DictionaryAttr>(argument, kGrowthAttr);
  if (!stored) {
    return std::nullopt;
  }
  return Growth{unsigned(stored.getAs<IntegerAttr>("axis").getInt()), Dim(stored.getAs<SizeAttr>("before")),
                Dim(stored.getAs<SizeAttr>("after"))};
}

bool appendsToState(Operation *op) {
  auto argument = op->getNumOperands() > 1 ? dyn_cast<BlockArgument>(op->getOperand(0)) : BlockArgument();
  auto function = argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : func::FuncOp();
  return function && isa<ConcatOp>(op) && getGrowth(function, argument.getArgNumber());
}

llvm::Error recordGrowth(func::FuncOp function) {
  llvm::DenseMap<Attribute, Attribute> lengths; // after a run, by that before it
  for (const State &state : listStates(function)) {
    std::optional<Growth> growth =
        findGrowth(function.getArgumentTypes()[state.argument], function.getResultTypes()[state.result]);
    if (!growth) {
      continue;
    }
    auto [known, isNew] = lengths.try_emplace(growth->before.expression(), growth->after.expression());
    if (!isNew && known->second != growth->after.expression()) {
      return fail("state '{0}' has the length {1} after a run, but another one with its length {2} does not",
                  state.name, toText(growth->after), toText(growth->before));
    }
    setGrowth(function, state.argument, *growth);
  }
  return llvm::Error::success();
}

void addState(func::FuncOp function, const State &state) {
  auto name = StringAttr::get(function.getContext(), state.name);
  function.setArgAttr(state.argument, kStateAttr, name);
  function.setResultAttr(state.result, kStateAttr, name);
}

void removeStates(func::FuncOp function) {
  auto name = StringAttr::get(function.getContext(), kStateAttr);
  auto initial = StringAttr::get(function.getContext(), kInitialAttr);
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    function.removeArgAttr(i, name);
    function.removeArgAttr(i, initial);
  }
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    function.removeResultAttr(i, name);
  }
}

llvm::Error verifyStates(func::FuncOp function) {
  llvm::StringMap<unsigned> arguments, results;
  llvm::Error error = collect(
      "argument", function.getNumArguments(), [&](unsigned i) { return function.getArgAttr(i, kStateAttr); },
      arguments);
  if (!error) {
    error = collect(
        "result", function.getNumResults(), [&](unsigned i) { return function.getResultAttr(i, kStateAttr); }, results);
  }
  if (error) {
    return error;
  }
  for (const auto &[name, result] : results) {
    if (!arguments.contains(name)) {
      return fail("state '{0}' has result {1} but no argument", name, result);
    }
  }
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    auto name = function.getArgAttrOfType<StringAttr>(i, kStateAttr);
    if (!name) {
      if (function.getArgAttr(i, kInitialAttr)) {
        return fail("argument {0} has '{1}' but is not a state", i, kInitialAttr);
      }
      continue;
    }
    auto result = results.find(name.getValue());
    if (result == results.end()) {
      return fail("state '{0}' has argument {1} but no result", name.getValue(), i);
    }
    if (llvm::Error wrong = verifyPair(function, {name.getValue(), i, result->second})) {
      return wrong;
    }
  }
  return llvm::Error::success();
}

} // namespace tessera::top
