//===- Support.h - What the op evaluations share ---===//
// SPDX-License-Identifier: Apache-2.0
//
// Ops compute in double (float types), int64_t (signed and signless integers) or uint64_t
// (unsigned integers and i1) whatever the storage type is; a result is rounded or wrapped once,
// when it is written.
#pragma once

#include "mlir/IR/BuiltinTypes.h"
#include "top_dialect/IR/HostTensor.h"
#include "top_dialect/Reference/Indexing.h"
#include <cmath>
#include <cstring>
#include <vector>

namespace tessera::top::reference {

using Inputs = llvm::ArrayRef<const HostTensor *>;
using Outputs = llvm::MutableArrayRef<HostTensor>;

/// Copies `count` elements, from `begin` on with `stride`, to `values`, converted to T (double,
/// int64_t or uint64_t). Floats to integer truncate.
template <typename T>
void readRange(const HostTensor &tensor, int64_t begin, int64_t stride, int64_t count, T *values);

/// Stores `count` consecutive elements from `begin` on. To an i1 any non-zero value is true.
template <typename T>
void writeRange(HostTensor &tensor, int64_t begin, int64_t count, const T *values);

/// C's conversion; where C leaves the result undefined, an integer is the smallest one. T as above.
template <typename T>
T fromDouble(double value);

/// All elements, in row-major order.
template <typename T>
std::vector<T> read(const HostTensor &tensor) {
  std::vector<T> values(tensor.getNumElements());
  readRange(tensor, 0, 1, tensor.getNumElements(), values.data());
  return values;
}

template <typename T>
void write(const std::vector<T> &values, HostTensor &tensor) {
  writeRange(tensor, 0, tensor.getNumElements(), values.data());
}

/// The larger of two numbers, as IEEE 754 has `maximum`: NaN if one is, and +0 above -0.
template <typename T>
T largerOf(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (a == b) {
      return std::signbit(a) ? b : a;
    }
  }
  return a != a || a > b ? a : b;
}

/// The smaller: NaN if one is, and -0 below +0.
template <typename T>
T smallerOf(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (a == b) {
      return std::signbit(a) ? a : b;
    }
  }
  return a != a || a < b ? a : b;
}

/// All elements of `tensor` broadcast to `shape`.
template <typename T>
std::vector<T> readBroadcast(const HostTensor &tensor, DimsRef shape) {
  std::vector<T> values = read<T>(tensor);
  if (tensor.getShape() == shape) {
    return values;
  }
  std::vector<T> result(product(shape));
  forEachOffset(shape, broadcastStrides(tensor.getShape(), shape), 0,
                [&](int64_t i, int64_t offset) { result[i] = values[offset]; });
  return result;
}

/// Calls `body` with a zero of the type in which elements of `elementType` are computed.
template <typename Body>
auto withNumbers(mlir::Type elementType, Body &&body) {
  if (llvm::isa<mlir::FloatType>(elementType)) {
    return body(double{});
  }
  if (elementType.isUnsignedInteger() || elementType.isInteger(1)) {
    return body(uint64_t{});
  }
  return body(int64_t{});
}

/// The operand of ODS number `position`, or null when it is optional and absent.
template <typename Op>
const HostTensor *operand(Op op, Inputs inputs, unsigned position) {
  auto [start, length] = op.getODSOperandIndexAndLength(position);
  return length ? inputs[start] : nullptr;
}

/// Element i of y is element `source(index of i)` of x (linear, row-major); -1 = left as it is.
template <typename Source>
void moveElements(const HostTensor &x, HostTensor &y, Source &&source) {
  int64_t size = elementBytes(x.getElementType());
  const char *from = x.getBytes().data();
  char *to = y.getBytes().data();
  forEachIndex(y.getShape(), [&](DimsRef index) {
    int64_t linear = source(index);
    if (linear >= 0) {
      std::memcpy(to, from + linear * size, size);
    }
    to += size;
  });
}

/// Element i of y is x[base + dot(index of i, strides)], in elements.
void moveStrided(const HostTensor &x, HostTensor &y, int64_t base, DimsRef strides);

/// Sets every element of y to `value`, rounded to its type.
void fill(HostTensor &y, double value);

} // namespace tessera::top::reference
