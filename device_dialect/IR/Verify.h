//===- Verify.h - Pieces the op verifiers share -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Every function emits its own error, ending in the label of the violated constraint, e.g.
// "(conv_c3)". `?` dims agree with everything.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_DEVICE_DIALECT_IR_VERIFY_H
#define TESSERA_DEVICE_DIALECT_IR_VERIFY_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

namespace tessera::device::verify {

inline mlir::RankedTensorType tensorType(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType());
}

/// Whether two dims may be the same size.
inline bool agree(int64_t a, int64_t b) {
  return a == b || mlir::ShapedType::isDynamic(a) || mlir::ShapedType::isDynamic(b);
}

/// "2x3x?", or "scalar" for rank 0.
std::string printDims(llvm::ArrayRef<int64_t> dims);

/// `value` has the dims `expected`; `what` names it in the message.
mlir::LogicalResult dims(mlir::Operation *op, mlir::Value value, llvm::ArrayRef<int64_t> expected, llvm::StringRef what,
                         llvm::StringRef label);

/// `axis` in [0, rank).
mlir::LogicalResult axis(mlir::Operation *op, int64_t axis, int64_t rank, llvm::StringRef label);

/// `axes` sorted, unique and in [0, rank).
mlir::LogicalResult axes(mlir::Operation *op, llvm::ArrayRef<int64_t> axes, int64_t rank, llvm::StringRef label);

/// `values` has `count` entries, each at least `least`.
mlir::LogicalResult entries(mlir::Operation *op, llvm::ArrayRef<int64_t> values, size_t count, int64_t least,
                            llvm::StringRef what, llvm::StringRef label);

/// i32 or i64 elements.
mlir::LogicalResult indexType(mlir::Operation *op, mlir::Value indices, llvm::StringRef label);

/// `from` broadcasts to `to` as in numpy.
mlir::LogicalResult broadcasts(mlir::Operation *op, llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to,
                               llvm::StringRef what, llvm::StringRef label);

/// Same dims and element type (layouts may differ).
mlir::LogicalResult sameType(mlir::Operation *op, mlir::Value a, mlir::Value b, llvm::StringRef label);

/// A scalar region: one block with arguments of the given scalar types, elementwise-mappable ops and
/// constants only, ending in a device.yield of one value of type `result`.
mlir::LogicalResult scalarRegion(mlir::Operation *op, mlir::Region &region, mlir::TypeRange arguments,
                                 mlir::Type result, llvm::StringRef what, llvm::StringRef label);

/// The epilogue of an op that implements EpilogueInterface, and the broadcasting of its extras.
mlir::LogicalResult epilogue(mlir::Operation *op, llvm::StringRef label);

} // namespace tessera::device::verify

#endif // TESSERA_DEVICE_DIALECT_IR_VERIFY_H
