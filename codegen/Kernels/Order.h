//===- Order.h - Helpers for ordered elements -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_ORDER_H
#define TESSERA_CODEGEN_KERNELS_ORDER_H

#include "codegen/Kernels/KernelBuilder.h"
#include "device_dialect/IR/DeviceMoveOps.h"

namespace tessera::kernels {

/// A row-major tensor as [outer, axis, inner].
struct AxisView {
  AxisView(mlir::RankedTensorType type, int64_t dim);
  /// Returns the number of lines along the axis.
  Dim lines() const { return outer * inner; }
  Dim outer, axis, inner;
};

/// Returns an i1: |x| comes before |y| in descending (or ascending) order. NaN counts as the largest.
mlir::Value comesBefore(KernelBuilder &kb, mlir::Type elementType, mlir::Value x, mlir::Value y, bool descending);

/// Returns an i1: |value| is larger than |old| (smaller with |min|), or with |orEqual| at least as large. False if one
/// is NaN.
mlir::Value isBetter(KernelBuilder &kb, mlir::Type elementType, mlir::Value value, mlir::Value old, bool min,
                     bool orEqual);

/// Returns a vector of i1 as an integer of as many bits; lane 0 is the lowest bit.
mlir::Value bitsOfMask(KernelBuilder &kb, mlir::Value mask);

/// Emit the kernels for many threads (VectorTarget::tileIsThread). Return false if one thread per item is the better
/// choice.
bool emitSharedArgReduce(KernelBuilder &kb, device::ArgReduceOp op);
bool emitRankedTopK(KernelBuilder &kb, device::TopKOp op);
bool emitSharedCumSum(KernelBuilder &kb, device::CumSumOp op);

/// Emits the kernel of TopK that keeps a sorted list of the best elements so far.
void emitSortedTopK(KernelBuilder &kb, device::TopKOp op);

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_ORDER_H
