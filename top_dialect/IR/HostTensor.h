//===- HostTensor.h - A tensor in host memory, as the reference evaluation sees it ---===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/IR/BuiltinTypes.h"

#include <cassert>
#include <cstdint>
#include <memory>
#include <vector>

namespace tessera::top {

/// Bytes that one element of `type` takes in memory: i1 one byte (0 or 1), quantised types as their
/// storage type. 0 for types that have no memory form (index, strings, ...).
int64_t elementBytes(mlir::Type type);

/// A dense tensor: row-major, little endian, elements of `elementBytes`. Owns its bytes, or views those
/// of a constant until they are written to.
class HostTensor {
public:
  HostTensor() = default;
  /// Allocates zeros. All dims must be static.
  HostTensor(mlir::Type elementType, llvm::ArrayRef<int64_t> shape);
  explicit HostTensor(mlir::RankedTensorType type) : HostTensor(type.getElementType(), type.getShape()) {}
  /// Copies `bytes`, whose count must fit.
  HostTensor(mlir::RankedTensorType type, llvm::ArrayRef<char> bytes);

  /// Views `bytes`, which `owner` (or, when it is null, the caller) keeps alive and unchanged. Writing
  /// to the tensor copies them first.
  static HostTensor borrow(mlir::RankedTensorType type, llvm::ArrayRef<char> bytes, std::shared_ptr<const void> owner);

  mlir::Type getElementType() const { return elementType; }
  llvm::ArrayRef<int64_t> getShape() const { return shape; }
  int64_t getRank() const { return static_cast<int64_t>(shape.size()); }
  int64_t getNumElements() const;
  mlir::RankedTensorType getType() const { return mlir::RankedTensorType::get(shape, elementType); }

  /// Gives the tensor another shape (and so allocates zeros anew): for dims known at run time only.
  void resize(llvm::ArrayRef<int64_t> newShape);

  llvm::ArrayRef<char> getBytes() const { return borrowed.empty() ? llvm::ArrayRef<char>(bytes) : borrowed; }
  llvm::MutableArrayRef<char> getBytes();

  /// Typed view; `T` must have the element's size. f16 and bf16 are viewed as uint16_t, i1 as bool or uint8_t.
  template <typename T>
  llvm::MutableArrayRef<T> data() {
    assert(sizeof(T) == static_cast<size_t>(elementBytes(elementType)));
    llvm::MutableArrayRef<char> raw = getBytes();
    return llvm::MutableArrayRef<T>(reinterpret_cast<T *>(raw.data()), raw.size() / sizeof(T));
  }
  template <typename T>
  llvm::ArrayRef<T> data() const {
    assert(sizeof(T) == static_cast<size_t>(elementBytes(elementType)));
    llvm::ArrayRef<char> raw = getBytes();
    return llvm::ArrayRef<T>(reinterpret_cast<const T *>(raw.data()), raw.size() / sizeof(T));
  }

private:
  mlir::Type elementType;
  llvm::SmallVector<int64_t, 6> shape;
  std::vector<char> bytes;
  llvm::ArrayRef<char> borrowed;
  std::shared_ptr<const void> owner;
};

} // namespace tessera::top
