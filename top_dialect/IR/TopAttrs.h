//===- TopAttrs.h - Sizes as expressions ------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IR_TOPATTRS_H
#define TESSERA_TOP_DIALECT_IR_TOPATTRS_H

#include "top_dialect/IR/TopDialect.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/TensorEncoding.h"

namespace tessera::top {

class SizeAttr;

enum class SizeFunction { FloorDiv, Min, Max };

/// Checks (C1) to (C3) of `#top.dims` for the encoding of a tensor of |shape|. No size at all is fine.
llvm::LogicalResult verifySizes(llvm::ArrayRef<SizeAttr> sizes, llvm::ArrayRef<int64_t> shape,
                                llvm::function_ref<mlir::InFlightDiagnostic()> emitError);
/// Parses and prints a list of sizes in brackets, for other encodings that hold sizes.
mlir::ParseResult parseSizes(mlir::AsmParser &parser, llvm::SmallVectorImpl<SizeAttr> &sizes);
void printSizes(mlir::AsmPrinter &printer, llvm::ArrayRef<SizeAttr> sizes);

} // namespace tessera::top

#include "top_dialect/IR/SizesInterface.h.inc"

#define GET_ATTRDEF_CLASSES
#include "top_dialect/IR/TopAttrs.h.inc"

#endif // TESSERA_TOP_DIALECT_IR_TOPATTRS_H
