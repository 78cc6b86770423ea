//===- Reduction.h - Combining values ---------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_REDUCTION_H
#define TESSERA_CODEGEN_KERNELS_REDUCTION_H

#include "codegen/Kernels/KernelBuilder.h"

namespace tessera::kernels {

/// Number of partial sums of a sum whose order is specified (bmodel/numerics_float.h, OrderedSum).
constexpr unsigned kExactLanes = 16;

/// Returns the value that never wins a maximum (or, with |smallest|, a minimum) as |type|, the register type of
/// |elementType| (scalar or vector).
mlir::Value lowestValue(KernelBuilder &kb, mlir::Type elementType, mlir::Type type, bool smallest);

/// Emits the maximum (minimum) of register values of |elementType|; NaN wins. |ordersZeros|: +0 is larger than -0;
/// otherwise either may be returned.
mlir::Value emitExtremum(KernelBuilder &kb, mlir::Type elementType, mlir::Value x, mlir::Value y, bool smallest,
                         bool ordersZeros = false);

/// Returns |extremum| of the floats x and y; if x and y are equal, e.g. zeros of different signs, returns the one that
/// IEEE 754 specifies.
mlir::Value orderZeros(KernelBuilder &kb, mlir::Value x, mlir::Value y, mlir::Value extremum, bool smallest);

/// Combines all lanes of |vector| by halves, combine(first half, second half), until one value remains.
mlir::Value reduceLanes(KernelBuilder &kb, mlir::Value vector,
                        llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> combine);

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_REDUCTION_H
