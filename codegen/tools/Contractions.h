//===- Contractions.h - Convolutions and matmuls for tools that choose weights -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace tessera::tool {

/// Writes the f32 weight of every convolution and matmul that can run on integers to `path` (safetensors), by the name
/// of the tensor that the op makes, and describes the ops: name, input, kind, groups and geometry, and the bits and
/// groups that the weights have in W4. Tensors must have names.
llvm::Expected<llvm::json::Array> writeContractionWeights(mlir::func::FuncOp function, llvm::StringRef path,
                                                          int64_t groupSize);

/// Puts the f32 weights of the file `path`, named and shaped as writeContractionWeights does, in place of the ops' own.
/// Fails where one does not fit, or where none is the model's.
llvm::Error replaceContractionWeights(mlir::func::FuncOp function, llvm::StringRef path);

} // namespace tessera::tool
