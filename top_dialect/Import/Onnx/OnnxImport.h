//===- OnnxImport.h - ONNX file to Top module ---===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace tessera::top {

/// Sizes given by the user for graph inputs; -1 leaves a dim as the file has it.
struct InputShapes {
  std::map<std::string, std::vector<int64_t>> byName;
  std::vector<std::vector<int64_t>> byPosition; ///< for the inputs in file order; empty entries change nothing
  /// "x=1x3x224x224,y=1x8,z=scalar" or, in the order of the file, "1x3x224x224,1x8" or "[[1,3,224,224],[1,8]]" (also
  /// one list without the outer brackets).
  static llvm::Expected<InputShapes> parse(llvm::StringRef text);
};

/// A value given by the user for a graph input: numbers and booleans in nested lists of `shape`.
struct InputValue {
  std::string text;
  llvm::SmallVector<int64_t> shape;
  std::vector<llvm::json::Value> elements;

  /// The bytes of the value as a tensor of |type| (HostTensor's form), and in |inputShape| its shape. Fails where the
  /// input's shape, kDynamic where open, or type does not hold it; one number serves for any shape of one element.
  llvm::Expected<std::vector<char>> encode(llvm::StringRef name, llvm::SmallVectorImpl<int64_t> &inputShape,
                                           mlir::Type type) const;
};

/// Values given by the user for graph inputs, which so become constants.
struct InputValues {
  std::map<std::string, InputValue> byName;
  /// Adds those of "sr=16000,flag=true,x=[[1,2],[3,4]]".
  llvm::Error parse(llvm::StringRef text);
};

struct ImportOptions {
  InputShapes inputShapes;
  InputValues inputValues;
  /// Open dims of inputs are an error, which proposes sizes; but an open batch becomes 1 if nothing else is open and no
  /// inputShapes are given.
  bool requireStatic = false;
  std::vector<std::string> outputs; ///< tensors to keep as outputs instead of the file's; empty: the file's
  std::string modelName;            ///< default: the graph's name
  /// Results of nodes on constants alone are computed at once up to this size (four times it for
  /// ConstantOfShape); larger ones stay ops.
  int64_t maxFoldBytes = int64_t(256) << 20;
  /// Bytes that one tensor, and all constants together that are computed at once, may take. 0: the memory of this
  /// machine for a tensor; for the constants 2 GiB and four times the file's own.
  int64_t memoryLimit = 0;
  /// Is told what the user should know of a model that is imported all the same.
  std::function<void(llvm::StringRef)> warn;
  /// Is told each input that `inputValues` makes a constant, with the constant's type and bytes (as HostTensor's).
  std::function<void(llvm::StringRef, mlir::RankedTensorType, llvm::ArrayRef<char>)> fixed;

  /// Called with each input whose open batch became 1 and with the shape that it has then.
  std::function<void(llvm::StringRef, llvm::ArrayRef<int64_t>)> assumed;

  /// Bytes that one tensor may take.
  int64_t tensorLimit() const;
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
