//===- OnnxImport.h - ONNX file to Top module ---===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"

#include <map>
#include <string>
#include <vector>

namespace tessera::top {

/// Sizes given by the user for graph inputs; -1 leaves a dim as the file has it.
struct InputShapes {
  std::map<std::string, std::vector<int64_t>> byName;
  std::vector<std::vector<int64_t>> byPosition; ///< for the inputs in file order; empty entries change nothing
  /// "x=1x3x224x224,y=1x8" or "[[1,3,224,224],[1,8]]" (also one list without the outer brackets).
  static llvm::Expected<InputShapes> parse(llvm::StringRef text);
};

struct ImportOptions {
  InputShapes inputShapes;
  std::vector<std::string> outputs; ///< tensors to keep as outputs instead of the file's; empty: the file's
  std::string modelName;            ///< default: the graph's name
  /// Results of nodes on constants alone are computed at once up to this size (four times it for
  /// ConstantOfShape); larger ones stay ops.
  int64_t maxFoldBytes = int64_t(256) << 20;
};

/// Imports |path| into a module with one `func.func @main`. Constants go to the context's weight
/// store. Ops on constants alone are evaluated at once, so shape arithmetic disappears.
/// The error says what is wrong, where by ONNX name, and what to do. Dialects top and func must be loaded.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> importOnnx(llvm::StringRef path, const ImportOptions &options,
                                                             mlir::MLIRContext &context);

/// An operator the importer has a handler for.
struct SupportedOperator {
  llvm::StringRef domain; ///< "" is ai.onnx
  llvm::StringRef name;
  int64_t since; ///< oldest opset that is handled
};

/// All of them, sorted by domain and name.
std::vector<SupportedOperator> supportedOperators();

/// The same for the bytes of a file; `path` names it in messages and its folder may hold external data.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
importOnnxBytes(llvm::StringRef bytes, llvm::StringRef path, const ImportOptions &options, mlir::MLIRContext &context);

} // namespace tessera::top
