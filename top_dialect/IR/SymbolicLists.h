//===- SymbolicLists.h - Lists of sizes in attributes of ops ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// reshape and expand (`shape`), slice (`sizes`, `starts`) and resize (`sizes`) list sizes as numbers. An entry that is
// an expression is -1 there, and a discardable attribute, `top.dims` or, for starts, `top.start_dims`, holds the whole
// list as sizes. Ops whose sizes are numbers have no such attribute. The result types state the same sizes, so a
// lowering reads `top.start_dims` alone.
//
//===----------------------------------------------------------------------===//
#ifndef TESSERA_TOP_DIALECT_IR_SYMBOLICLISTS_H
#define TESSERA_TOP_DIALECT_IR_SYMBOLICLISTS_H

#include "top_dialect/IR/Sizes.h"

#include "mlir/IR/Operation.h"

namespace tessera::top {

inline constexpr llvm::StringLiteral kDimsAttr = "top.dims", kStartDimsAttr = "top.start_dims";

/// A list of sizes as the arguments of an op: numbers, and the list as sizes if one of them is an expression.
struct SizeList {
  llvm::SmallVector<int64_t> numbers; ///< -1 for expressions and unknown sizes
  DimsAttr dims;                      ///< null if no size is an expression
};
SizeList makeSizeList(llvm::ArrayRef<Dim> sizes, mlir::MLIRContext *context);

/// Stores the expressions of a list at |op|, or removes the attribute |name| if there are none.
void setDims(mlir::Operation *op, llvm::StringRef name, DimsAttr dims);

/// Returns true if a result or a position within an operand depends on sizes that are known at run time, so that the
/// results are no constants even if all operands are.
bool dependsOnSizes(mlir::Operation *op);

/// Returns entry |i| of the list |numbers| of |op|, whose expressions are in the attribute |name|. It is unknown if it
/// is -1 and no expression.
Dim sizeAt(mlir::Operation *op, llvm::StringRef name, llvm::ArrayRef<int64_t> numbers, size_t i);

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_IR_SYMBOLICLISTS_H
