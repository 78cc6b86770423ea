//===- Names.h - Keeping ONNX names through rewrites ---===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/IR/Location.h"
#include "mlir/IR/Operation.h"

namespace tessera::top {

/// The ONNX node names behind a location, in graph order, without repeats.
llvm::SmallVector<llvm::StringRef> getNodeNames(mlir::Location loc);

/// `getNodeNames` joined with "+", or "" if the location holds no name.
std::string getDisplayName(mlir::Location loc);

/// One location that holds the names of all of `locs`, in order; of more than 256 the first 255 and the last.
mlir::Location fuseNames(mlir::MLIRContext *context, llvm::ArrayRef<mlir::Location> locs);

/// The ONNX tensor that `value` equals, or "" (see `top.outputs`).
llvm::StringRef getTensorName(mlir::Value value);

/// The ONNX name of an input of a network, or "".
llvm::StringRef getInputName(mlir::BlockArgument input);

/// Records that result i of `op` equals ONNX tensor `names[i]` ("" = none).
void setTensorNames(mlir::Operation *op, llvm::ArrayRef<llvm::StringRef> names);

/// For a rewrite that replaces `from` by `to` with equal results: `to` takes the names of both
/// locations and the `top.outputs` of `from` (when the result counts agree).
void copyNames(mlir::Operation *from, mlir::Operation *to);

/// For a rewrite that makes `to` out of several ops, the last of which it reproduces.
void copyNames(llvm::ArrayRef<mlir::Operation *> from, mlir::Operation *to);

} // namespace tessera::top
