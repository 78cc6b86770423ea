//===- ModuleIO.h - Reading and writing NAME_top.mlir with its weights ---===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

namespace tessera::top {

/// The weight file that belongs to a module file: "dir/m_top.mlir" -> "dir/m_weights.safetensors".
std::string weightPathFor(llvm::StringRef mlirPath);

/// Parses a module, maps its weight file, which lies beside it, into the context's store, and checks
/// the hash and the type and byte count of every `top.weight`.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> readModule(llvm::StringRef mlirPath, mlir::MLIRContext &context);

/// Maps the weight file of a parsed module and checks as above.
llvm::Error loadWeights(mlir::ModuleOp module, llvm::StringRef mlirPath);

/// Writes the module and the weights its ops use; sets `top.weight_file` and `top.weight_hash`. Both
/// files are written aside and renamed, the module last.
llvm::Error writeModule(mlir::ModuleOp module, llvm::StringRef mlirPath);

/// Weight files of one folder: their names, by hash.
using WeightFiles = llvm::StringMap<std::string>;

/// Writes the weights of a module that is going to be printed to `mlirPath`, and sets the attributes, which one without
/// weights loses. Where one of `known` holds just these weights it is named, and none is written; a new one becomes
/// known.
llvm::Error writeWeights(mlir::ModuleOp module, llvm::StringRef mlirPath, WeightFiles *known = nullptr);

} // namespace tessera::top
