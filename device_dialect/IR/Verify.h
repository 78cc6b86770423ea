//===- Verify.h - Helpers of the op verifiers -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Every function reports its own error, which ends in the label of the violated constraint, e.g. "(conv_c3)". Unknown
// sizes agree with every size; symbolic ones only with the same expression.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_DEVICE_DIALECT_IR_VERIFY_H
#define TESSERA_DEVICE_DIALECT_IR_VERIFY_H

#include "device_dialect/IR/DeviceInterfaces.h"
#include "top_dialect/IR/Sizes.h"
#include "top_dialect/IR/TensorTypes.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

namespace tessera::device::verify {

/// Returns true if two dims may have the same size.
inline bool agree(Dim a, Dim b) { return sameSize(a, b) || a.isUnknown() || b.isUnknown(); }

/// Returns text like "2x3x?", or "scalar" for rank 0.
std::string printDims(llvm::ArrayRef<Dim> dims);

/// Checks that `value` has the dims `expected`; `what` names it in the message.
mlir::LogicalResult dims(mlir::Operation *op, mlir::Value value, llvm::ArrayRef<Dim> expected, llvm::StringRef what,
                         llvm::StringRef label);

/// Returns the dims of `weights` before any packing.
llvm::ArrayRef<int64_t> weightShape(PackingInterface packing, mlir::Value weights);

/// Returns true if a matmul can read `extra` beside its result `y`: y's shape, one value per column, one per row, or a
/// single value.
bool fitsMatMul(mlir::Value extra, mlir::Value y);

/// Checks that `axis` is in [0, rank).
mlir::LogicalResult axis(mlir::Operation *op, int64_t axis, int64_t rank, llvm::StringRef label);

/// Checks that `axes` are sorted, unique and in [0, rank).
mlir::LogicalResult axes(mlir::Operation *op, llvm::ArrayRef<int64_t> axes, int64_t rank, llvm::StringRef label);

/// Checks that `values` has `count` entries, each at least `least`.
mlir::LogicalResult entries(mlir::Operation *op, llvm::ArrayRef<int64_t> values, size_t count, int64_t least,
                            llvm::StringRef what, llvm::StringRef label);

/// Checks that the elements are i32 or i64.
mlir::LogicalResult indexType(mlir::Operation *op, mlir::Value indices, llvm::StringRef label);

/// Checks that `from` broadcasts to `to` as in numpy.
mlir::LogicalResult broadcasts(mlir::Operation *op, llvm::ArrayRef<Dim> from, llvm::ArrayRef<Dim> to,
                               llvm::StringRef what, llvm::StringRef label);

/// Checks that dims and element types are equal (layouts may differ).
mlir::LogicalResult sameType(mlir::Operation *op, mlir::Value a, mlir::Value b, llvm::StringRef label);

/// Checks a scalar region: one block with arguments of the given scalar types, only elementwise-mappable ops and
/// constants, ending in a device.yield of one value of type `result`.
mlir::LogicalResult scalarRegion(mlir::Operation *op, mlir::Region &region, mlir::TypeRange arguments,
                                 mlir::Type result, llvm::StringRef what, llvm::StringRef label);

/// Checks the epilogue of an op that implements EpilogueInterface, and that its extra operands broadcast.
mlir::LogicalResult epilogue(mlir::Operation *op, llvm::StringRef label);

} // namespace tessera::device::verify

#endif // TESSERA_DEVICE_DIALECT_IR_VERIFY_H
