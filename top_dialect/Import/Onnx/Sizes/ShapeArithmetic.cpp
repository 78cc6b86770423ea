//===- ShapeArithmetic.cpp - Sizes that a graph computes ------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/Sizes/ShapeArithmetic.h"

#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/SymbolicLists.h"
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/Import/Onnx/Sizes/RunTimeSizes.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <numeric>

using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

using Sizes = llvm::SmallVector<Dim>;
using Result = std::optional<Sizes>;
using Flag = std::optional<bool>;

/// Shapes are short. Longer vectors are data.
constexpr int64_t kMaxElements = 32;

Result dimsOf(ShapeOp op) {
  return Sizes(llvm::ArrayRef(Shape(op.getX()).dims()).slice(op.getStart(), op.getEnd() - op.getStart()));
}

Result gathered(GatherOp op, unsigned depth) {
  Result table = readSizes(op.getX(), depth);
  auto indices = getConstantInts(op.getIndices());
  if (!table || !indices || Shape(op.getX()).rank() != 1) {
    return std::nullopt;
  }
  Sizes result;
  auto size = static_cast<int64_t>(table->size());
  for (int64_t index : *indices) {
    int64_t position = index < 0 ? index + size : index;
    if (position < 0 || position >= size) {
      return std::nullopt;
    }
    result.push_back((*table)[position]);
  }
  return result;
}

/// Returns the elements of a result of |sizes| in row-major order: those at |first| plus the sum of the strides.
Sizes movedElements(const Sizes &all, llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> strides, int64_t first) {
  if (sizes.empty()) {
    return {all[first]};
  }
  Sizes result;
  for (int64_t i = 0; i < sizes.front(); ++i) {
    llvm::append_range(result,
                       movedElements(all, sizes.drop_front(), strides.drop_front(), first + i * strides.front()));
  }
  return result;
}

llvm::SmallVector<int64_t> stridesOf(llvm::ArrayRef<int64_t> sizes) {
  llvm::SmallVector<int64_t> strides(sizes.size(), 1);
  for (size_t d = sizes.size(); d-- > 1;) {
    strides[d - 1] = strides[d] * sizes[d];
  }
  return strides;
}

Result sliced(SliceOp op, unsigned depth) {
  Result all = readSizes(op.getX(), depth);
  if (!all || dependsOnSizes(op)) {
    return std::nullopt;
  }
  llvm::SmallVector<int64_t> strides = stridesOf(Shape(op.getX()).values());
  int64_t first = 0;
  for (auto [stride, start, step] : llvm::zip_equal(strides, op.getStarts(), op.getSteps())) {
    first += start * stride;
    stride *= step;
  }
  return movedElements(*all, Shape(op.getY()).values(), strides, first);
}

Result transposed(TransposeOp op, unsigned depth) {
  Result all = readSizes(op.getX(), depth);
  if (!all) {
    return std::nullopt;
  }
  llvm::SmallVector<int64_t> own = stridesOf(Shape(op.getX()).values());
  auto strides = llvm::map_to_vector(op.getPerm(), [&](int64_t d) { return own[d]; });
  return movedElements(*all, Shape(op.getY()).values(), strides, 0);
}

Result joined(ConcatOp op, unsigned depth) {
  Sizes result;
  if (op.getAxis() != 0) {
    return std::nullopt;
  }
  for (Value input : op.getInputs()) {
    Result part = readSizes(input, depth);
    if (!part) {
      return std::nullopt;
    }
    llvm::append_range(result, *part);
  }
  return result;
}

/// Repeats a single element as often as |op| has elements.
Result expanded(ExpandOp op, unsigned depth) {
  Result from = readSizes(op.getX(), depth);
  int64_t count = numElements(op.getY());
  return from && from->size() == 1 ? Sizes(count, from->front()) : from;
}

/// Returns entry |i| of a list, or its only one.
Dim elementAt(const Sizes &list, size_t i) { return list[list.size() == 1 ? 0 : i]; }

/// Applies an elementwise op to operands of the same size, or with a single element on one side.
template <typename Combine>
Result combined(mlir::Operation *op, unsigned depth, Combine combine) {
  Result a = readSizes(op->getOperand(0), depth), b = readSizes(op->getOperand(1), depth);
  if (!a || !b || a->empty() || b->empty() || (a->size() != b->size() && a->size() != 1 && b->size() != 1)) {
    return std::nullopt;
  }
  Sizes result;
  for (size_t i = 0; i < std::max(a->size(), b->size()); ++i) {
    result.push_back(combine(elementAt(*a, i), elementAt(*b, i)));
  }
  return result;
}

Result negated(NegOp op, unsigned depth) {
  Result sizes = readSizes(op->getOperand(0), depth);
  for (Dim &size : sizes ? llvm::MutableArrayRef<Dim>(*sizes) : llvm::MutableArrayRef<Dim>()) {
    size = Dim(0) - size;
  }
  return sizes;
}

/// Rounds towards zero, so the operands must not be negative.
Dim divide(Dim a, Dim b) {
  if (a.isKnown() && b.isKnown()) {
    return b.value() > 0 ? Dim(a.value() / b.value()) : Dim(mlir::ShapedType::kDynamic);
  }
  return minOf(a) >= 0 ? floorDiv(a, b) : Dim(mlir::ShapedType::kDynamic);
}

/// Compares two sizes; returns nothing if the result depends on the symbols.
Flag compare(CompareKind kind, Dim a, Dim b) {
  if (a.isUnknown() || b.isUnknown()) {
    return std::nullopt;
  }
  SizeRange difference = rangeOf(a - b);
  bool isLess = difference.max < 0, isMore = difference.min > 0;
  bool isEqual = sameSize(a, b) || (difference.min == 0 && difference.max == 0);
  bool isAtMost = isEqual || difference.max <= 0, isAtLeast = isEqual || difference.min >= 0;
  auto known = [](bool yes, bool no) { return yes ? Flag(true) : no ? Flag(false) : std::nullopt; };
  switch (kind) {
  case CompareKind::eq:
    return known(isEqual, isLess || isMore);
  case CompareKind::ne:
    return known(isLess || isMore, isEqual);
  case CompareKind::lt:
    return known(isLess, isAtLeast);
  case CompareKind::le:
    return known(isAtMost, isMore);
  case CompareKind::gt:
    return known(isMore, isAtMost);
  case CompareKind::ge:
    return known(isAtLeast, isLess);
  }
  llvm_unreachable("all kinds are handled");
}

/// Reads a where op whose condition compares sizes, which exporters use to replace -1 in a shape.
Result selected(WhereOp op, unsigned depth) {
  auto flags = readFlags(op.getCond(), depth);
  Result yes = readSizes(op.getA(), depth), no = readSizes(op.getB(), depth);
  if (!flags || !yes || !no || yes->size() != no->size() || (flags->size() != 1 && flags->size() != yes->size())) {
    return std::nullopt;
  }
  Sizes result;
  for (size_t i = 0; i < yes->size(); ++i) {
    Flag flag = (*flags)[flags->size() == 1 ? 0 : i];
    result.push_back(!flag ? Dim(mlir::ShapedType::kDynamic) : *flag ? (*yes)[i] : (*no)[i]);
  }
  return result;
}

Result product(ReduceOp op, unsigned depth) {
  Result factors = readSizes(op.getX(), depth);
  if (!factors || op.getKind() != ReduceKind::prod || op.getAxes().empty() || Shape(op.getX()).rank() != 1) {
    return std::nullopt;
  }
  Dim count = 1;
  for (Dim factor : *factors) {
    count *= factor;
  }
  return Sizes{count};
}

/// Reads the sums of equal numbers, e.g. the length of an attention mask of ones.
Result summed(ReduceOp op) {
  auto expand = op.getX().getDefiningOp<ExpandOp>();
  auto element = expand && op.getKind() == ReduceKind::sum ? getConstantInts(expand.getX()) : std::nullopt;
  if (!element || element->size() != 1) {
    return std::nullopt;
  }
  Dim sum = element->front();
  for (int64_t axis : op.getAxes()) {
    sum *= Shape(op.getX())[axis];
  }
  return Sizes(numElements(op.getY()), sum);
}

/// Floats that are computed from sizes: |numerators| / |denominator|.
struct Fractions {
  Sizes numerators;
  int64_t denominator = 1;
};

/// Reads floats that are casts of sizes, multiplied and divided by constants. Integers below 2^23 and their products
/// and quotients by powers of two are exact in every type. One other division is rounded, but never to an integer,
/// which is at least 1 / denominator away.
std::optional<Fractions> readFractions(Value value, unsigned depth) {
  constexpr int64_t kMostExact = int64_t(1) << 23, kScale = 1 << 10;
  mlir::Type element = mlir::cast<mlir::RankedTensorType>(value.getType()).getElementType();
  mlir::Operation *op = value.getDefiningOp();
  if (!op || depth == 0 || !(element.isF32() || element.isF64())) {
    return std::nullopt;
  }
  std::optional<Fractions> result;
  if (auto cast = llvm::dyn_cast<CastOp>(op)) {
    Result sizes = readSizes(cast.getX(), depth - 1);
    result = sizes ? std::optional(Fractions{*sizes}) : std::nullopt;
  } else if (llvm::isa<MulOp, DivOp>(op)) {
    auto factor = getConstantDoubles(op->getOperand(1));
    result = factor && factor->size() == 1 ? readFractions(op->getOperand(0), depth - 1) : std::nullopt;
    double scaled = result ? factor->front() * kScale : 0;
    if (!result || !llvm::isPowerOf2_64(result->denominator) || !(scaled >= 1 && scaled <= double(kMostExact)) ||
        scaled != std::floor(scaled)) {
      return std::nullopt;
    }
    auto multiplier = int64_t(scaled), divisor = kScale;
    if (llvm::isa<DivOp>(op)) {
      std::swap(multiplier, divisor);
    }
    int64_t common = std::gcd(multiplier, divisor);
    llvm::for_each(result->numerators, [&](Dim &size) { size *= multiplier / common; });
    result->denominator *= divisor / common;
  }
  bool isExact =
      result && result->denominator < kMostExact &&
      llvm::all_of(result->numerators, [&](Dim size) { return minOf(size) >= 0 && maxOf(size) < kMostExact; });
  return isExact ? result : std::nullopt;
}

/// Reads the integers that floats computed from sizes become, e.g. ceil(h / 2).
Result rounded(CastOp op, unsigned depth) {
  mlir::Operation *from = op.getX().getDefiningOp();
  bool isCeil = llvm::isa_and_present<CeilOp>(from), isRounded = isCeil || llvm::isa_and_present<FloorOp>(from);
  auto fractions = readFractions(isRounded ? from->getOperand(0) : op.getX(), depth);
  if (!fractions) {
    return std::nullopt;
  }
  return llvm::map_to_vector(fractions->numerators, [&](Dim size) {
    return isCeil ? ceilDiv(size, fractions->denominator) : floorDiv(size, fractions->denominator);
  });
}

Result casted(CastOp op, unsigned depth) {
  bool isFloat = llvm::isa<mlir::FloatType>(mlir::cast<mlir::RankedTensorType>(op.getX().getType()).getElementType());
  return isFloat ? rounded(op, depth) : readSizes(op.getX(), depth);
}

/// Returns the elements of the result of |op|, if it is an op that moves elements of a tensor of any rank.
Result readMove(mlir::Operation *op, unsigned depth) {
  return llvm::TypeSwitch<mlir::Operation *, Result>(op)
      .Case([&](SliceOp slice) { return sliced(slice, depth); })
      .Case([&](TransposeOp transpose) { return transposed(transpose, depth); })
      .Case([&](ReshapeOp reshape) { return readSizes(reshape.getX(), depth); })
      .Case([&](CastOp cast) { return casted(cast, depth); })
      .Default(Result());
}

/// Returns the elements of the vector or scalar that |op| computes, if it is an op of shape arithmetic.
Result readOp(mlir::Operation *op, unsigned depth) {
  return llvm::TypeSwitch<mlir::Operation *, Result>(op)
      .Case([&](ShapeOp shape) { return dimsOf(shape); })
      .Case([&](GatherOp gather) { return gathered(gather, depth); })
      .Case([&](ConcatOp concat) { return joined(concat, depth); })
      .Case([&](ExpandOp expand) { return expanded(expand, depth); })
      .Case([&](WhereOp where) { return selected(where, depth); })
      .Case([&](ReduceOp reduce) {
        return reduce.getKind() == ReduceKind::sum ? summed(reduce) : product(reduce, depth);
      })
      .Case([&](NegOp neg) { return negated(neg, depth); })
      .Case([&](AddOp) { return combined(op, depth, [](Dim a, Dim b) { return a + b; }); })
      .Case([&](SubOp) { return combined(op, depth, [](Dim a, Dim b) { return a - b; }); })
      .Case([&](MulOp) { return combined(op, depth, [](Dim a, Dim b) { return a * b; }); })
      .Case([&](MinOp) { return combined(op, depth, [](Dim a, Dim b) { return min(a, b); }); })
      .Case([&](MaxOp) { return combined(op, depth, [](Dim a, Dim b) { return max(a, b); }); })
      .Case([&](DivOp) { return combined(op, depth, divide); })
      .Default([&](mlir::Operation *other) { return readMove(other, depth); });
}

/// Replaces unknown elements of |value| by the symbols that earlier ops have bound to them.
Result withBound(Value value, Result known) {
  int64_t count = numElements(value);
  bool isKnown = known && llvm::none_of(*known, [](Dim element) { return element.isUnknown(); });
  if (isKnown) {
    return known;
  }
  Sizes sizes;
  bool found = known.has_value();
  for (int64_t i = 0; i < count; ++i) {
    bool isOpen = !known || (*known)[i].isUnknown();
    sizes.push_back(isOpen ? findBound(traceElement(value, i)) : (*known)[i]);
    found |= !sizes.back().isUnknown();
  }
  return found ? Result(sizes) : std::nullopt;
}

} // namespace

llvm::SmallVector<Dim> toSizes(llvm::ArrayRef<int64_t> numbers) {
  return llvm::map_to_vector(numbers, [](int64_t number) { return Dim(std::max(number, INT64_MIN + 1)); });
}

Result readSizes(Value value, unsigned depth) {
  auto type = mlir::cast<mlir::RankedTensorType>(value.getType());
  mlir::Type element = type.getElementType();
  bool isInteger = element.isSignlessInteger(64) || element.isSignlessInteger(32);
  if (!isInteger || knownNumElements(type).value_or(kMaxElements + 1) > kMaxElements) {
    return std::nullopt;
  }
  if (auto constant = getConstantInts(value)) {
    return toSizes(*constant);
  }
  mlir::Operation *op = value.getDefiningOp();
  if (type.getRank() > 1 && numElements(type) != 1) {
    return op && depth > 0 ? readMove(op, depth - 1) : std::nullopt;
  }
  return withBound(value, op && depth > 0 ? readOp(op, depth - 1) : std::nullopt);
}

Flags readFlags(Value value, unsigned depth) {
  auto type = mlir::cast<mlir::RankedTensorType>(value.getType());
  if (type.getRank() > 1 || knownNumElements(type).value_or(kMaxElements + 1) > kMaxElements) {
    return std::nullopt;
  }
  if (auto constant = getConstantInts(value)) {
    return llvm::map_to_vector(*constant, [](int64_t number) { return Flag(number != 0); });
  }
  auto op = value.getDefiningOp<CompareOp>();
  Result a = op && depth > 0 ? readSizes(op.getA(), depth - 1) : std::nullopt;
  Result b = a ? readSizes(op.getB(), depth - 1) : std::nullopt;
  auto count = static_cast<size_t>(numElements(value));
  auto fits = [&](const Result &list) { return list && (list->size() == 1 || list->size() == count); };
  if (!fits(a) || !fits(b)) {
    return std::nullopt;
  }
  return llvm::map_to_vector(llvm::seq(count),
                             [&](size_t i) { return compare(op.getKind(), elementAt(*a, i), elementAt(*b, i)); });
}

Result readOpenSizes(Value value) {
  Result sizes = readSizes(value);
  bool isOpen = sizes && llvm::any_of(*sizes, [](Dim size) { return size.isSymbolic(); }) &&
                llvm::none_of(*sizes, [](Dim size) { return size.isUnknown(); });
  return isOpen ? sizes : std::nullopt;
}

} // namespace tessera::top::onnx_import
