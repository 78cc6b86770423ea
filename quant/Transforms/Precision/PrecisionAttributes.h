//===- PrecisionAttributes.h - The assigned precisions in the IR --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// `assign-precision` writes its decisions to the IR, and all other code reads them from there:
//
// | on          | attribute                        | meaning                                                          |
// |-------------|----------------------------------|------------------------------------------------------------------|
// | @main       | top.precision = "INT8"           | precision requested for ops that the quantise table does not list
// | | an op       | top.precision = "F32"            | precision in which the op is computed | |             |
// top.precision_reason = "..."     | reason, for people                                               | |             |
// top.precision_requested = "BF16" | precision that a line of the quantise table requests for the op  | | an op       |
// top.stores = ["INT16"]           | type of each result if it is not the usual one; "" for the usual | | an argument |
// top.stores = "F32"               | likewise                                                         |
//
// @main also has `top.channel_factors`, the factors by which tensors were divided, and `top.calibrated_model`, the hash
// of the model to which the calibration table belongs.
//
// A tensor that integer ops exchange is usually stored in INT8, another result in the precision of its op.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_QUANT_TRANSFORMS_PRECISION_PRECISIONATTRIBUTES_H
#define TESSERA_QUANT_TRANSFORMS_PRECISION_PRECISIONATTRIBUTES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "quant/Transforms/Equalize/Equalize.h"
#include "quant/Transforms/Tables/QuantizeTable.h"

namespace tessera::quant {

inline constexpr llvm::StringLiteral kPrecisionAttr = "top.precision", kReasonAttr = "top.precision_reason",
                                     kRequestedAttr = "top.precision_requested", kStoresAttr = "top.stores",
                                     kFactorsAttr = "top.channel_factors", kCalibratedAttr = "top.calibrated_model";

/// Returns true if `assign-precision` has run on the function.
inline bool isAssigned(mlir::func::FuncOp function) { return function->hasAttr(kPrecisionAttr); }

/// Returns true for INT8 and INT16, whose ranges calibration measures.
inline bool isInteger(Precision precision) { return precision == Precision::INT8 || precision == Precision::INT16; }

/// Returns true for BF16 and F16.
inline bool isNarrow(Precision precision) { return precision == Precision::BF16 || precision == Precision::F16; }

/// Returns true for the ops that are assigned a precision: ops of Top that compute floats.
bool needsPrecision(mlir::Operation *op);

/// Returns the assigned precision; that of @main for ops without the attribute, e.g. those that a rewrite has added.
Precision precisionOf(mlir::Operation *op);

/// Returns the precision that the quantise table requests for the op, else that of @main.
Precision requestedOf(mlir::Operation *op);

/// Returns the reason for the precision.
std::string reasonOf(mlir::Operation *op);

/// Returns true if a line of the quantise table requests a precision for the op.
inline bool isRequested(mlir::Operation *op) { return op->hasAttr(kRequestedAttr); }

/// Returns the type of a result or argument that is not stored in the usual type, else nothing.
std::optional<Precision> storedAs(mlir::Value value);
void setStoredAs(mlir::Value value, Precision precision);

/// Returns the hash of the model to which the calibration table belongs; empty if there was none.
std::string calibratedModel(mlir::func::FuncOp function);

/// Records the factors by which tensors were divided on the function, and reads them.
void setFactors(mlir::func::FuncOp function, const TensorFactors &factors);
TensorFactors factorsOf(mlir::func::FuncOp function);

/// Removes all attributes above. They say nothing about the function once it is rewritten.
void dropAssignment(mlir::func::FuncOp function);

/// Returns the op's ONNX nodes, or its tensor if it does not come from a node.
std::string displayName(mlir::Operation *op);

} // namespace tessera::quant

#endif // TESSERA_QUANT_TRANSFORMS_PRECISION_PRECISIONATTRIBUTES_H
