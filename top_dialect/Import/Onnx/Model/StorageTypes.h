//===- StorageTypes.h - ONNX element types that a module has no type for --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// ONNX stores floats with 8 and 4 bits and integers with 4 and 2 bits, but has no arithmetic on them: Cast,
// QuantizeLinear and DequantizeLinear convert them. A module holds their values in a type that can represent each of
// them exactly: f32 or an 8-bit integer (the carrier). Inputs and outputs of the graph hold the codes of the floats
// (u8) or the values of the integers (i8 or u8), one byte per element (the boundary type).
#ifndef TESSERA_TOP_DIALECT_IMPORT_ONNX_MODEL_STORAGETYPES_H
#define TESSERA_TOP_DIALECT_IMPORT_ONNX_MODEL_STORAGETYPES_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/SmallVector.h"

namespace tessera::top::onnx_import {

class NodeImporter;

struct StorageType {
  enum Kind { signedInteger, unsignedInteger, floating, powerOfTwo };
  int dataType; ///< the TensorProto.DataType
  llvm::StringLiteral name;
  Kind kind;
  unsigned bits;
  int mantissaBits = 0;  ///< of floats
  int leastExponent = 0; ///< exponent of the smallest normal float
  double largest = 0;    ///< the largest finite float
  bool hasInfinity = false;
  int nanCode = -1; ///< -1 if the type has no NaN
  bool hasNegativeZero = true;

  bool isFloat() const { return kind == floating || kind == powerOfTwo; }
  /// Returns the type that holds the values in a module.
  mlir::Type carrier(mlir::MLIRContext *context) const;
  /// Returns the type for inputs and outputs of the graph.
  mlir::Type boundary(mlir::MLIRContext *context) const;
  /// Returns the value of each code.
  llvm::SmallVector<double> values() const;
};

/// Returns the storage type for a TensorProto.DataType, or null if the type is unknown or a module can have it.
const StorageType *findStorageType(int dataType);

/// Unpacks the |count| codes in |bytes| and returns their values in the carrier type. The first code is in the lowest
/// bits of a byte.
std::vector<char> unpack(const StorageType &type, llvm::ArrayRef<char> bytes, int64_t count);

/// Converts the boundary tensor |codes| to values in the carrier type.
mlir::Value decode(NodeImporter &n, mlir::Value codes, const StorageType &type);
/// Converts |values| in the carrier type, all of which |type| can represent, to the boundary type.
mlir::Value encode(NodeImporter &n, mlir::Value values, const StorageType &type);

/// Rounds |x| to values of |type| as the attributes of the node, a Cast or QuantizeLinear, require. The result has the
/// carrier type.
mlir::Value roundToStorage(NodeImporter &n, mlir::Value x, const StorageType &type);
/// Clamps integers in the carrier type to the range of |type|.
mlir::Value clampToStorage(NodeImporter &n, mlir::Value x, const StorageType &type);

/// Returns whether the ai.onnx operator |op| only moves elements of its operand |data|, so that its results keep their
/// storage type.
bool movesElements(llvm::StringRef op, unsigned &data);
/// Returns whether the operator can read tensors of a storage type.
bool readsStorage(llvm::StringRef domain, llvm::StringRef op);

} // namespace tessera::top::onnx_import

#endif // TESSERA_TOP_DIALECT_IMPORT_ONNX_MODEL_STORAGETYPES_H
