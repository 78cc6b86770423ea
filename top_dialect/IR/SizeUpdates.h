//===- SizeUpdates.h - Sizes that control flow sets -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// The branches of an if may return a value in different sizes, and a loop may carry a value whose size changes from
// pass to pass. The value's type then has a symbol of its own for the size. It is set whenever the value is: by each
// branch, before a loop, and at both ends of a pass, where the argument of the body and the result have different
// symbols.
#ifndef TESSERA_TOP_DIALECT_IR_SIZEUPDATES_H
#define TESSERA_TOP_DIALECT_IR_SIZEUPDATES_H

#include "top_dialect/IR/Sizes.h"

#include "mlir/IR/Region.h"

namespace tessera::top {

/// The attribute of a loop whose number of passes is known only when it ends: the first dim of each stacked result is a
/// symbol that the loop sets.
inline constexpr llvm::StringLiteral kOpenPassesAttr = "top.open_passes";

/// A symbol and the size that it becomes.
struct SizeUpdate {
  SizeSymbolAttr symbol;
  Dim size;
};
using SizeUpdates = llvm::SmallVector<SizeUpdate>;

/// Returns the symbol that |size| is; null for other sizes.
SizeSymbolAttr asSymbol(Dim size);

/// Returns the updates for values of the types |from| to become values of the types |to|. Returns nothing if a type has
/// another rank, an unknown size, or a size that differs and is not a symbol of its own.
std::optional<SizeUpdates> findUpdates(mlir::TypeRange to, mlir::TypeRange from);

/// Returns true if |op| gives a tensor other sizes, which a run checks to be equal: an unrealized_conversion_cast of
/// tensors. Only branches and bodies contain it, where they need sizes to be equal that are not always so.
bool isSizeCast(mlir::Operation *op);
/// Returns the symbols that |op|, but no op in its regions, sets.
llvm::SetVector<SizeSymbolAttr> symbolsSetBy(mlir::Operation *op);
/// Returns true if |op| can be removed: nothing uses its results, and it sets no symbol, which sizes may use.
bool isUnused(mlir::Operation *op);
/// Returns the symbols that ops in |region| set.
llvm::SetVector<SizeSymbolAttr> symbolsSetIn(mlir::Region &region);

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_IR_SIZEUPDATES_H
