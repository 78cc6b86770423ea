//===- Addresses.h - Addresses of values ------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_DEVICE_DIALECT_TRANSFORMS_ADDRESSES_H
#define TESSERA_DEVICE_DIALECT_TRANSFORMS_ADDRESSES_H

#include "device_dialect/IR/DeviceMoveOps.h"
#include "device_dialect/IR/Pieces.h"
#include <optional>

namespace tessera::device {

/// Alignment of all addresses, in bytes, on which kernels may rely.
inline constexpr int64_t kAddressAlignment = 64;

/// An address in one of the memories that device.memories numbers.
struct Address {
  int64_t memory = 0; ///< 0: workspace, k: function result k - 1, -k: function argument k - 1
  int64_t offset = 0; ///< in bytes
};

/// Returns the address of |value| after address assignment; nothing for constants (also through reshapes) and for
/// results without an address.
std::optional<Address> getAddress(mlir::Value value);

/// Returns true if |op| needs no code because of its addresses: a reshape, or a copy marked device.elided.
bool isElided(mlir::Operation *op);

/// Follows reshapes, which move no bytes, to the value that |value| is a view of.
mlir::Value withoutReshapes(mlir::Value value);

/// Returns the constant that |value| is, directly or through reshapes; otherwise null.
mlir::Value getConstantRoot(mlir::Value value);

/// Returns the byte offset of the box [offsets, offsets + sizes) in a tensor of type |whole|, if the box is contiguous,
/// consists of whole channel blocks, and has the layout of a separate tensor.
std::optional<int64_t> contiguousOffset(mlir::RankedTensorType whole, llvm::ArrayRef<int64_t> offsets,
                                        llvm::ArrayRef<int64_t> sizes);

/// Returns the byte offset of the result of |copy| in its source, if it is a contiguous slice in the same layout.
std::optional<int64_t> sliceOffset(CopyOp copy);

/// Returns the byte offset of the whole source of |piece| in the result of |copy|, if the bytes are contiguous there,
/// assuming that the source has the result's layout.
std::optional<int64_t> partOffset(CopyOp copy, PieceAttr piece);

/// Returns true if the result of |op| has the address of operand 0, into which the op writes.
bool writesInPlace(mlir::Operation *op);

/// Returns true if |op| may write its result over operand |index|: it reads each element of that operand only to
/// compute the result element at the same offset, before writing it.
bool canWriteOver(mlir::Operation *op, unsigned index);

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_TRANSFORMS_ADDRESSES_H
