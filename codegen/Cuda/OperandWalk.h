//===- OperandWalk.h - Where the factors of a product lie -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_CUDA_OPERANDWALK_H
#define TESSERA_CODEGEN_CUDA_OPERANDWALK_H

#include "codegen/Cuda/BlockBuilder.h"
#include "codegen/Kernels/Window.h"
#include "device_dialect/IR/DeviceComputeOps.h"

#include <memory>

namespace tessera::cuda {

/// One side of a product as a matrix of rows (output positions or columns of the result) by K. K comes in units of
/// unitBytes() bytes, neighbours in memory. Offsets count bytes of the operand.
class OperandWalk {
public:
  using Value = mlir::Value;

  /// What is known of a row or of a unit of K. The unit of a row lies at the sum of both offsets, if both are valid and
  /// the sums of their |positions| lie within the window dims.
  struct Place {
    Value offset;
    llvm::SmallVector<Value, 3> positions;
    Value valid; ///< i1; null: it is
  };

  virtual ~OperandWalk() = default;
  virtual Place row(BlockBuilder &b, Value batch, Value row) const = 0;
  virtual Place unit(BlockBuilder &b, Value unit) const = 0;
  virtual Value isInside(BlockBuilder &, const Place &, const Place &) const { return nullptr; }

  int64_t unitBytes() const { return bytesOfUnit; }
  /// Whether neighbours in memory are rows, not units.
  bool rowsAreNeighbours() const { return byRows; }

protected:
  OperandWalk(int64_t unitBytes, bool byRows) : bytesOfUnit(unitBytes), byRows(byRows) {}

  int64_t bytesOfUnit;
  bool byRows;
};

/// The rows of a matrix in each of a batch.
struct MatrixWalk final : OperandWalk {
  /// |rowBytes| between rows, |unitStride| between units. |batches|: sizes and strides in bytes of the result's batch
  /// dims, outermost first.
  MatrixWalk(int64_t unitBytes, int64_t rows, int64_t units, int64_t rowBytes, int64_t unitStride,
             llvm::ArrayRef<std::pair<int64_t, int64_t>> batches)
      : OperandWalk(unitBytes, rowBytes < unitStride), rows(rows), units(units), rowBytes(rowBytes),
        unitStride(unitStride), batches(batches) {}

  Place row(BlockBuilder &b, Value batch, Value row) const override;
  Place unit(BlockBuilder &b, Value unit) const override;

private:
  int64_t rows, units, rowBytes, unitStride;
  llvm::SmallVector<std::pair<int64_t, int64_t>> batches;
};

/// The windows of a convolution: rows are output positions; K is (kernel position, channel) in chunks of a
/// channel-blocked x (of several groups in what these are whole runs of), or (channel, kernel position) in elements of
/// a row-major one.
struct WindowWalk final : OperandWalk {
  /// Of group |group| (i32) of its channels.
  WindowWalk(BlockBuilder &b, mlir::Operation *conv, Value group);

  Place row(BlockBuilder &b, Value batch, Value row) const override;
  Place unit(BlockBuilder &b, Value unit) const override;
  Value isInside(BlockBuilder &b, const Place &row, const Place &unit) const override;

private:
  Place tap(BlockBuilder &b, Value kernelPosition) const;

  llvm::SmallVector<kernels::WindowDim> windows;
  int64_t rows = 1, taps = 1, channelUnits = 1;
  int64_t imageBytes = 0, positionBytes = 0; ///< between images, and between neighbouring positions
  int64_t unitsOfBlock = 1, blockBytes = 0;  ///< of channels: of a block, or of one channel
  bool blocked;
  Value firstUnit; ///< of the group, among those of all channels
};

} // namespace tessera::cuda

#endif // TESSERA_CODEGEN_CUDA_OPERANDWALK_H
