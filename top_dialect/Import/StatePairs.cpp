//===- StatePairs.cpp - Inputs and outputs that are states ----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/StatePairs.h"

#include "top_dialect/IR/Sizes.h"
#include "top_dialect/IR/State.h"
#include "top_dialect/IR/TopDialect.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace tessera::top {
namespace {

template <typename... Args>
llvm::Error fail(const char *format, Args &&...args) {
  return llvm::createStringError(llvm::formatv(format, std::forward<Args>(args)...).str());
}

SmallVector<StringRef> inputNames(func::FuncOp function) {
  SmallVector<StringRef> names;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    auto name = function.getArgAttrOfType<StringAttr>(i, TopDialect::kNameAttr);
    names.push_back(name ? name.getValue() : "");
  }
  return names;
}

SmallVector<StringRef> outputNames(func::FuncOp function) {
  SmallVector<StringRef> names;
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    auto name = function.getResultAttrOfType<StringAttr>(i, TopDialect::kNameAttr);
    names.push_back(name ? name.getValue() : "");
  }
  return names;
}

/// Words of an input's name, and the words that the output's name has in their place.
constexpr std::pair<StringLiteral, StringLiteral> kWords[] = {
    {"past_key_values", "present"},
    {"past_key_values", "present_key_values"},
    {"past", "present"},
    {"in", "out"},
    {"input", "output"},
    {"prev", "next"},
    {"prev", "cur"},
    {"prev", "new"},
    {"old", "new"},
    {"0", "n"},
};
/// Texts that an output's name has before or after the input's name.
constexpr StringLiteral kPrefixes[] = {"new_", "next_", "updated_"};
constexpr StringLiteral kSuffixes[] = {"_out", "_output", "_new", "_next", "_n", "N", "n", ".out"};

/// Returns true if |text|[at, at + size) is a word of its own: `in` of `h_in`, but not of `min`. Digits end a word.
bool isWord(StringRef text, size_t at, size_t size) {
  auto separates = [](char left, char right) { return !llvm::isAlpha(left) || !llvm::isAlpha(right); };
  return (at == 0 || separates(text[at - 1], text[at])) &&
         (at + size == text.size() || separates(text[at + size - 1], text[at + size]));
}

/// Returns the names that the output of a state whose input is |name| may have.
llvm::StringSet<> successorsOf(StringRef name) {
  llvm::StringSet<> found;
  for (auto [before, after] : kWords) {
    for (size_t at = name.find(before); at != StringRef::npos; at = name.find(before, at + 1)) {
      if (isWord(name, at, before.size())) {
        found.insert((name.take_front(at) + after + name.drop_front(at + before.size())).str());
      }
    }
  }
  for (StringRef prefix : kPrefixes) {
    found.insert((prefix + name).str());
  }
  for (StringRef suffix : kSuffixes) {
    found.insert((name + suffix).str());
  }
  return found;
}

std::string listNames(ArrayRef<StringRef> names) { return "'" + llvm::join(names, "', '") + "'"; }

} // namespace

llvm::Expected<std::vector<StatePair>> parseStatePairs(StringRef text) {
  std::vector<StatePair> pairs;
  SmallVector<StringRef> entries;
  text.split(entries, ',');
  for (StringRef entry : entries) {
    auto [input, output] = entry.trim().split('=');
    if (input.empty() || output.empty()) {
      return fail("state '{0}': write INPUT=OUTPUT, e.g. h_in=h_out", entry);
    }
    pairs.emplace_back(input.trim().str(), output.trim().str());
  }
  return pairs;
}

std::vector<StatePair> findStatePairs(func::FuncOp function) {
  SmallVector<StringRef> inputs = inputNames(function), outputs = outputNames(function);
  SmallVector<SmallVector<unsigned>> partners(inputs.size());
  SmallVector<unsigned> claims(outputs.size());
  for (auto [i, input] : llvm::enumerate(inputs)) {
    llvm::StringSet<> wanted = successorsOf(input);
    for (auto [k, output] : llvm::enumerate(outputs)) {
      Type type = function.getArgumentTypes()[i], result = function.getResultTypes()[k];
      bool fits = (type == result && Shape(cast<RankedTensorType>(type)).isKnown()) || findGrowth(type, result);
      if (fits && input != output && wanted.contains(output)) {
        partners[i].push_back(unsigned(k));
        ++claims[k];
      }
    }
  }
  std::vector<StatePair> pairs;
  for (auto [input, found] : llvm::zip_equal(inputs, partners)) {
    if (found.size() == 1 && claims[found.front()] == 1) {
      pairs.emplace_back(input.str(), outputs[found.front()].str());
    }
  }
  return pairs;
}

llvm::Error markStates(func::FuncOp function, ArrayRef<StatePair> pairs) {
  SmallVector<StringRef> inputs = inputNames(function), outputs = outputNames(function);
  for (const auto &[input, output] : pairs) {
    auto argument = unsigned(llvm::find(inputs, StringRef(input)) - inputs.begin());
    auto result = unsigned(llvm::find(outputs, StringRef(output)) - outputs.begin());
    if (argument == inputs.size()) {
      return fail("state '{0}={1}': the model has no input '{0}'; its inputs are {2}", input, output,
                  listNames(inputs));
    }
    if (result == outputs.size()) {
      return fail("state '{0}={1}': the model has no output '{1}'; its outputs are {2}", input, output,
                  listNames(outputs));
    }
    if (isStateArgument(function, argument) || isStateResult(function, result)) {
      return fail("state '{0}={1}': '{2}' belongs to another state already", input, output,
                  isStateArgument(function, argument) ? input : output);
    }
    addState(function, {input, argument, result});
  }
  if (llvm::Error error = verifyStates(function)) {
    return error;
  }
  return pairs.size() == outputs.size() ? fail("all outputs are states, so the model would not return anything")
                                        : llvm::Error::success();
}

} // namespace tessera::top
