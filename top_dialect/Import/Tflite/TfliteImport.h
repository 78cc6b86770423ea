//===- TfliteImport.h - Import of a .tflite file as a Top module *- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IMPORT_TFLITE_TFLITEIMPORT_H
#define TESSERA_TOP_DIALECT_IMPORT_TFLITE_TFLITEIMPORT_H

#include "top_dialect/Import/Onnx/OnnxImport.h"

#include "llvm/Support/MemoryBuffer.h"

namespace tessera::top {

/// Imports |path| into a module with one `func.func @main`. Inputs and outputs keep the layout of the file, with
/// channels last. Of the options, it uses inputShapes, outputs, modelName and assumed; others are an error if set.
/// Operators that are not supported are listed all at once. The dialects top and func must be loaded.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> importTflite(llvm::StringRef path, const ImportOptions &options,
                                                               mlir::MLIRContext &context);
/// Imports a .tflite file in memory in this way.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
importTflite(std::shared_ptr<llvm::MemoryBuffer> file, const ImportOptions &options, mlir::MLIRContext &context);

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_IMPORT_TFLITE_TFLITEIMPORT_H
