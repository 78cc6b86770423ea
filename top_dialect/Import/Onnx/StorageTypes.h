//===- StorageTypes.h - Element types that tensors of a module cannot have -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// ONNX stores floats of 8 and 4 bits and integers of 4 and 2 bits, and computes with none of them: Cast, QuantizeLinear
// and DequantizeLinear convert them. A module carries their values in a type that holds each of them exactly, f32 or a
// byte. Inputs and outputs of the graph hold the codes of the floats (u8) and the values of the integers (i8 or u8),
// one byte per element.
#pragma once

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
  int leastExponent = 0; ///< of the smallest normal float
  double largest = 0;    ///< the largest finite float
  bool hasInfinity = false;
  int nanCode = -1; ///< -1: the type has no NaN
  bool hasNegativeZero = true;

  bool isFloat() const { return kind == floating || kind == powerOfTwo; }
  /// The type that holds the values in a module.
  mlir::Type carrier(mlir::MLIRContext *context) const;
  /// The type of inputs and outputs of the graph.
  mlir::Type boundary(mlir::MLIRContext *context) const;
  /// The value of each code.
  llvm::SmallVector<double> values() const;
};

/// Returns null for types that tensors of a module may have and for unknown ones.
const StorageType *findStorageType(int dataType);

/// Returns the values (carrier) of the codes in |bytes|, |count| of them, the first in the lowest bits of a byte.
std::vector<char> unpack(const StorageType &type, llvm::ArrayRef<char> bytes, int64_t count);

/// Returns the values (carrier) of the boundary tensor |codes|.
mlir::Value decode(NodeImporter &n, mlir::Value codes, const StorageType &type);
/// Returns the boundary tensor of |values| (carrier), each of which |type| can hold.
mlir::Value encode(NodeImporter &n, mlir::Value values, const StorageType &type);

/// Rounds |x| to the values of |type| as the attributes of the node, a Cast or QuantizeLinear, demand; the result has
/// the carrier's type.
mlir::Value roundToStorage(NodeImporter &n, mlir::Value x, const StorageType &type);
/// Clamps integers of the carrier's width to the range of |type|.
mlir::Value clampToStorage(NodeImporter &n, mlir::Value x, const StorageType &type);

/// Returns whether |op| of ai.onnx only moves elements of its operand |data|, so that its results keep a storage type.
bool movesElements(llvm::StringRef op, unsigned &data);
/// Returns whether the operator can read tensors of a storage type.
bool readsStorage(llvm::StringRef domain, llvm::StringRef op);

} // namespace tessera::top::onnx_import
