//===- PaddedRows.h - Tensors whose number of rows is known only at run time --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Operators like NonMaxSuppression produce a number of rows that depends on the data. Tessera allocates the largest
// possible number and stores the actual count separately; the rows after it are padding. Operators that process rows
// independently pass the padding on. Other operators would mix padding with real rows and are rejected.
#ifndef TESSERA_TOP_DIALECT_IMPORT_ONNX_CONTROL_PADDEDROWS_H
#define TESSERA_TOP_DIALECT_IMPORT_ONNX_CONTROL_PADDEDROWS_H

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>

namespace tessera::top::onnx_import {

/// The first |count| entries along |axis| are real, the others are padding.
struct Padding {
  int64_t axis;
  mlir::Value count;  ///< i64, rank 0
  std::string source; ///< the node that produced them, for messages
  bool filled;        ///< whether the padding entries already hold -1
};

/// The paddings of a model's tensors while it is imported.
class PaddedRows {
public:
  const Padding *find(mlir::Value value) const;
  void mark(mlir::Value value, Padding padding) { paddings[value] = std::move(padding); }
  /// Marks the results of |op|, which has just been created. Fails if it would read padding rows as data.
  llvm::Error propagate(mlir::Operation *op);

private:
  llvm::DenseMap<mlir::Value, Padding> paddings;
};

} // namespace tessera::top::onnx_import

#endif // TESSERA_TOP_DIALECT_IMPORT_ONNX_CONTROL_PADDEDROWS_H
