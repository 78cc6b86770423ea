//===- FusedOps.h - Copies and maps that other ops do on the way ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Norms, attention and products by constant weights work on rows. What turns rows before them, quantises theirs and
// turns these again would pass outside memory once more for each step: instead they read their operands as these lie,
// compute the map behind them on what is in local memory, and store it as the copies behind that want it.
//
// FuseCopies.cpp decides it and writes npu.fused on the copies and maps; FusedOps reads that.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_NPU_FUSEDOPS_H
#define TESSERA_CODEGEN_NPU_FUSEDOPS_H

#include "bmodel/npu/chip.h"
#include "codegen/Npu/IR/NpuDialect.h"
#include "codegen/Npu/LoopNest.h"
#include "codegen/Npu/VectorProgram.h"
#include "device_dialect/IR/DeviceOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include <array>

namespace tessera::npu {

/// Ops of the device have ranked tensors only.
inline mlir::RankedTensorType typeOf(mlir::Value tensor) {
  return mlir::cast<mlir::RankedTensorType>(tensor.getType());
}

/// Elements of a tensor, in order, as they lie in another value (or in that tensor itself).
struct StridedView {
  mlir::Value value;
  int64_t offset = 0; ///< of the first one, in elements of |value|
  LoopNest nest;      ///< strides of |value|, simplified

  /// The distance of elements begin, begin + step, begin + 2 * step ..., |count| of them, wherever |begin| is a
  /// multiple of step * count; nothing where they do not lie evenly.
  std::optional<int64_t> strideOf(int64_t step, int64_t count) const;
  /// Where an element lies.
  int64_t at(int64_t index) const;
};

/// Rows in blocks of evenly lying ones, each row of up to three dims: rows of 2 x 2 pixels each, say. Strides in
/// elements.
struct BlockedRows {
  int64_t blocks, byBlock, rows, byRow;  ///< rows of a block
  std::array<int64_t, 3> sizes, strides; ///< of a row
};

/// What the function's npu.fused attributes say, found by the ops that do the work.
class FusedOps {
public:
  /// The attributes are consistent (verifyFused).
  FusedOps(mlir::func::FuncOp function, const bmodel::npu::Chip &chip);

  /// Whether other ops do what the op does.
  bool isFused(mlir::Operation *op) const { return op->hasAttr(NpuDialect::kFusedAttr); }
  /// How the reader of an operand finds it.
  StridedView viewOf(mlir::Value operand) const;

  /// What becomes of an op's result.
  struct FusedConsumers {
    device::MapOp map;                           ///< or null
    mlir::Value mapped;                          ///< the operand of |map| that is the result
    Instructions program;                        ///< of |map|
    llvm::SmallVector<StridedView, 2> targets;   ///< where it goes: the elements of the result there
    llvm::SmallVector<mlir::Operation *, 2> ops; ///< that are folded
  };
  /// Null: the result is all that is stored.
  const FusedConsumers *consumersOf(mlir::Operation *op) const;
  /// Copies through which an op reads.
  llvm::SmallVector<mlir::Operation *> readThrough(mlir::Operation *op) const;

private:
  void readConsumers(mlir::Operation *op);

  llvm::DenseMap<mlir::Value, StridedView> aliases; ///< values that are found in copies of them only
  llvm::DenseMap<mlir::Operation *, FusedConsumers> consumersByOp;
};

/// What decides and verifies npu.fused shares these.
namespace fusion {

/// The attribute; null where the op is not fused.
FusedAttr getFused(mlir::Operation *op);

/// Whether |rows| rows of |size| elements lie evenly, and so do the elements of a row.
bool hasEvenRows(const StridedView &view, int64_t rows, int64_t size);
/// Whether the rows of each matrix of the value do, which are its last two dims.
bool hasEvenMatrices(const StridedView &view, mlir::Value value);

/// |rows| rows of |size| elements as such blocks; nothing where they lie otherwise.
std::optional<BlockedRows> blockedRowsOf(const StridedView &view, int64_t rows, int64_t size);

/// What reads a value, reshapes left out.
void findReaders(mlir::Value value, llvm::SmallVectorImpl<mlir::OpOperand *> &readers);

/// Whether a copy moves all of its result from one source, and may be left to others: results of the model, and what
/// shares the bytes of another value, have ways of their own.
bool isView(device::CopyOp copy);
/// The result of such a copy as it lies in its source.
StridedView sourceOf(device::CopyOp copy);
/// The source of such a copy as it lies in the result; nothing where it is not all there.
std::optional<StridedView> resultOf(device::CopyOp copy);

/// Whether an op can read one of its operands so.
bool canRead(mlir::OpOperand &use, const StridedView &view);

/// The only reader of the result of an op that works on rows, where that is a map which the op can compute.
device::MapOp findMap(mlir::Operation *op, const bmodel::npu::Chip &chip);
/// The map as a program of the vector unit. The error says what has no form there.
llvm::Expected<Instructions> programOfMap(device::MapOp map);

/// The convolution that alone reads what a map makes of one tensor of the caller's, element by element: it may compute
/// the map on what it loads. Null where there is none.
device::ConvOp findMapReader(device::MapOp map);
/// The map that a convolution computes on what it loads as x; null where there is none.
device::MapOp fusedInputMapOf(device::ConvOp conv);

/// The map behind an op that is fused into it; null where there is none.
device::MapOp fusedMapOf(mlir::Operation *op);
/// The copies of |result| that are fused into the op that makes it, by the places that they are.
llvm::SmallVector<device::CopyOp> fusedCopiesOf(mlir::Value result);

} // namespace fusion

/// Checks every npu.fused of a function: that the op named does it, and can. Errors are reported at the ops.
mlir::LogicalResult verifyFused(mlir::func::FuncOp function, const bmodel::npu::Chip &chip);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_FUSEDOPS_H
