//===- SizeTerms.h - Sizes over the parameters of a kernel ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_SIZETERMS_H
#define TESSERA_CODEGEN_KERNELS_SIZETERMS_H

#include "bmodel/kernel_contract.h"
#include "top_dialect/IR/Sizes.h"

#include "mlir/IR/Operation.h"

#include <vector>

namespace tessera::kernels {

using SizeSymbols = llvm::SetVector<top::SizeSymbolAttr>;

/// A size in postfix order, in which parameter i stands for the i-th of a kernel's symbols. Equal kernels of ops whose
/// symbols have different names have the same terms.
using SizeTerms = std::vector<bm_dim_term>;

/// Returns the symbols in the types of |op|'s operands and results and in its attributes, in order of appearance. They
/// are the parameters of the op's kernel (LaunchDef.dims).
SizeSymbols symbolsOf(mlir::Operation *op);

/// Returns true if a size or position that |op| states, or a size of its operands or results, is not a number.
bool hasOpenSizes(mlir::Operation *op);

/// Returns the terms of |size|, all symbols of which are in |symbols|. The size must not be unknown.
SizeTerms termsOf(Dim size, const SizeSymbols &symbols);

/// Returns |symbol| as a size.
Dim sizeOf(top::SizeSymbolAttr symbol);

/// Returns the size that |terms| compute over |symbols|.
Dim sizeOf(const SizeTerms &terms, const SizeSymbols &symbols);

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_SIZETERMS_H
