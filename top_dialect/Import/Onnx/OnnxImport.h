//===- OnnxImport.h - Import of an ONNX file as a Top module --------------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IMPORT_ONNX_ONNXIMPORT_H
#define TESSERA_TOP_DIALECT_IMPORT_ONNX_ONNXIMPORT_H

#include "top_dialect/Import/Onnx/Sizes/DimRanges.h"

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

/// Sizes of graph inputs given by the user. -1 keeps a dim as it is in the file.
struct InputShapes {
  std::map<std::string, std::vector<int64_t>> byName;
  std::vector<std::vector<int64_t>> byPosition; ///< for the inputs in file order; an empty entry changes nothing
  /// Parses "x=1x3x224x224,y=1x8,z=scalar". Without names, the order is that of the file: "1x3x224x224,1x8" or
  /// "[[1,3,224,224],[1,8]]". A single list needs no outer brackets.
  static llvm::Expected<InputShapes> parse(llvm::StringRef text);
};

/// A value given by the user for a graph input: numbers and booleans in nested lists that form `shape`.
struct InputValue {
  std::string text;
  llvm::SmallVector<int64_t> shape;
  std::vector<llvm::json::Value> elements;

  /// Returns the value as the bytes of a tensor of |type|, in HostTensor's format, and sets |inputShape| to its shape.
  /// Fails if |type| or the input's shape (kDynamic for open dims) cannot represent the value. A single number is valid
  /// for any shape with one element.
  llvm::Expected<std::vector<char>> encode(llvm::StringRef name, llvm::SmallVectorImpl<int64_t> &inputShape,
                                           mlir::Type type) const;
};

/// Values given by the user for graph inputs. These inputs become constants.
struct InputValues {
  std::map<std::string, InputValue> byName;
  /// Adds the values of a text like "sr=16000,flag=true,x=[[1,2],[3,4]]".
  llvm::Error parse(llvm::StringRef text);
};

struct ImportOptions {
  InputShapes inputShapes;
  InputValues inputValues;
  /// If given, the open dims become symbols, or numbers if a single size is given. A dim that stays open is an error.
  DimRanges dims;
  /// If set, open dims of inputs are an error, which proposes sizes. As an exception, an open batch dim becomes 1 if
  /// nothing else is open and no inputShapes are given.
  bool requireStatic = false;
  std::vector<std::string> outputs; ///< tensors that become the outputs; if empty, the file's outputs are used
  std::string modelName;            ///< default: the graph's name
  /// Results of nodes whose inputs are all constant are computed during import up to this size (for ConstantOfShape up
  /// to four times this size). Larger ones stay ops.
  int64_t maxFoldBytes = int64_t(256) << 20;
  /// Limit in bytes for one tensor, and for all constants computed during import together. 0 means the memory of this
  /// machine for a tensor, and 2 GiB plus four times the size of the file's constants for the computed constants.
  int64_t memoryLimit = 0;
  /// Blocks of integer weights stay integers; otherwise they are dequantised during import.
  bool keepsFormats = true;
  /// Called with each warning about a model that is imported nevertheless.
  std::function<void(llvm::StringRef)> warn;
  /// Called with each input that `inputValues` turns into a constant, with its type and its bytes in HostTensor's
  /// format.
  std::function<void(llvm::StringRef, mlir::RankedTensorType, llvm::ArrayRef<char>)> fixed;

  /// Called with each input whose open batch dim became 1, and with the resulting shape.
  std::function<void(llvm::StringRef, llvm::ArrayRef<int64_t>)> assumed;

  /// Called with each name of a dim that `dims` opened, and with its range.
  std::function<void(llvm::StringRef, const DimRange &)> opened;

  /// Returns the number of bytes that one tensor may take.
  int64_t tensorLimit() const;
};

/// Imports |path| into a module with one `func.func @main`. Constants go to the weight store of the context. Ops whose
/// operands are all constant are evaluated during import, so shape arithmetic disappears. An error says what is wrong,
/// gives the ONNX name of the place, and says what to do. The dialects top and func must be loaded.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> importOnnx(llvm::StringRef path, const ImportOptions &options,
                                                             mlir::MLIRContext &context);

/// An operator the importer has a handler for.
struct SupportedOperator {
  llvm::StringRef domain; ///< "" is ai.onnx
  llvm::StringRef name;
  int64_t since; ///< oldest opset that is handled
};

/// Returns all supported operators, sorted by domain and name.
std::vector<SupportedOperator> supportedOperators();

/// Imports the bytes of a file. `path` names the file in messages, and its folder may contain external data.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
importOnnxBytes(llvm::StringRef bytes, llvm::StringRef path, const ImportOptions &options, mlir::MLIRContext &context);

namespace onnx_import {
struct OnnxModel;
} // namespace onnx_import
/// Imports a parsed file.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> importOnnx(onnx_import::OnnxModel model, const ImportOptions &options,
                                                             mlir::MLIRContext &context);

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_IMPORT_ONNX_ONNXIMPORT_H
