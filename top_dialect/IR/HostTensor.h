//===- HostTensor.h - A tensor in host memory, as the reference evaluation sees it ---===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IR_HOSTTENSOR_H
#define TESSERA_TOP_DIALECT_IR_HOSTTENSOR_H

#include "mlir/IR/BuiltinTypes.h"

#include <cassert>
#include <cstdint>
#include <memory>
#include <vector>

namespace tessera::top {

/// Returns the number of bytes that an element of `type` takes in memory: one for i1 (0 or 1), the storage type's size
/// for quantised types, and 0 for types without a memory form (index, strings, ...).
int64_t elementBytes(mlir::Type type);

/// A dense tensor: row-major, little endian, elements of `elementBytes`. It owns its bytes, or views those of a
/// constant until they are written to.
class HostTensor {
public:
  HostTensor() = default;
  /// Allocates zeros. All dims must be static.
  HostTensor(mlir::Type elementType, llvm::ArrayRef<int64_t> shape);
  explicit HostTensor(mlir::RankedTensorType type) : HostTensor(type.getElementType(), type.getShape()) {}
  /// Copies `bytes`, whose size must match the type.
  HostTensor(mlir::RankedTensorType type, llvm::ArrayRef<char> bytes);

  /// Views `bytes`, which `owner` (or the caller, if `owner` is null) keeps alive and unchanged. Writing to the tensor
  /// copies them first.
  static HostTensor borrow(mlir::RankedTensorType type, llvm::ArrayRef<char> bytes, std::shared_ptr<const void> owner);

  mlir::Type getElementType() const { return elementType; }
  llvm::ArrayRef<int64_t> getShape() const { return shape; }
  int64_t getRank() const { return static_cast<int64_t>(shape.size()); }
  int64_t getNumElements() const;
  mlir::RankedTensorType getType() const { return mlir::RankedTensorType::get(shape, elementType); }

  /// Changes the shape and allocates zeros again. For results with dims that are known only at run time.
  void resize(llvm::ArrayRef<int64_t> newShape);

  llvm::ArrayRef<char> getBytes() const { return borrowed.empty() ? llvm::ArrayRef<char>(bytes) : borrowed; }
  llvm::MutableArrayRef<char> getBytes();

  /// Returns a typed view. `T` must have the element's size: uint16_t for f16 and bf16, bool or uint8_t for i1.
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

#endif // TESSERA_TOP_DIALECT_IR_HOSTTENSOR_H
