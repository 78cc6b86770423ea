//===- State.cpp - Tensors that a network keeps between runs --------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/State.h"

#include "top_dialect/IR/Sizes.h"

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

llvm::Error verifyPair(func::FuncOp function, const State &state) {
  Type type = function.getArgumentTypes()[state.argument], result = function.getResultTypes()[state.result];
  if (type != result) {
    return fail("state '{0}' is {1} as argument and {2} as result; both must have the same type", state.name, type,
                result);
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
