//===- Reduction.h - Combining values -----------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_REDUCTION_H
#define TESSERA_CODEGEN_KERNELS_REDUCTION_H

#include "codegen/Kernels/KernelBuilder.h"

namespace tessera::kernels {

/// Partial sums of a sum whose order is specified (bmodel/numerics_float.h, OrderedSum).
constexpr unsigned kExactLanes = 16;

/// The value that never wins a maximum (or, with |smallest|, a minimum), as |type| (register type, scalar
/// or vector of |elementType|).
mlir::Value lowestValue(KernelBuilder &kb, mlir::Type elementType, mlir::Type type, bool smallest);

/// Maximum (minimum) of register values of |elementType|; a NaN wins. |ordersZeros|: +0 is above -0, else either.
mlir::Value emitExtremum(KernelBuilder &kb, mlir::Type elementType, mlir::Value x, mlir::Value y, bool smallest,
                         bool ordersZeros = false);

/// |extremum| of floats x and y, or where these are equal, zeros of two signs among them, the one that IEEE 754 has.
mlir::Value orderZeros(KernelBuilder &kb, mlir::Value x, mlir::Value y, mlir::Value extremum, bool smallest);

/// All lanes of |vector| combined by halves: combine(first half, second half), until one is left.
mlir::Value reduceLanes(KernelBuilder &kb, mlir::Value vector,
                        llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> combine);

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_REDUCTION_H
