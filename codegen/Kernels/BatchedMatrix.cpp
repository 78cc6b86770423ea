//===- BatchedMatrix.cpp - One matrix of a batch of matrices --------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Kernels/BatchedMatrix.h"

#include "top_dialect/IR/Sizes.h"

using namespace mlir;

namespace tessera::kernels {

BatchedMatrix matrixAt(KernelBuilder &kb, RankedTensorType type, int64_t rank, ArrayRef<Value> indices,
                       bool transposed) {
  Strides strides(type);
  int64_t own = type.getRank(), missing = rank - own;
  Value base = kb.constant(0);
  for (int64_t d = 0; d + 2 < own; ++d) {
    if (!Shape(type)[d].is(1)) {
      base = kb.add(base, kb.mul(indices[d + missing], strides.dims[d]));
    }
  }
  Dim last = strides.dims[own - 1], before = strides.dims[own - 2];
  return transposed ? BatchedMatrix{base, last, before} : BatchedMatrix{base, before, last};
}

} // namespace tessera::kernels
