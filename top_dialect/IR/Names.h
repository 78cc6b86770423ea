//===- Names.h - Keeping ONNX names through rewrites ---===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IR_NAMES_H
#define TESSERA_TOP_DIALECT_IR_NAMES_H

#include "mlir/IR/Location.h"
#include "mlir/IR/Operation.h"

namespace tessera::top {

/// Returns the ONNX node names of a location, in graph order and without repetitions.
llvm::SmallVector<llvm::StringRef> getNodeNames(mlir::Location loc);

/// Returns the result of `getNodeNames` joined with "+"; "" if the location does not have a name.
std::string getDisplayName(mlir::Location loc);

/// Returns a location with the names of all `locs`, in order. Of more than 256 names it keeps the first 255 and the
/// last.
mlir::Location fuseNames(mlir::MLIRContext *context, llvm::ArrayRef<mlir::Location> locs);

/// Returns the name of the ONNX tensor that `value` equals, or "" (see `top.outputs`).
llvm::StringRef getTensorName(mlir::Value value);

/// Returns the ONNX name of an input of a network, or "".
llvm::StringRef getInputName(mlir::BlockArgument input);

/// Records that result i of `op` equals the ONNX tensor `names[i]` ("" for none).
void setTensorNames(mlir::Operation *op, llvm::ArrayRef<llvm::StringRef> names);

/// Call this if `to` replaces `from` with equal results: `to` gets the names of both locations, and the `top.outputs`
/// of `from` if the numbers of results agree.
void copyNames(mlir::Operation *from, mlir::Operation *to);

/// Copies the names for an op `to` that replaces several ops and has the results of the last one.
void copyNames(llvm::ArrayRef<mlir::Operation *> from, mlir::Operation *to);

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_IR_NAMES_H
