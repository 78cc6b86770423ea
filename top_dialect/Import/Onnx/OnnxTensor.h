//===- OnnxTensor.h - ONNX tensors as typed bytes ---===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "top_dialect/Import/Onnx/OnnxModel.h"

#include "mlir/IR/BuiltinTypes.h"

#include <memory>
#include <vector>

namespace tessera::top::onnx_import {

/// A constant of the file. `bytes` are row-major, little endian, i1 one byte; `owner` keeps them
/// alive: the parsed model, a mapped external file, or bytes converted from typed fields.
struct OnnxTensor {
  mlir::RankedTensorType type;
  llvm::ArrayRef<char> bytes;
  std::shared_ptr<const void> owner;
  bool isMapped = false; ///< the bytes are a mapped file's
};

/// Element type of a TensorProto.DataType; an error names types that have no numeric meaning here.
llvm::Expected<mlir::Type> elementTypeOf(int dataType, mlir::MLIRContext *context);

/// "float", "int64", ...
std::string dataTypeName(int dataType);

/// Reads a TensorProto: raw bytes, typed fields or external data, which must lie in the model's folder.
llvm::Expected<OnnxTensor> readTensor(const onnx::TensorProto &tensor, const OnnxModel &model,
                                      mlir::MLIRContext *context);

} // namespace tessera::top::onnx_import
