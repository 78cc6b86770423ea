//===- ScalarBodies.h - Putting scalar regions together ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_DEVICE_DIALECT_TRANSFORMS_SCALARBODIES_H
#define TESSERA_DEVICE_DIALECT_TRANSFORMS_SCALARBODIES_H

#include "device_dialect/IR/DeviceComputeOps.h"
#include "mlir/IR/Builders.h"

namespace tessera::device {

/// Clones the ops of the scalar block |body| at |builder|, |arguments| in place of its arguments; constants that
/// already stand in the block of the insertion point are shared. Returns the yielded value.
mlir::Value inlineBody(mlir::OpBuilder &builder, mlir::Block &body, mlir::ValueRange arguments);

/// Ops of a scalar block that compute something.
int64_t bodySize(mlir::Block &body);

/// Whether a body costs no more than reading its operands again: a few additions, comparisons, multiplications.
bool isCheap(mlir::Block &body);

/// Appends |map|, which reads the result of |producer|, to the epilogue of |producer|: the other operands of |map|
/// become extras. |producer| moves to where |map| stands, takes its names and its uses; |map| is erased. All uses of
/// the producer's result must be operands of |map|, result types must agree.
void appendToEpilogue(EpilogueInterface producer, MapOp map);

/// The contrary: |producer| keeps the element that it accumulates as it is, and its epilogue, which is not empty,
/// becomes a map behind it with its names and uses.
MapOp splitEpilogue(EpilogueInterface producer);

/// |consumer| with the computation of |producer|, one of its operands of the result's shape, inside. The new op stands
/// where |consumer| stood, which is erased; |producer| stays, perhaps without uses.
MapOp inlineProducer(MapOp producer, MapOp consumer);

/// In place of a map that reads more than |most| (at least 3) tensors, several that do not: the same operations on the
/// same values, some of which become tensors.
void splitMap(MapOp map, size_t most);

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_TRANSFORMS_SCALARBODIES_H
