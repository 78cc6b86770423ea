//===- PrecisionRules.h - Precisions that an op can have --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_QUANT_TRANSFORMS_PRECISION_PRECISIONRULES_H
#define TESSERA_QUANT_TRANSFORMS_PRECISION_PRECISIONRULES_H

#include "quant/Transforms/Precision/PrecisionAttributes.h"
#include "quant/Transforms/Tables/CalibrationTable.h"

namespace tessera::quant {

/// Returns why `op` cannot be computed in `precision`, which is not INT8 or INT16; empty if it can. The table's ranges
/// show which tensors exceed f16. Decisions.h has the rules of INT8 and INT16, which depend on the neighbours of `op`.
std::string reasonAgainst(mlir::Operation *op, Precision precision, const CalibrationTable &table);

/// Returns true if `op` can hold its results in 16-bit floats. Casts and quantize ops state their types themselves.
bool isNarrowable(mlir::Operation *op);

/// Checks that `op` is a convolution that sums too few products for 16-bit floats, e.g. a depthwise one. Rounding
/// errors of few products hardly average out, and such ops have few weights. Matmuls are excluded: their weights make
/// up most of their models' memory.
bool sumsFew(mlir::Operation *op, Precision precision);

/// Checks that `op` is a convolution or matmul of dequantised values, which the device multiplies as integers. Such ops
/// come from quantised models (QDQ).
bool isQuantizedByModel(mlir::Operation *op);

} // namespace tessera::quant

#endif // TESSERA_QUANT_TRANSFORMS_PRECISION_PRECISIONRULES_H
