//===- Layout.h - Memory layout of tensors ----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Sizes are in elements unless a name says bytes; i1 elements take one byte each.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_DEVICE_DIALECT_IR_LAYOUT_H
#define TESSERA_DEVICE_DIALECT_IR_LAYOUT_H

#include "device_dialect/IR/DeviceAttrs.h"

#include "mlir/IR/BuiltinTypes.h"
#include "top_dialect/IR/Sizes.h"
#include "top_dialect/IR/TensorTypes.h"

namespace tessera::device {

/// Returns the blocked encoding of a tensor type, or null if the tensor is row-major.
BlockedAttr getBlockedLayout(mlir::Type type);

/// Returns true if both types are row-major, or blocked by the same number of channels.
bool hasSameLayout(mlir::Type a, mlir::Type b);

inline bool isBlocked(mlir::Type type) { return static_cast<bool>(getBlockedLayout(type)); }

/// Returns the row-major type of the same tensor.
mlir::RankedTensorType getRowMajorType(mlir::RankedTensorType type);

/// Returns the type of the same tensor in channel blocks of `block`; the rank must be at least 2.
mlir::RankedTensorType getBlockedType(mlir::RankedTensorType type, int64_t block);

/// Returns the dims in memory, outermost first: the logical dims, or [N, ceil(C / b), D..., b] if blocked.
llvm::SmallVector<Dim> physicalDims(mlir::RankedTensorType type);
/// Returns the same as numbers; sizes that are not numbers are `?`.
llvm::SmallVector<int64_t> physicalShape(mlir::RankedTensorType type);

/// Returns the bytes of one element in memory; asserts on types that tensors here never have (index, tuples).
int64_t elementBytes(mlir::Type elementType);

/// Returns the bytes in memory, including padding lanes, as a size.
Dim symbolicBytes(mlir::RankedTensorType type);
/// Returns the bytes in memory, including padding lanes. For symbolic sizes these are the bytes with each dim at its
/// maximum, which is what a .bmodel reserves. No size may be unknown.
int64_t physicalBytes(mlir::RankedTensorType type);
inline int64_t physicalBytes(mlir::Value value) { return physicalBytes(typeOf(value)); }

/// Returns true if both types store their common logical elements at the same byte offsets, so that one can replace the
/// other without a copy.
bool sameBytes(mlir::RankedTensorType a, mlir::RankedTensorType b);

/// Returns true for f16 and bf16, which are stored narrow but computed in f32.
inline bool isNarrowFloat(mlir::Type type) { return type.isF16() || type.isBF16(); }
/// Returns true if sums of |type| are computed in f32.
inline bool isSummedInF32(mlir::Type type) { return type.isF32() || isNarrowFloat(type); }

/// Returns true if kernels can read elements of |type| as an epilogue operand.
inline bool isEpilogueElement(mlir::Type type) {
  return type.isF32() || isNarrowFloat(type) || type.isInteger(8) || type.isInteger(16) || type.isInteger(32);
}

/// Returns the type of an element inside a scalar region: integers are signless, as arith requires.
mlir::Type scalarType(mlir::Type elementType);

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_IR_LAYOUT_H
