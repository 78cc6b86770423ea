//===- ModuleIO.h - Reading and writing NAME_top.mlir with its weights ---===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IR_MODULEIO_H
#define TESSERA_TOP_DIALECT_IR_MODULEIO_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

namespace tessera::top {

/// Returns the path of the weight file of a module file: "dir/m_weights.safetensors" for "dir/m_top.mlir".
std::string weightPathFor(llvm::StringRef mlirPath);

/// Parses a module and maps its weight file, which must be in the same folder, into the context's store. Checks the
/// file's hash, and the type and byte count of every `top.weight`.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> readModule(llvm::StringRef mlirPath, mlir::MLIRContext &context);

/// Maps the weight file of a parsed module, with the checks of readModule.
llvm::Error loadWeights(mlir::ModuleOp module, llvm::StringRef mlirPath);

/// Writes the module and the weights that its ops use, and sets `top.weight_file` and `top.weight_hash`. Both are
/// written to temporary files and renamed, the module last.
llvm::Error writeModule(mlir::ModuleOp module, llvm::StringRef mlirPath);

/// Names of the weight files in one folder, by hash.
using WeightFiles = llvm::StringMap<std::string>;

/// Writes the weights of a module that will be printed to `mlirPath`, and sets the attributes that refer to the file,
/// or removes them if there are no weights. If a file in `known` has the same content, the module refers to that one
/// instead; a new file is added to `known`.
llvm::Error writeWeights(mlir::ModuleOp module, llvm::StringRef mlirPath, WeightFiles *known = nullptr);

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_IR_MODULEIO_H
