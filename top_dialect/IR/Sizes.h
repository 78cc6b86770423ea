//===- Sizes.h - Sizes of tensors -----------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// The sizes of tensors are read, computed and written through this header. A size is a number, an expression of symbols
// whose values are known at run time, or unknown. MLIR's accessors return the same number for all sizes that are not
// numbers, so two of them compare equal although the tensors may differ. Here a comparison asks whether sizes are known
// to be equal. check_sizes lists the files that still use MLIR's accessors.
//
//===----------------------------------------------------------------------===//
#ifndef TESSERA_TOP_DIALECT_IR_SIZES_H
#define TESSERA_TOP_DIALECT_IR_SIZES_H

#include "top_dialect/IR/TopAttrs.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

#include <concepts>
#include <optional>

namespace tessera {

/// The size of one dimension, or a number derived from sizes: a number, an expression, or unknown. It has no
/// operator==: use sameSize.
class Dim {
public:
  /// |number| is a number, or ShapedType::kDynamic for an unknown size.
  /*implicit*/ Dim(int64_t number) : number(number) {}
  /// A polynomial without symbols becomes a number; null is an unknown size.
  explicit Dim(top::SizeAttr size);

  /// Returns a new symbol as a size.
  static Dim symbol(mlir::MLIRContext *context, llvm::StringRef name, int64_t min, int64_t max, int64_t likely);

  /// Returns true if the size is a number.
  bool isKnown() const { return !mlir::ShapedType::isDynamic(number); }
  /// Returns true if the size is an expression.
  bool isSymbolic() const { return static_cast<bool>(size); }
  /// Returns true if nothing is known about the size.
  bool isUnknown() const { return !isKnown() && !isSymbolic(); }
  /// Returns the number. The size must be known.
  int64_t value() const {
    assert(isKnown() && "the size is unknown until run time");
    return number;
  }
  /// Returns true if the size is known to be |other|.
  bool is(int64_t other) const { return isKnown() && number == other; }
  /// Returns the expression; null if the size is a number or unknown.
  top::SizeAttr expression() const { return size; }

  friend bool operator==(Dim, Dim) = delete;

private:
  int64_t number;
  top::SizeAttr size;
};

// Arithmetic. A result is unknown if an operand is, if it overflows, or if it is a division by what may be zero or
// negative. Products of sums are expanded, so equal polynomials are the same size.
Dim operator+(Dim a, Dim b);
Dim operator-(Dim a, Dim b);
Dim operator*(Dim a, Dim b);
inline Dim &operator+=(Dim &a, Dim b) { return a = a + b; }
inline Dim &operator*=(Dim &a, Dim b) { return a = a * b; }
/// Returns the quotient rounded down, up, and the (non-negative) remainder.
Dim floorDiv(Dim a, Dim b);
Dim ceilDiv(Dim a, Dim b);
Dim mod(Dim a, Dim b);
Dim min(Dim a, Dim b);
Dim max(Dim a, Dim b);

/// The smallest and the largest value that a size can have; bounds need not be attained.
struct SizeRange {
  int64_t min, max;
};
/// Returns the range of |size| by interval arithmetic, from INT64_MIN to INT64_MAX for an unknown size.
SizeRange rangeOf(Dim size);
inline int64_t minOf(Dim size) { return rangeOf(size).min; }
inline int64_t maxOf(Dim size) { return rangeOf(size).max; }
/// Returns the value of |size| if each symbol has its likely value. The size must not be unknown.
int64_t likelyOf(Dim size);
/// Returns a number that divides |size| for all values of its symbols: 1 for an unknown size, 0 for the size 0.
int64_t divisorOf(Dim size);
/// Returns true if |size| is known to be a multiple of |divisor|.
inline bool isMultipleOf(Dim size, int64_t divisor) { return divisorOf(size) % divisor == 0; }

/// Returns |size| with each symbol replaced by what |replace| returns for it.
Dim substitute(Dim size, llvm::function_ref<Dim(top::SizeSymbolAttr)> replace);
/// Adds the symbols of |size| in order of appearance.
void collectSymbols(Dim size, llvm::SetVector<top::SizeSymbolAttr> &symbols);
/// Returns text like "32*h - 1", without ranges; "?" for an unknown size.
std::string toText(Dim size);

/// A step of a size in postfix order: pushes a number or a symbol, or combines the two values on top of the stack.
struct SizeStep {
  enum Kind { Number, Symbol, Add, Multiply, FloorDiv, Min, Max };
  Kind kind;
  int64_t number = 0;
  top::SizeSymbolAttr symbol;
};
/// Returns the steps that compute |size|, which must not be unknown.
llvm::SmallVector<SizeStep> toPostfix(Dim size);

/// Returns true if two sizes are known to be equal.
inline bool sameSize(Dim a, Dim b) {
  return a.isKnown() ? b.is(a.value()) : a.isSymbolic() && a.expression() == b.expression();
}

/// The sizes of a tensor. Refers to the type or to the sizes that it was created from.
class Shape {
public:
  /*implicit*/ Shape(mlir::RankedTensorType type);
  /*implicit*/ Shape(mlir::Value tensor) : Shape(llvm::cast<mlir::RankedTensorType>(tensor.getType())) {}
  template <std::convertible_to<llvm::ArrayRef<int64_t>> Numbers>
  /*implicit*/ Shape(const Numbers &numbers) : numbers(numbers) {}

  size_t rank() const { return numbers.size(); }
  Dim operator[](size_t dim) const {
    return mlir::ShapedType::isDynamic(numbers[dim]) && !sizes.empty() ? Dim(sizes[dim]) : Dim(numbers[dim]);
  }
  Dim back() const { return (*this)[rank() - 1]; }
  Shape dropFront(size_t count = 1) const {
    return Shape(numbers.drop_front(count), sizes.empty() ? sizes : sizes.drop_front(count));
  }
  Shape dropBack(size_t count = 1) const {
    return Shape(numbers.drop_back(count), sizes.empty() ? sizes : sizes.drop_back(count));
  }

  /// Returns true if all sizes are numbers.
  bool isKnown() const { return llvm::none_of(numbers, mlir::ShapedType::isDynamic); }
  /// Returns true if no size is unknown: all are numbers or expressions.
  bool isDetermined() const {
    return llvm::none_of(llvm::seq<size_t>(0, rank()), [&](size_t i) { return (*this)[i].isUnknown(); });
  }
  /// Returns the sizes, all of which must be known.
  llvm::ArrayRef<int64_t> values() const {
    assert(isKnown() && "a size is unknown until run time");
    return numbers;
  }
  llvm::SmallVector<Dim> dims() const {
    return llvm::map_to_vector(llvm::seq<size_t>(0, rank()), [&](size_t i) { return (*this)[i]; });
  }

  friend bool operator==(Shape, Shape) = delete;

private:
  Shape(llvm::ArrayRef<int64_t> numbers, llvm::ArrayRef<top::SizeAttr> sizes) : numbers(numbers), sizes(sizes) {}

  llvm::ArrayRef<int64_t> numbers;     ///< kDynamic where a size is no number
  llvm::ArrayRef<top::SizeAttr> sizes; ///< empty without symbolic sizes
};

/// Returns the type of a tensor of |sizes|. |layout| is the encoding of a type, of any sizes, whose layout the tensor
/// has; null: row-major.
mlir::RankedTensorType tensorType(llvm::ArrayRef<Dim> sizes, mlir::Type element, mlir::Attribute layout = {});
/// Returns |type| with another element type.
mlir::RankedTensorType withElement(mlir::RankedTensorType type, mlir::Type element);
/// Returns |type| with the sizes replaced as substitute() does.
mlir::RankedTensorType substitute(mlir::RankedTensorType type, llvm::function_ref<Dim(top::SizeSymbolAttr)> replace);
/// Adds the symbols of all sizes in order of appearance.
void collectSymbols(Shape shape, llvm::SetVector<top::SizeSymbolAttr> &symbols);

/// Returns true if two shapes are known to be equal.
inline bool sameSizes(Shape a, Shape b) {
  return a.rank() == b.rank() &&
         llvm::all_of(llvm::seq<size_t>(0, a.rank()), [&](size_t i) { return sameSize(a[i], b[i]); });
}

/// Returns true if two values have the same type, and thereby the same sizes.
inline bool sameType(mlir::Value a, mlir::Value b) { return a.getType() == b.getType() && Shape(a).isDetermined(); }

/// Returns the number of elements as a size.
Dim countElements(Shape shape);

/// Returns the number of elements; none if a size is not a number.
inline std::optional<int64_t> knownNumElements(Shape shape) {
  return shape.isKnown() ? std::optional(mlir::ShapedType::getNumElements(shape.values())) : std::nullopt;
}

/// Returns the number of elements. All sizes must be known.
inline int64_t numElements(Shape shape) { return mlir::ShapedType::getNumElements(shape.values()); }

} // namespace tessera

#endif // TESSERA_TOP_DIALECT_IR_SIZES_H
