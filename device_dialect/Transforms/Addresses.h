//===- Addresses.h - Where values lie ---------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_DEVICE_DIALECT_TRANSFORMS_ADDRESSES_H
#define TESSERA_DEVICE_DIALECT_TRANSFORMS_ADDRESSES_H

#include "device_dialect/IR/DeviceMoveOps.h"
#include "device_dialect/IR/Pieces.h"
#include <optional>

namespace tessera::device {

/// Bytes every address is a multiple of: what kernels may assume.
inline constexpr int64_t kAddressAlignment = 64;

/// A place in one of the memories that device.memories numbers.
struct Address {
  int64_t memory = 0; ///< 0 workspace, k function result k - 1, -k function argument k - 1
  int64_t offset = 0; ///< in bytes
};

/// Where |value| lies after address assignment; nothing for constants (also behind reshapes) and results without an
/// address.
std::optional<Address> getAddress(mlir::Value value);

/// Whether |op| is done by addresses alone: a reshape, or a copy marked device.elided.
bool isElided(mlir::Operation *op);

/// The constant that |value| is, itself or behind reshapes; null otherwise.
mlir::Value getConstantRoot(mlir::Value value);

/// Byte offset of the box [offsets, offsets + sizes) in a tensor of type |whole| if the box is one run of bytes, holds
/// whole channel blocks, and lies as a tensor of its own would.
std::optional<int64_t> contiguousOffset(mlir::RankedTensorType whole, llvm::ArrayRef<int64_t> offsets,
                                        llvm::ArrayRef<int64_t> sizes);

/// Where the result of |copy| lies in its source when it is a contiguous slice of it in the same layout.
std::optional<int64_t> sliceOffset(CopyOp copy);

/// Where the whole source of |piece| lies in the result of |copy| when the bytes are contiguous there, were the source
/// in the layout of the result.
std::optional<int64_t> partOffset(CopyOp copy, PieceAttr piece);

/// Whether |op| may write its result over operand |index|: it reads each element of that operand only where, and
/// before, it writes the element of the result with the same offset.
bool canWriteOver(mlir::Operation *op, unsigned index);

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_TRANSFORMS_ADDRESSES_H
