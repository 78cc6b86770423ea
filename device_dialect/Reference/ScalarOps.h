//===- ScalarOps.h - Semantics of the ops of scalar regions -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_DEVICE_DIALECT_REFERENCE_SCALAROPS_H
#define TESSERA_DEVICE_DIALECT_REFERENCE_SCALAROPS_H

#include "mlir/IR/Operation.h"
#include <functional>
#include <vector>

namespace tessera::device::reference {

/// Values of one SSA value for consecutive elements. Floats are in `f`, integers in `i`: i1 as 0 or 1, wider ones
/// sign-extended.
struct Column {
  std::vector<double> f;
  std::vector<int64_t> i;

  void resize(size_t size) {
    f.resize(size);
    i.resize(size);
  }
};

/// Rounds to a float type, once, to nearest even.
class Rounding {
public:
  explicit Rounding(mlir::Type type)
      : to(!type           ? wider
           : type.isF32()  ? f32
           : type.isF16()  ? f16
           : type.isBF16() ? bf16
                           : wider) {} // decided once, not per element
  bool isToSingle() const { return to == f32; }
  double operator()(double value) const { return to == f32 ? static_cast<float>(value) : toOther(value); }

private:
  double toOther(double value) const;
  enum { f16, bf16, f32, wider } to;
};

/// Wraps to the width of an integer type; the identity for types that are not numbers.
class Wrapping {
public:
  explicit Wrapping(mlir::Type type) : width(type && type.isIntOrFloat() ? type.getIntOrFloatBitWidth() : 64) {}
  int64_t operator()(int64_t value) const {
    if (width >= 64) {
      return value;
    }
    auto low = static_cast<uint64_t>(value) & ((uint64_t(1) << width) - 1);
    return width == 1 ? static_cast<int64_t>(low) : static_cast<int64_t>(low << (64 - width)) >> (64 - width);
  }

private:
  unsigned width;
};

/// Computes `size` elements of an op's result, rounded to its type.
using ColumnFunction = std::function<void(llvm::ArrayRef<const Column *> operands, Column &result, size_t size)>;

/// Returns the function that computes an op, empty for unsupported ops.
ColumnFunction getColumnFunction(mlir::Operation *op);

/// Returns the f32 sigmoid, as which 1 / (1 + e^-x) is computed.
ColumnFunction sigmoidColumn();

} // namespace tessera::device::reference

#endif // TESSERA_DEVICE_DIALECT_REFERENCE_SCALAROPS_H
