//===- OnnxInputs.h - The inputs of the graph, with the user's sizes and values --===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IMPORT_ONNX_ONNXINPUTS_H
#define TESSERA_TOP_DIALECT_IMPORT_ONNX_ONNXINPUTS_H

#include "top_dialect/IR/Sizes.h"
#include "top_dialect/Import/Onnx/Model/OnnxModel.h"
#include "top_dialect/Import/Onnx/Model/StorageTypes.h"
#include "top_dialect/Import/Onnx/OnnxImport.h"

#include "mlir/IR/BuiltinTypes.h"

#include <optional>

namespace tessera::top::onnx_import {

/// A graph input that is not an initializer.
struct Input {
  std::string name;
  mlir::Type element;
  llvm::SmallVector<int64_t> shape;       ///< kDynamic where open
  std::vector<std::string> dimNames;      ///< dim_param if it is the name of a single size, else ""
  std::optional<std::vector<char>> value; ///< set if given by the user: the input becomes a constant and is not an
                                          ///< input of the module
  const StorageType *storage = nullptr;   ///< the type in the file if `element` is its boundary type, else null
  llvm::SmallVector<Dim> sizes = {};      ///< with symbols for open dims; empty unless --dims is given

  bool isOpen() const { return llvm::any_of(shape, mlir::ShapedType::isDynamic) && !isDetermined(getType()); }
  mlir::RankedTensorType getType() const {
    return sizes.empty() ? mlir::RankedTensorType::get(shape, element) : tensorType(sizes, element);
  }

private:
  static bool isDetermined(Shape shape) { return shape.isDetermined(); }
};

/// Returns all inputs in file order, with the sizes and values of |options| applied.
llvm::Expected<std::vector<Input>> readInputs(const OnnxModel &model, const ImportOptions &options,
                                              mlir::MLIRContext *context);

/// Typical sizes for open dims: the sides of an image, and the length of a sequence.
struct LikelySizes {
  int64_t picture, tokens;
};

/// Returns whether dim |axis| counts independent samples, judged by its name or by being the first dim.
bool isBatch(const Input &input, size_t axis);

/// Returns the usual range of an open dim, based on its name, the input's name, and the type and rank.
DimRange defaultRange(const Input &input, size_t axis);

/// Sets the batch of |inputs| to 1 and returns the inputs whose batch was open. If another dim is open too, returns an
/// empty vector and changes nothing.
std::vector<Input *> assumeSingleBatch(llvm::MutableArrayRef<Input> inputs);

/// Proposes sizes for the open dims of |inputs|, based on the names of dims and inputs and on types and ranks: batch 1
/// and the |likely| sizes for images and sequences. Dims with the same name get the same size.
std::map<std::string, std::vector<int64_t>> proposeShapes(llvm::ArrayRef<Input> inputs, const LikelySizes &likely);

/// Returns the error for |inputs| with open dims. The |proposal| appears as a flag that can be copied. |rejection| says
/// why the import does not use the proposal, or is empty.
llvm::Error openDims(llvm::ArrayRef<Input> inputs, const std::map<std::string, std::vector<int64_t>> &proposal,
                     llvm::StringRef rejection);

/// Fails if |type| exceeds ImportOptions::memoryLimit. The error names |what|, its size and the limit.
llvm::Error checkTensorSize(mlir::RankedTensorType type, const llvm::Twine &what, int64_t limit);

} // namespace tessera::top::onnx_import

#endif // TESSERA_TOP_DIALECT_IMPORT_ONNX_ONNXINPUTS_H
