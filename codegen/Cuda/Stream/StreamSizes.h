// SPDX-License-Identifier: Apache-2.0
//===- StreamSizes.h - Sizes that a stream computes at run time -*- C++ -*-===//
#ifndef TESSERA_CODEGEN_CUDA_STREAM_STREAMSIZES_H
#define TESSERA_CODEGEN_CUDA_STREAM_STREAMSIZES_H

#include "codegen/Kernels/SizeTerms.h"

namespace tessera::cuda {

/// The size table of a stream (bmodel/cuda/program.h): the symbols that its launches take, and the sizes that the
/// runtime computes from them.
class StreamSizes {
public:
  /// Adds the symbols of |op|. All ops of the stream come before the first call of indexOf().
  void addParams(mlir::Operation *op) {
    for (top::SizeSymbolAttr symbol : kernels::symbolsOf(op)) {
      symbols.insert(symbol);
    }
  }
  llvm::ArrayRef<top::SizeSymbolAttr> params() const { return symbols.getArrayRef(); }
  uint32_t paramOf(top::SizeSymbolAttr symbol) const { return uint32_t(llvm::find(symbols, symbol) - symbols.begin()); }

  /// Returns the index of |size|, which is symbolic; equal sizes have the same index.
  uint32_t indexOf(Dim size) { return numbers.try_emplace(size.expression(), uint32_t(numbers.size())).first->second; }

  /// Returns the bytes of the table.
  std::vector<char> table() const;

private:
  kernels::SizeSymbols symbols;
  llvm::MapVector<top::SizeAttr, uint32_t> numbers;
};

} // namespace tessera::cuda

#endif // TESSERA_CODEGEN_CUDA_STREAM_STREAMSIZES_H
