//===- BindDims.cpp - Replaces symbols of sizes by numbers ----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/BindDims.h"
#include "top_dialect/Transforms/Passes.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

namespace tessera::top {
#define GEN_PASS_DEF_BINDDIMSPASS
#include "top_dialect/Transforms/Passes.h.inc"

namespace {
using namespace mlir;

class BindDimsPass : public impl::BindDimsPassBase<BindDimsPass> {
public:
  using BindDimsPassBase::BindDimsPassBase;

private:
  void runOnOperation() override {
    llvm::StringMap<int64_t> sizes;
    for (StringRef entry : dims) {
      auto [name, text] = entry.rsplit('=');
      if (int64_t size = 0; name.empty() || text.getAsInteger(10, size)) {
        getOperation().emitError("'") << entry << "' is not NAME=SIZE";
        return signalPassFailure();
      } else {
        sizes[name] = size;
      }
    }
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (failed(checkSizes(function, sizes))) {
        return signalPassFailure();
      }
      replaceSymbols(function, [&](SizeSymbolAttr symbol) {
        auto size = sizes.find(symbol.getName());
        return size == sizes.end() ? sizeOf(symbol) : Dim(size->second);
      });
    }
  }

  static LogicalResult checkSizes(func::FuncOp function, const llvm::StringMap<int64_t> &sizes) {
    llvm::SetVector<SizeSymbolAttr> symbols = symbolsOf(function);
    for (const auto &entry : sizes) {
      auto *symbol = llvm::find_if(symbols, [&](SizeSymbolAttr other) { return other.getName() == entry.getKey(); });
      if (symbol == symbols.end()) {
        auto names = llvm::map_range(symbols, [](SizeSymbolAttr other) { return other.getName(); });
        return function.emitError("'") << entry.getKey() << "' is not a symbol of an argument; the symbols are "
                                       << llvm::join(names, ", ");
      }
      if (entry.getValue() < symbol->getMin() || entry.getValue() > symbol->getMax()) {
        return function.emitError("'") << entry.getKey() << "' cannot be " << entry.getValue() << "; its range is "
                                       << symbol->getMin() << " to " << symbol->getMax();
      }
    }
    return success();
  }
};

} // namespace
} // namespace tessera::top
