//===- Sizes.h - Sizes of tensors -----------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// The sizes of tensors are read through this header. A size may be unknown until run time. MLIR's accessors return the
// same number for all unknown sizes, so two of them compare equal although the tensors may differ. Here a comparison
// asks whether sizes are known to be equal, and two unknown sizes are not. check_sizes lists the files that still use
// MLIR's accessors.
//
//===----------------------------------------------------------------------===//
#ifndef TESSERA_TOP_DIALECT_IR_SIZES_H
#define TESSERA_TOP_DIALECT_IR_SIZES_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"

#include "llvm/ADT/STLExtras.h"

#include <concepts>
#include <optional>

namespace tessera {

/// The size of one dimension: a number, or unknown until run time. It has no operator==: use sameSize.
class Dim {
public:
  /// `size` is a number, or ShapedType::kDynamic for an unknown size.
  explicit Dim(int64_t size) : size(size) {}

  bool isKnown() const { return !mlir::ShapedType::isDynamic(size); }
  /// Returns the size, which must be known.
  int64_t value() const {
    assert(isKnown() && "the size is unknown until run time");
    return size;
  }
  /// Returns true if the size is known to be `number`.
  bool is(int64_t number) const { return isKnown() && size == number; }

  friend bool operator==(Dim, Dim) = delete;

private:
  int64_t size;
};

/// Returns true if two sizes are known to be equal.
inline bool sameSize(Dim a, Dim b) { return b.isKnown() && a.is(b.value()); }

/// The sizes of a tensor. Refers to the type or to the numbers that it was created from.
class Shape {
public:
  /*implicit*/ Shape(mlir::RankedTensorType type) : sizes(type.getShape()) {}
  /*implicit*/ Shape(mlir::Value tensor) : Shape(llvm::cast<mlir::RankedTensorType>(tensor.getType())) {}
  template <std::convertible_to<llvm::ArrayRef<int64_t>> Numbers>
  /*implicit*/ Shape(const Numbers &numbers) : sizes(numbers) {}

  size_t rank() const { return sizes.size(); }
  Dim operator[](size_t dim) const { return Dim(sizes[dim]); }
  Dim back() const { return Dim(sizes.back()); }
  Shape dropFront(size_t count = 1) const { return sizes.drop_front(count); }
  Shape dropBack(size_t count = 1) const { return sizes.drop_back(count); }

  bool isKnown() const { return llvm::none_of(sizes, mlir::ShapedType::isDynamic); }
  /// Returns the sizes, all of which must be known.
  llvm::ArrayRef<int64_t> values() const {
    assert(isKnown() && "a size is unknown until run time");
    return sizes;
  }

  friend bool operator==(Shape, Shape) = delete;

private:
  llvm::ArrayRef<int64_t> sizes;
};

/// Returns true if two shapes are known to be equal.
inline bool sameSizes(Shape a, Shape b) {
  return a.rank() == b.rank() &&
         llvm::all_of(llvm::seq<size_t>(0, a.rank()), [&](size_t i) { return sameSize(a[i], b[i]); });
}

/// Returns true if two values have the same type, and thereby the same sizes, all of them known.
inline bool sameType(mlir::Value a, mlir::Value b) { return a.getType() == b.getType() && Shape(a).isKnown(); }

/// Returns the number of elements; none if a size is unknown.
inline std::optional<int64_t> knownNumElements(Shape shape) {
  return shape.isKnown() ? std::optional(mlir::ShapedType::getNumElements(shape.values())) : std::nullopt;
}

/// Returns the number of elements. All sizes must be known.
inline int64_t numElements(Shape shape) { return mlir::ShapedType::getNumElements(shape.values()); }

} // namespace tessera

#endif // TESSERA_TOP_DIALECT_IR_SIZES_H
