//===- ScalarBodies.h - Combining scalar regions ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_DEVICE_DIALECT_TRANSFORMS_SCALARBODIES_H
#define TESSERA_DEVICE_DIALECT_TRANSFORMS_SCALARBODIES_H

#include "device_dialect/IR/DeviceComputeOps.h"
#include "mlir/IR/Builders.h"

namespace tessera::device {

/// Clones the ops of the scalar block |body| at |builder|, with |arguments| in place of its arguments. Constants that
/// already exist in the target block are shared. Returns the yielded value.
mlir::Value inlineBody(mlir::OpBuilder &builder, mlir::Block &body, mlir::ValueRange arguments);

/// Returns the number of ops of a scalar block other than constants.
int64_t bodySize(mlir::Block &body);

/// Returns true if a body costs no more than reading its operands again: a few additions, comparisons, multiplications.
bool isCheap(mlir::Block &body);

/// Appends |map|, which reads the result of |producer|, to the epilogue of |producer|; the other operands of |map|
/// become extras. |producer| moves to the position of |map| and takes its names and uses; |map| is erased. All uses of
/// the producer's result must be operands of |map|, and the result types must agree.
void appendToEpilogue(EpilogueInterface producer, MapOp map);

/// Splits off the (non-empty) epilogue of |producer| into a map after it, which takes its names and uses; |producer|
/// then stores the accumulated element.
MapOp splitEpilogue(EpilogueInterface producer);

/// Inlines |producer|, an operand of |consumer| with the result's shape, into |consumer|. The new op replaces
/// |consumer|, which is erased; |producer| stays, possibly without uses.
MapOp inlineProducer(MapOp producer, MapOp consumer);

/// Replaces a map that reads more than |most| (at least 3) tensors by several that do not: the same operations on the
/// same values, some of which become tensors.
void splitMap(MapOp map, size_t most);

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_TRANSFORMS_SCALARBODIES_H
