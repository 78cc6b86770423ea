//===- Buckets.cpp - Sizes for which a chip of fixed sizes is compiled ----===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Pipelines/Buckets.h"

#include "codegen/Target/Target.h"
#include "device_dialect/IR/DeviceOps.h"
#include "top_dialect/IR/BindDims.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/Unsupported.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace tessera::codegen {
namespace {

/// The sizes of the open dims of one name, e.g. 320 and 640 for `h`.
struct NamedSizes {
  StringRef name;
  SmallVector<int64_t> sizes;
};

llvm::Error fail(const llvm::Twine &text) { return llvm::make_error<UsageError>(("--buckets: " + text).str()); }

/// Parses "h=320,640,w=320,640".
llvm::Expected<SmallVector<NamedSizes>> parse(StringRef text) {
  SmallVector<NamedSizes> found;
  for (StringRef entry : llvm::split(text, ',')) {
    auto [name, size] = entry.contains('=') ? entry.rsplit('=') : std::pair(StringRef(), entry);
    if (!name.empty()) {
      found.push_back({name, {}});
    }
    int64_t number = 0;
    if (found.empty() || size.getAsInteger(10, number) || number < 1) {
      return fail("'" + entry + "' is not NAME=SIZE,SIZE,..., e.g. batch=1,4,8");
    }
    if (!found.back().sizes.empty() && number <= found.back().sizes.back()) {
      return fail("the sizes of '" + found.back().name + "' must ascend, but " + llvm::Twine(number) + " follows " +
                  llvm::Twine(found.back().sizes.back()));
    }
    found.back().sizes.push_back(number);
  }
  return found;
}

/// Returns the name of the dim that a symbol stands for, and the divisor of its sizes: for the symbol `h/32`, `h`
/// and 32.
std::pair<StringRef, int64_t> dimOf(top::SizeSymbolAttr symbol) {
  auto [name, text] = symbol.getName().rsplit('/');
  int64_t divisor = 1;
  return text.getAsInteger(10, divisor) ? std::pair(symbol.getName(), int64_t(1)) : std::pair(name, divisor);
}

std::string listSymbols(func::FuncOp function) {
  std::string text;
  for (top::SizeSymbolAttr symbol : top::symbolsOf(function)) {
    auto [name, divisor] = dimOf(symbol);
    text += (text.empty() ? "'" : ", '") + name.str() + "' from " + std::to_string(symbol.getMin() * divisor) + " to " +
            std::to_string(symbol.getMax() * divisor);
    text += divisor > 1 ? " in steps of " + std::to_string(divisor) : "";
  }
  return text.empty() ? "none" : text;
}

llvm::Error checkSizes(const NamedSizes &sizes, top::SizeSymbolAttr symbol, func::FuncOp function) {
  int64_t divisor = dimOf(symbol).second;
  for (int64_t size : sizes.sizes) {
    if (size % divisor || size / divisor < symbol.getMin() || size / divisor > symbol.getMax()) {
      return fail("'" + sizes.name + "' cannot be " + llvm::Twine(size) + "; the open dims are " +
                  listSymbols(function));
    }
  }
  return llvm::Error::success();
}

} // namespace

llvm::Expected<device::Bucket> findBucket(func::FuncOp function, const BucketChoice &choice) {
  if (choice.text.empty()) {
    return device::Bucket();
  }
  auto all = parse(choice.text);
  if (!all) {
    return all.takeError();
  }
  device::Bucket bucket;
  llvm::SetVector<top::SizeSymbolAttr> symbols = top::symbolsOf(function);
  size_t index = choice.index;
  for (const NamedSizes &each : llvm::reverse(*all)) {
    auto symbol = llvm::find_if(symbols, [&](top::SizeSymbolAttr other) { return dimOf(other).first == each.name; });
    if (symbol == symbols.end()) {
      return fail("the model has no open dim '" + each.name + "'; the open dims are " + listSymbols(function));
    }
    if (llvm::Error error = checkSizes(each, *symbol, function)) {
      return std::move(error);
    }
    size_t at = index % each.sizes.size();
    index /= each.sizes.size();
    int64_t divisor = dimOf(*symbol).second;
    bucket[*symbol] = {at ? each.sizes[at - 1] / divisor + 1 : symbol->getMin(), each.sizes[at] / divisor};
  }
  for (top::SizeSymbolAttr symbol : symbols) {
    if (!bucket.contains(symbol)) {
      return fail("sizes of '" + dimOf(symbol).first + "' are missing; the open dims are " + listSymbols(function));
    }
  }
  return bucket;
}

std::string suggestBuckets(func::FuncOp function) {
  std::string text = "--buckets ";
  for (auto [i, symbol] : llvm::enumerate(top::symbolsOf(function))) {
    auto [name, divisor] = dimOf(symbol);
    int64_t middle = (symbol.getMin() + symbol.getMax()) / 2;
    text += (i ? "," : "") + name.str() + "=";
    text += middle < symbol.getMax() && middle > 0 ? std::to_string(middle * divisor) + "," : "";
    text += std::to_string(symbol.getMax() * divisor);
  }
  return text;
}

llvm::Error checkBuckets(func::FuncOp function, const device::Bucket &bucket) {
  std::string names;
  function.walk([&](Operation *op) {
    bool isKnown = true;
    auto check = [&](top::SizeSymbolAttr symbol) { isKnown &= bucket.contains(symbol); };
    for (Type type : op->getResultTypes()) {
      type.walk(check);
    }
    op->getAttrDictionary().walk([&](top::SizeSymbolAttr symbol) {
      check(symbol);
      isKnown &= isa<device::CopyOp, device::AttentionOp>(op);
    });
    if (!isKnown && op != function.getOperation()) {
      names += (names.empty() ? "'" : "', '") + top::getDisplayName(op->getLoc());
    }
  });
  return names.empty()
             ? llvm::Error::success()
             : top::unsupported("--buckets does not support sizes that a run computes, as those of " + names +
                                "'; fix them with model_transform --input_values, or choose a chip that runs any size");
}

} // namespace tessera::codegen
