//===- Indexing.h - Row-major index arithmetic of the evaluator ---===//
// SPDX-License-Identifier: Apache-2.0
//
// Shapes and strides are in elements, outermost dim first.
#ifndef TESSERA_TOP_DIALECT_REFERENCE_INDEXING_H
#define TESSERA_TOP_DIALECT_REFERENCE_INDEXING_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>

namespace tessera::top::reference {

using Dims = llvm::SmallVector<int64_t, 6>;
using DimsRef = llvm::ArrayRef<int64_t>;

inline int64_t product(DimsRef dims) {
  int64_t count = 1;
  for (int64_t dim : dims) {
    count *= dim;
  }
  return count;
}

/// Returns the strides of a dense row-major tensor.
inline Dims rowMajorStrides(DimsRef shape) {
  Dims strides(shape.size(), 1);
  for (int64_t d = static_cast<int64_t>(shape.size()) - 2; d >= 0; --d) {
    strides[d] = strides[d + 1] * shape[d + 1];
  }
  return strides;
}

/// Returns the strides that read a dense tensor of shape `from` as if it were broadcast (as in numpy) to `to`.
inline Dims broadcastStrides(DimsRef from, DimsRef to) {
  Dims dense = rowMajorStrides(from);
  Dims strides(to.size(), 0);
  size_t shift = to.size() - from.size();
  for (size_t d = 0; d < from.size(); ++d) {
    strides[shift + d] = from[d] == 1 ? 0 : dense[d];
  }
  return strides;
}

inline int64_t dot(DimsRef a, DimsRef b) {
  int64_t sum = 0;
  for (auto [x, y] : llvm::zip_equal(a, b)) {
    sum += x * y;
  }
  return sum;
}

/// Advances `index` to the next position of `shape`. Returns false after the last one.
inline bool nextIndex(llvm::MutableArrayRef<int64_t> index, DimsRef shape) {
  for (int64_t d = static_cast<int64_t>(shape.size()) - 1; d >= 0; --d) {
    if (++index[d] < shape[d]) {
      return true;
    }
    index[d] = 0;
  }
  return false;
}

/// Calls `body(index)` for every position of `shape`, in row-major order.
template <typename Body>
void forEachIndex(DimsRef shape, Body &&body) {
  if (product(shape) == 0) {
    return;
  }
  Dims index(shape.size(), 0);
  do {
    body(DimsRef(index));
  } while (nextIndex(index, shape));
}

/// Calls `body(linear, offset)` for every position of `shape`, in row-major order: `linear` counts
/// up from 0, `offset` is base + dot(index, strides).
template <typename Body>
void forEachOffset(DimsRef shape, DimsRef strides, int64_t base, Body &&body) {
  if (product(shape) == 0) {
    return;
  }
  int64_t inner = shape.empty() ? 1 : shape.back();
  int64_t step = shape.empty() ? 0 : strides.back();
  DimsRef outerShape = shape.empty() ? shape : shape.drop_back();
  DimsRef outerStrides = shape.empty() ? strides : strides.drop_back();
  int64_t linear = 0;
  forEachIndex(outerShape, [&](DimsRef index) {
    int64_t offset = base + dot(index, outerStrides);
    for (int64_t i = 0; i < inner; ++i) {
      body(linear++, offset + i * step);
    }
  });
}

/// A tensor seen as [outer, size, inner] around one axis.
struct AxisView {
  AxisView(DimsRef shape, int64_t axis)
      : outer(product(shape.take_front(axis))), size(shape[axis]), inner(product(shape.drop_front(axis + 1))) {}
  int64_t at(int64_t o, int64_t k, int64_t i) const { return (o * size + k) * inner + i; }
  int64_t outer, size, inner;
};

} // namespace tessera::top::reference

#endif // TESSERA_TOP_DIALECT_REFERENCE_INDEXING_H
