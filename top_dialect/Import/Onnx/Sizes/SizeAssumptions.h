//===- SizeAssumptions.h - Sizes that a network needs to be equal -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IMPORT_ONNX_SIZES_SIZEASSUMPTIONS_H
#define TESSERA_TOP_DIALECT_IMPORT_ONNX_SIZES_SIZEASSUMPTIONS_H

#include "top_dialect/IR/ShapeInference.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <vector>

namespace tessera::top::onnx_import {

/// Symbols of inputs and the sizes that replace them, in order of replacement.
using ReplacedSymbols = std::vector<std::pair<SizeSymbolAttr, Dim>>;

/// Makes two |sizes| that |op| needs to be equal one size: if one is a symbol of an input, or a multiple of it,
/// replaces the symbol in the function around |op| and adds it to |replaced|. Returns false if neither is, or if |op|
/// is not directly in the function.
bool assumeEqual(const detail::UnequalSizes &sizes, mlir::Operation *op, ReplacedSymbols &replaced);

/// A branch or a body that is being imported, and the sizes that its ops need to be equal. They hold in it only.
struct OpenRegion {
  mlir::Block *block;
  ReplacedSymbols replaced;
};
using OpenRegions = std::vector<OpenRegion>; ///< the innermost one last

/// Makes two |sizes| that |op|, in the innermost region, needs to be equal one size within the region. Values from
/// outside pass through casts at its beginning, which a run checks whenever it enters the region. If no symbol can
/// replace a size, or a run computes it in the region, the operands of |op| pass through casts.
bool assumeEqual(const detail::UnequalSizes &sizes, mlir::Operation *op, OpenRegions &regions);
/// Returns |value| with the sizes that it has within the regions.
mlir::Value useIn(OpenRegions &regions, mlir::Value value);
/// Replaces the symbols in the ops of the innermost region again, as handlers may have kept sizes.
void replaceAgain(OpenRegion &region);

/// Replaces the symbols in |function| again, as handlers may have kept sizes from before a replacement.
void replaceAgain(mlir::func::FuncOp function, const ReplacedSymbols &replaced);

/// Returns what the user can do if |sizes| must be equal but are not known to be.
std::string adviceFor(const detail::UnequalSizes &sizes);

} // namespace tessera::top::onnx_import

#endif // TESSERA_TOP_DIALECT_IMPORT_ONNX_SIZES_SIZEASSUMPTIONS_H
