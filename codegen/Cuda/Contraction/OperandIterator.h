//===- OperandIterator.h - Addresses of a contraction's operands --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_CUDA_CONTRACTION_OPERANDITERATOR_H
#define TESSERA_CODEGEN_CUDA_CONTRACTION_OPERANDITERATOR_H

#include "codegen/Cuda/Kernels/BlockBuilder.h"
#include "codegen/Kernels/Window.h"
#include "device_dialect/IR/DeviceComputeOps.h"

#include <memory>

namespace tessera::cuda {

/// One operand of a contraction as a matrix of rows (output positions, or columns of the result) by K. K is divided
/// into units of unitBytes() contiguous bytes. Offsets are bytes from the operand's begin.
class OperandIterator {
public:
  using Value = mlir::Value;

  /// The place of a row or of a unit of K. A row's unit is at the sum of both offsets. It exists if both places are
  /// valid and the sums of their |positions| lie inside the window dims.
  struct Place {
    Value offset;
    llvm::SmallVector<Value, 3> positions;
    Value valid; ///< i1; null: valid
  };

  virtual ~OperandIterator() = default;
  virtual Place row(BlockBuilder &b, Value batch, Value row) const = 0;
  virtual Place unit(BlockBuilder &b, Value unit) const = 0;
  virtual Value isInside(BlockBuilder &, const Place &, const Place &) const { return nullptr; }

  int64_t unitBytes() const { return bytesOfUnit; }
  /// Returns true if neighbours in memory are rows rather than units.
  bool rowsAreNeighbours() const { return byRows; }

protected:
  OperandIterator(int64_t unitBytes, bool byRows) : bytesOfUnit(unitBytes), byRows(byRows) {}

  int64_t bytesOfUnit;
  bool byRows;
};

/// The rows of a matrix for each index of a batch.
struct MatrixIterator final : OperandIterator {
  /// |rowBytes| and |unitStride| are the strides of rows and units in bytes. |batches|: sizes and strides in bytes of
  /// the result's batch dims, outermost first.
  MatrixIterator(int64_t unitBytes, Dim rows, int64_t units, int64_t rowBytes, int64_t unitStride,
                 llvm::ArrayRef<std::pair<Dim, Dim>> batches)
      : OperandIterator(unitBytes, rowBytes < unitStride), rows(rows), units(units), rowBytes(rowBytes),
        unitStride(unitStride), batches(batches) {}

  Place row(BlockBuilder &b, Value batch, Value row) const override;
  Place unit(BlockBuilder &b, Value unit) const override;

private:
  Dim rows;
  int64_t units, rowBytes, unitStride;
  llvm::SmallVector<std::pair<Dim, Dim>> batches;
};

/// The windows of a convolution; rows are output positions. K of a channel-blocked x is (kernel position, channel) in
/// chunks, or in smaller units if the channels of a group are not whole chunks. K of a row-major x is (channel, kernel
/// position) in single elements.
struct WindowIterator final : OperandIterator {
  /// Creates the walk for group |group| (i32) of the channels.
  WindowIterator(BlockBuilder &b, mlir::Operation *conv, Value group);

  Place row(BlockBuilder &b, Value batch, Value row) const override;
  Place unit(BlockBuilder &b, Value unit) const override;
  Value isInside(BlockBuilder &b, const Place &row, const Place &unit) const override;

private:
  Place tap(BlockBuilder &b, Value kernelPosition) const;

  llvm::SmallVector<kernels::WindowDim> windows;
  Dim rows = 1;
  int64_t taps = 1, channelUnits = 1;
  Dim imageBytes = 0;        ///< stride of images
  int64_t positionBytes = 0; ///< stride of neighbouring positions
  int64_t unitsOfBlock = 1;  ///< units of a channel block
  Dim blockBytes = 0;        ///< stride of a channel block (row-major: of a channel)
  bool blocked;
  Value firstUnit; ///< first unit of the group among those of all channels
};

} // namespace tessera::cuda

#endif // TESSERA_CODEGEN_CUDA_CONTRACTION_OPERANDITERATOR_H
