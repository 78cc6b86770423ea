//===- BindDims.h - Replacement of symbols in a function --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IR_BINDDIMS_H
#define TESSERA_TOP_DIALECT_IR_BINDDIMS_H

#include "top_dialect/IR/Sizes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/DialectInterface.h"

namespace tessera::top {

/// The attribute of an argument that limits its sizes: the smallest and the largest value of each dim. An argument has
/// it if a size is an expression that exceeds the range which was stated for the dim.
inline constexpr llvm::StringLiteral kSizeLimitsAttr = "top.size_limits";

/// Replaces symbols in attributes of a dialect's ops. A dialect whose ops have sizes in attributes registers one.
class SizeAttributes : public mlir::DialectInterface::Base<SizeAttributes> {
public:
  using Base::Base;
  virtual void replaceSymbols(mlir::Operation *op, llvm::function_ref<Dim(SizeSymbolAttr)> replace) const = 0;
};

/// Returns the SizeAttributes of the dialect of |op|; null if it has none.
const SizeAttributes *sizeAttributesOf(mlir::Operation *op);

/// Returns |symbol| as a size.
inline Dim sizeOf(SizeSymbolAttr symbol) {
  return Dim::symbol(symbol.getContext(), symbol.getName(), symbol.getMin(), symbol.getMax(), symbol.getLikely());
}

/// Replaces the symbols in the types of the results of |op|, in its lists of sizes and in its dialect's attributes.
void replaceSymbols(mlir::Operation *op, llvm::function_ref<Dim(SizeSymbolAttr)> replace);
/// Replaces the symbols in all types of |function| and in its lists of sizes (see SymbolicLists.h).
void replaceSymbols(mlir::func::FuncOp function, llvm::function_ref<Dim(SizeSymbolAttr)> replace);

/// Returns the symbols of the arguments of |function| in order of appearance.
llvm::SetVector<SizeSymbolAttr> symbolsOf(mlir::func::FuncOp function);

/// Computes the value of each symbol from the sizes of the arguments. Emits an error at |function| that names the
/// argument if a size does not fit.
llvm::LogicalResult readSymbols(mlir::func::FuncOp function, llvm::ArrayRef<llvm::SmallVector<int64_t>> shapes,
                                llvm::DenseMap<mlir::Attribute, int64_t> &values);

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_IR_BINDDIMS_H
