//===- Contractions.h - Weights of convolutions and matmuls for tools -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_TOOLS_CONTRACTIONS_H
#define TESSERA_CODEGEN_TOOLS_CONTRACTIONS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace tessera::tool {

/// Writes the f32 weight of every convolution and matmul that can run on integers to `path` (safetensors), named by the
/// op's result, and returns a description of the ops: name, input, kind, groups, geometry, and the bits and group size
/// of the weights in W4. Tensors must have names.
llvm::Expected<llvm::json::Array> writeContractionWeights(mlir::func::FuncOp function, llvm::StringRef path,
                                                          int64_t groupSize);

/// Replaces the weights of ops by the f32 weights in the file `path`, with the names and shapes of
/// writeContractionWeights(). Fails if a weight does not fit its op, or if the file does not have any weight of the
/// model.
llvm::Error replaceContractionWeights(mlir::func::FuncOp function, llvm::StringRef path);

} // namespace tessera::tool

#endif // TESSERA_CODEGEN_TOOLS_CONTRACTIONS_H
