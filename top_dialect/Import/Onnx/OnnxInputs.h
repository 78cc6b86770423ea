//===- OnnxInputs.h - The inputs of the graph, as the file and the user fix them ---===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "top_dialect/Import/Onnx/OnnxImport.h"
#include "top_dialect/Import/Onnx/OnnxModel.h"
#include "top_dialect/Import/Onnx/StorageTypes.h"

#include "mlir/IR/BuiltinTypes.h"

#include <optional>

namespace tessera::top::onnx_import {

/// A graph input that is no initializer.
struct Input {
  std::string name;
  mlir::Type element;
  llvm::SmallVector<int64_t> shape;       ///< kDynamic where open
  std::vector<std::string> dimNames;      ///< dim_param where it names one size, else ""
  std::optional<std::vector<char>> value; ///< given by the user: no input of the module, but a constant
  const StorageType *storage = nullptr;   ///< the file's type if `element` is its boundary type

  bool isOpen() const { return llvm::any_of(shape, mlir::ShapedType::isDynamic); }
  mlir::RankedTensorType getType() const { return mlir::RankedTensorType::get(shape, element); }
};

/// All inputs in file order, with the sizes and values of |options|.
llvm::Expected<std::vector<Input>> readInputs(const OnnxModel &model, const ImportOptions &options,
                                              mlir::MLIRContext *context);

/// Sizes that networks often take: of a picture's sides, and of what is as long as its data.
struct LikelySizes {
  int64_t picture, tokens;
};

/// Sets the batch of |inputs| to 1 and returns the inputs that had it open. Returns nothing, and changes nothing, if a
/// dim that is not the batch is open too.
std::vector<Input *> assumeSingleBatch(llvm::MutableArrayRef<Input> inputs);

/// Sizes for the open dims of |inputs|, as the network is likely to be used: batch 1, pictures and sequences of
/// |likely| sizes. By the names of dims and inputs, types and ranks; dims that share a name share the size.
std::map<std::string, std::vector<int64_t>> proposeShapes(llvm::ArrayRef<Input> inputs, const LikelySizes &likely);

/// The error for |inputs| with open dims; |proposal| becomes a flag to copy. |refusal|: why import does not take it, or
/// "".
llvm::Error openDims(llvm::ArrayRef<Input> inputs, const std::map<std::string, std::vector<int64_t>> &proposal,
                     llvm::StringRef refusal);

/// |type| as ImportOptions::memoryLimit allows it, else an error that names |what|, its size and the limit.
llvm::Error checkTensorSize(mlir::RankedTensorType type, const llvm::Twine &what, int64_t limit);

} // namespace tessera::top::onnx_import
