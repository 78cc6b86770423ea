//===- Folds.h - Copies and maps that other ops do on the way ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Norms, attention and products by constant weights work on rows. What turns rows before them, quantises theirs and
// turns these again would pass outside memory once more for each step: instead they read their operands as these lie,
// compute the map behind them on what is in local memory, and store it as the copies behind that want it.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_NPU_FOLDS_H
#define TESSERA_CODEGEN_NPU_FOLDS_H

#include "bmodel/npu/chip.h"
#include "codegen/Npu/Nest.h"
#include "codegen/Npu/VectorProgram.h"
#include "device_dialect/IR/DeviceOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace tessera::npu {

/// Ops of the device have ranked tensors only.
inline mlir::RankedTensorType typeOf(mlir::Value tensor) {
  return mlir::cast<mlir::RankedTensorType>(tensor.getType());
}

/// Elements of a tensor, in order, as they lie in another value (or in that tensor itself).
struct Seen {
  mlir::Value value;
  int64_t offset = 0; ///< of the first one, in elements of |value|
  Nest nest;          ///< strides of |value|, simplified

  /// The distance of elements begin, begin + step, begin + 2 * step ..., |count| of them, wherever |begin| is a
  /// multiple of step * count; nothing where they do not lie evenly.
  std::optional<int64_t> strideOf(int64_t step, int64_t count) const;
  /// Where an element lies.
  int64_t at(int64_t index) const;
};

class Folds {
public:
  Folds(mlir::func::FuncOp function, const bmodel::npu::Chip &chip);

  /// Whether other ops do what the op does.
  bool isFolded(mlir::Operation *op) const { return folded.contains(op); }
  /// How the reader of an operand finds it.
  Seen seen(mlir::Value operand) const;

  /// What becomes of an op's result.
  struct Tail {
    device::MapOp map;                           ///< or null
    mlir::Value mapped;                          ///< the operand of |map| that is the result
    Instructions program;                        ///< of |map|
    llvm::SmallVector<Seen, 2> targets;          ///< where it goes: the elements of the result there
    llvm::SmallVector<mlir::Operation *, 2> ops; ///< that are folded
  };
  /// Null: the result is all that is stored.
  const Tail *tailOf(mlir::Operation *op) const;
  /// Copies through which an op reads.
  llvm::SmallVector<mlir::Operation *> readThrough(mlir::Operation *op) const;

private:
  bool canRead(mlir::OpOperand &use, const Seen &seen) const;
  void foldIntoReaders(device::CopyOp copy);
  void foldBehind(mlir::Operation *op);
  bool addMap(mlir::Operation *op, Tail &tail) const;
  void addTargets(mlir::Operation *op, mlir::Value result, Tail &tail);

  const bmodel::npu::Chip &chip;
  llvm::DenseSet<mlir::Operation *> folded, areStored; ///< the latter are copies whose results are there
  llvm::DenseMap<mlir::Value, Seen> aliases;           ///< values that are found in copies of them only
  llvm::DenseMap<mlir::Operation *, Tail> tails;
};

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_FOLDS_H
