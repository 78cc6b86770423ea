//===- OnnxTensor.h - ONNX tensors as typed bytes ---===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IMPORT_ONNX_MODEL_ONNXTENSOR_H
#define TESSERA_TOP_DIALECT_IMPORT_ONNX_MODEL_ONNXTENSOR_H

#include "top_dialect/Import/Onnx/Model/OnnxModel.h"

#include "mlir/IR/BuiltinTypes.h"

#include <memory>
#include <vector>

namespace tessera::top::onnx_import {

/// A constant of the file. `bytes` are row-major and little endian, with one byte per i1. `owner` keeps them alive; it
/// is the parsed model, a mapped external file, or a buffer converted from typed fields.
struct OnnxTensor {
  mlir::RankedTensorType type;
  llvm::ArrayRef<char> bytes;
  std::shared_ptr<const void> owner;
  bool isMapped = false; ///< whether the bytes are those of a mapped file
};

/// Returns the element type of a TensorProto.DataType. For unsupported types, the error names the type.
llvm::Expected<mlir::Type> elementTypeOf(int dataType, mlir::MLIRContext *context);

/// Returns for example "float" or "int64".
std::string dataTypeName(int dataType);

/// Reads a TensorProto: raw bytes, typed fields or external data, which must be in the model's folder.
llvm::Expected<OnnxTensor> readTensor(const onnx::TensorProto &tensor, const OnnxModel &model,
                                      mlir::MLIRContext *context);

} // namespace tessera::top::onnx_import

#endif // TESSERA_TOP_DIALECT_IMPORT_ONNX_MODEL_ONNXTENSOR_H
