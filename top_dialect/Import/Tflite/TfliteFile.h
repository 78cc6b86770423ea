//===- TfliteFile.h - A verified .tflite file -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IMPORT_TFLITE_TFLITEFILE_H
#define TESSERA_TOP_DIALECT_IMPORT_TFLITE_TFLITEFILE_H

#include "tflite_generated.h"
#include "top_dialect/IR/RegularFile.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

#include <memory>
#include <string>

namespace tessera::top::tflite_import {

/// A .tflite file whose flatbuffer is verified, and in which all indices are within bounds. It stays mapped as long as
/// this object or a constant lives.
class TfliteFile {
public:
  static llvm::Expected<TfliteFile> open(std::shared_ptr<llvm::MemoryBuffer> buffer);

  const tflite::SubGraph &graph() const { return *model->subgraphs()->Get(0); }
  const tflite::Tensor &tensor(int32_t index) const { return *graph().tensors()->Get(index); }
  tflite::BuiltinOperator code(const tflite::Operator &op) const;
  /// Returns the name of a custom operator, or "".
  std::string customName(const tflite::Operator &op) const;
  /// Returns the name of an operator as the format spells it, e.g. "CONV_2D" or "custom operator 'Name'".
  std::string operatorName(const tflite::Operator &op) const;
  /// Returns the bytes that the file stores for |tensor|, which are empty unless it is a constant.
  llvm::ArrayRef<char> data(const tflite::Tensor &tensor) const;
  std::shared_ptr<const void> owner() const { return buffer; }
  bool isMapped() const { return top::isMapped(*buffer); }

private:
  llvm::Error check() const;
  llvm::Error checkOperator(const tflite::Operator &op) const;
  llvm::Error checkTensor(const tflite::Tensor &tensor) const;
  const tflite::OperatorCode &codeOf(const tflite::Operator &op) const {
    return *model->operator_codes()->Get(op.opcode_index());
  }

  std::shared_ptr<llvm::MemoryBuffer> buffer;
  const tflite::Model *model = nullptr;
};

/// Returns the name of a tensor, or "tensor N" if it has none.
std::string tensorName(const TfliteFile &file, int32_t index);

/// Returns the element type of |type|, or null if it is not supported.
mlir::Type elementType(tflite::TensorType type, mlir::MLIRContext *context);

/// Checks whether |table| has a field from number |known| on, which the schema of the importer lacks.
bool hasUnknownField(const flatbuffers::Table &table, size_t known);

} // namespace tessera::top::tflite_import

#endif // TESSERA_TOP_DIALECT_IMPORT_TFLITE_TFLITEFILE_H
