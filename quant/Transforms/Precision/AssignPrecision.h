//===- AssignPrecision.h - Decides the precision of every op ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_QUANT_TRANSFORMS_PRECISION_ASSIGNPRECISION_H
#define TESSERA_QUANT_TRANSFORMS_PRECISION_ASSIGNPRECISION_H

#include "quant/Transforms/Quantize.h"
#include "quant/Transforms/Tables/LearnedWeights.h"

namespace tessera::quant {

/// Writes the precision of every op to the function (PrecisionAttributes.h), and divides channels by the factors with
/// which the table's weights were learned. If the function has precisions, it only checks them. Tensors must have names
/// (top::nameEveryTensor), and tables must be checked (checkTables). Fails if they request something impossible, or if
/// an op cannot have the precision that it has already.
llvm::Error assignPrecision(mlir::func::FuncOp function, const CalibrationTable &table, const QuantizeTable &choices,
                            const QuantizeOptions &options, const std::optional<LearnedWeights> &learned);

} // namespace tessera::quant

#endif // TESSERA_QUANT_TRANSFORMS_PRECISION_ASSIGNPRECISION_H
