//===- ScalarOps.h - What each op of a scalar region computes ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_DEVICE_DIALECT_REFERENCE_SCALAROPS_H
#define TESSERA_DEVICE_DIALECT_REFERENCE_SCALAROPS_H

#include "mlir/IR/Operation.h"
#include <functional>
#include <vector>

namespace tessera::device::reference {

/// Values of one SSA value at neighbouring elements. Floats stand in `f`, integers in `i`: i1 as 0 or 1,
/// wider ones with their sign extended.
struct Column {
  std::vector<double> f;
  std::vector<int64_t> i;

  void resize(size_t size) {
    f.resize(size);
    i.resize(size);
  }
};

/// Rounds to a float type, once, to nearest even.
double roundTo(mlir::Type type, double value);

/// Wraps to the width of an integer type.
int64_t wrapTo(mlir::Type type, int64_t value);

/// Computes `size` elements of an op's result, already rounded.
using ColumnFunction = std::function<void(llvm::ArrayRef<const Column *> operands, Column &result, size_t size)>;

/// How an op is computed; empty for ops that are not known.
ColumnFunction getColumnFunction(mlir::Operation *op);

/// The f32 sigmoid that 1 / (1 + e^-x) counts as.
ColumnFunction sigmoidColumn();

} // namespace tessera::device::reference

#endif // TESSERA_DEVICE_DIALECT_REFERENCE_SCALAROPS_H
