//===- FusedOps.h - Copies and maps fused into other ops --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Norms, attention and matmuls by constant weights process rows. Transposing rows before them, quantising their rows
// and transposing these back would each pass through off-chip memory. Instead, these ops read their operands as they
// lie, compute the map behind them on data in local memory, and store in the layout of the copies behind that map.
//
// FuseCopies.cpp decides this and writes npu.fused on the copies and maps; FusedOps reads it.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_NPU_DECISIONS_FUSEDOPS_H
#define TESSERA_CODEGEN_NPU_DECISIONS_FUSEDOPS_H

#include "bmodel/npu/chip.h"
#include "codegen/Npu/IR/NpuDialect.h"
#include "codegen/Npu/Stream/LoopNest.h"
#include "codegen/Npu/Vector/VectorProgram.h"
#include "device_dialect/IR/DeviceOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "top_dialect/IR/TensorTypes.h"
#include "llvm/ADT/DenseMap.h"
#include <array>

namespace tessera::npu {

/// Layout of a tensor's elements, in order, within another value (or within the tensor itself).
struct StridedView {
  mlir::Value value;
  int64_t offset = 0; ///< of the first element, in elements of |value|
  LoopNest nest;      ///< strides of |value|, simplified

  /// Returns the distance of the elements begin, begin + step, begin + 2 * step ..., |count| in number, for every
  /// |begin| that is a multiple of step * count. Returns nothing if they are not evenly spaced.
  std::optional<int64_t> strideOf(int64_t step, int64_t count) const;
  /// Returns the offset of an element.
  int64_t at(int64_t index) const;
};

/// Rows in blocks of evenly spaced rows. A row has up to three dims, e.g. in window partitioning 2 x 2 pixels. Strides
/// in elements.
struct BlockedRows {
  int64_t blocks, byBlock, rows, byRow;  ///< rows: per block
  std::array<int64_t, 3> sizes, strides; ///< of one row
};

/// Contents of the function's npu.fused attributes, by the ops that execute the fused ones.
class FusedOps {
public:
  /// Requires consistent attributes (verifyFused).
  FusedOps(mlir::func::FuncOp function, const bmodel::npu::Chip &chip);

  /// Returns true if another op executes |op|.
  bool isFused(mlir::Operation *op) const { return op->hasAttr(NpuDialect::kFusedAttr); }
  /// Returns how the reader of an operand sees it.
  StridedView viewOf(mlir::Value operand) const;

  /// Ops fused behind an op, and the destinations of its result.
  struct FusedConsumers {
    device::MapOp map;                           ///< or null
    mlir::Value mapped;                          ///< operand of |map| that is the result
    Instructions program;                        ///< of |map|
    llvm::SmallVector<StridedView, 2> targets;   ///< destinations of the result
    llvm::SmallVector<mlir::Operation *, 2> ops; ///< fused ops
  };
  /// Returns null if nothing is fused behind |op| and its own result is stored.
  const FusedConsumers *consumersOf(mlir::Operation *op) const;
  /// Returns the copies through which an op reads its operands.
  llvm::SmallVector<mlir::Operation *> readThrough(mlir::Operation *op) const;

private:
  void readConsumers(mlir::Operation *op);

  llvm::DenseMap<mlir::Value, StridedView> aliases; ///< values that only exist inside copies of them
  llvm::DenseMap<mlir::Operation *, FusedConsumers> consumersByOp;
};

/// Rules shared by the code that decides and the code that verifies npu.fused.
namespace fusion {

/// Returns the attribute, or null if the op is not fused.
FusedAttr getFused(mlir::Operation *op);

/// Returns true if |rows| rows of |size| elements are evenly spaced, and the elements of each row as well.
bool hasEvenRows(const StridedView &view, int64_t rows, int64_t size);
/// Returns true if this holds for the rows of each matrix, i.e. of the value's last two dims.
bool hasEvenMatrices(const StridedView &view, mlir::Value value);

/// Returns |rows| rows of |size| elements as blocks, or nothing if they have another layout.
std::optional<BlockedRows> blockedRowsOf(const StridedView &view, int64_t rows, int64_t size);

/// Appends the uses of a value, looking through reshapes.
void findReaders(mlir::Value value, llvm::SmallVectorImpl<mlir::OpOperand *> &readers);

/// Returns true if a copy reads its whole result from one source and may be fused. Copies that write results of the
/// model, or that share bytes with another value, may not.
bool isView(device::CopyOp copy);
/// Returns the layout of such a copy's result within its source.
StridedView sourceOf(device::CopyOp copy);
/// Returns the layout of such a copy's source within the result, or nothing if parts of the source are missing there.
std::optional<StridedView> resultOf(device::CopyOp copy);

/// Returns true if the user can read its operand with this layout.
bool canRead(mlir::OpOperand &use, const StridedView &view);

/// Returns the only reader of the op's result if that is a map that the op can compute; else null.
device::MapOp findMap(mlir::Operation *op, const bmodel::npu::Chip &chip);
/// Returns the map as a vector program. The error names the operation that the vector unit does not support.
llvm::Expected<Instructions> programOfMap(device::MapOp map);

/// Returns the convolution that is the only reader of an element-wise map of one function argument, and which may
/// therefore compute the map on the data that it loads. Returns null if there is none.
device::ConvOp findMapReader(device::MapOp map);
/// Returns the map that a convolution computes on the data that it loads as x, or null.
device::MapOp fusedInputMapOf(device::ConvOp conv);

/// Returns the map behind an op that is fused into it, or null.
device::MapOp fusedMapOf(mlir::Operation *op);
/// Returns the copies of |result| that are fused into the op that computes it, by target number.
llvm::SmallVector<device::CopyOp> fusedCopiesOf(mlir::Value result);

} // namespace fusion

/// Checks every npu.fused of a function: the op that has to execute the fused one exists and can do it. Emits errors at
/// the ops.
mlir::LogicalResult verifyFused(mlir::func::FuncOp function, const bmodel::npu::Chip &chip);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_DECISIONS_FUSEDOPS_H
