//===- Support.h - Shared helpers of op evaluation ------------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// Independently of the storage type, ops compute in double (float types), int64_t (signed and signless integers) or
// uint64_t (unsigned integers and i1). A result is rounded or wrapped once, when it is written.
#ifndef TESSERA_TOP_DIALECT_REFERENCE_SUPPORT_H
#define TESSERA_TOP_DIALECT_REFERENCE_SUPPORT_H

#include "mlir/IR/BuiltinTypes.h"
#include "top_dialect/IR/HostTensor.h"
#include "top_dialect/Reference/Indexing.h"
#include <cmath>
#include <cstring>
#include <vector>

namespace tessera::top::reference {

using Inputs = llvm::ArrayRef<const HostTensor *>;
using Outputs = llvm::MutableArrayRef<HostTensor>;

/// Copies `count` elements, starting at `begin` with a stride of `stride`, to `values`, converted to T (double, int64_t
/// or uint64_t). Conversion from float to integer truncates.
template <typename T>
void readRange(const HostTensor &tensor, int64_t begin, int64_t stride, int64_t count, T *values);

/// Stores `count` consecutive elements starting at `begin`. Any non-zero value becomes true in an i1 tensor.
template <typename T>
void writeRange(HostTensor &tensor, int64_t begin, int64_t count, const T *values);

/// Converts as C does. If the result is undefined in C, it is the smallest integer. T is as above.
template <typename T>
T fromDouble(double value);

/// Returns all elements in row-major order.
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

/// Returns the larger number, as `maximum` of IEEE 754: NaN if either is NaN, and +0 is larger than -0.
template <typename T>
T largerOf(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (a == b) {
      return std::signbit(a) ? b : a;
    }
  }
  return a != a || a > b ? a : b;
}

/// Returns the smaller number: NaN if either is NaN, and -0 is smaller than +0.
template <typename T>
T smallerOf(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (a == b) {
      return std::signbit(a) ? a : b;
    }
  }
  return a != a || a < b ? a : b;
}

/// Returns all elements of `tensor`, broadcast to `shape`.
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

/// Returns the operand with ODS number `position`, or null if it is optional and absent.
template <typename Op>
const HostTensor *operand(Op op, Inputs inputs, unsigned position) {
  auto [start, length] = op.getODSOperandIndexAndLength(position);
  return length ? inputs[start] : nullptr;
}

/// Sets element i of y to element `source(index of i)` (linear, row-major) of x; leaves it unchanged if that is -1.
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

/// Sets element i of y to x[base + dot(index of i, strides)], in elements.
void moveStrided(const HostTensor &x, HostTensor &y, int64_t base, DimsRef strides);

/// Sets every element of y to `value`, rounded to its type.
void fill(HostTensor &y, double value);

} // namespace tessera::top::reference

#endif // TESSERA_TOP_DIALECT_REFERENCE_SUPPORT_H
