//===- KernelKey.cpp - Content address of a kernel ------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Kernels/KernelInterface.h"
#include "codegen/Kernels/SizeTerms.h"

#include "device_dialect/IR/Exact.h"
#include "top_dialect/IR/Constants.h"

#include "mlir/IR/AttrTypeSubElements.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;

namespace tessera::kernels {

namespace {
/// Writes ops as text in which each value and each symbol of a size is numbered in order of appearance.
class KeyWriter {
public:
  KeyWriter(llvm::raw_ostream &os, Operation *op) : os(os), symbols(symbolsOf(op)) {
    renamer.addReplacement([this](top::SizeSymbolAttr symbol) -> Attribute {
      std::string name = "s" + std::to_string(llvm::find(symbols, symbol) - symbols.begin());
      return top::SizeSymbolAttr::get(symbol.getContext(), name, symbol.getMin(), symbol.getMax(), symbol.getLikely());
    });
  }

  void write(Operation *op) {
    os << op->getName() << '(';
    for (Value operand : op->getOperands()) {
      os << number(operand) << (top::isConstant(operand) ? "=" : ":") << renamed(operand.getType()) << ',';
    }
    os << ')';
    for (NamedAttribute attribute : op->getAttrDictionary()) {
      if (isPartOfKernel(attribute)) {
        os << attribute.getName().strref() << '=' << renamed(attribute.getValue()) << ',';
      }
    }
    os << "->";
    for (Value result : op->getResults()) {
      os << number(result) << ':' << renamed(result.getType()) << ',';
    }
    for (Region &region : op->getRegions()) {
      os << '{';
      for (Block &block : region) {
        for (BlockArgument argument : block.getArguments()) {
          os << number(argument) << ':' << argument.getType() << ',';
        }
        for (Operation &inner : block) {
          os << '\n';
          write(&inner);
        }
      }
      os << '}';
    }
  }

private:
  /// Returns false for names and addresses, which do not change the code: they are discardable attributes, whose names
  /// contain a dot.
  static bool isPartOfKernel(NamedAttribute attribute) { return !attribute.getName().strref().contains('.'); }

  template <typename T>
  T renamed(T typeOrAttribute) {
    return symbols.empty() ? typeOrAttribute : cast<T>(renamer.replace(typeOrAttribute));
  }

  unsigned number(Value value) { return numbers.try_emplace(value, numbers.size()).first->second; }

  llvm::raw_ostream &os;
  SizeSymbols symbols;
  AttrTypeReplacer renamer;
  llvm::DenseMap<Value, unsigned> numbers;
};
} // namespace

std::string kernelKey(Operation *op, StringRef machine) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << machine << (device::isExact(op) ? " exact\n" : "\n");
  KeyWriter(os, op).write(op);
  llvm::XXH128_hash_t hash = llvm::xxh3_128bits(llvm::arrayRefFromStringRef(text));
  return llvm::utohexstr(hash.high64, /*LowerCase=*/true, 16) + llvm::utohexstr(hash.low64, true, 16);
}

} // namespace tessera::kernels
