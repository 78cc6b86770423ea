//===- Undo.h - The float model that a quantised one stands for -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

namespace tessera::quant {

/// The integers that a tensor was to become: q in [lowest, highest], real = scale * (q - zeroPoint).
struct TensorForm {
  std::string name;
  float scale;
  int64_t zeroPoint, lowest, highest;
};

/// Takes the pairs that a function gets from quantizeFunction out of it again. What is left computes in float, with the
/// weights, biases and factors of the quantised model; with its tensors rounded to their forms where they are made,
/// which is for whoever runs it, it computes what that one does, up to the order of sums and, for attention, the
/// rounding of powers.
class Undo {
public:
  /// Remembers what the function has now: its own pairs stay.
  explicit Undo(mlir::func::FuncOp function);

  /// The forms of the tensors, in program order.
  std::vector<TensorForm> run();

private:
  mlir::func::FuncOp function;
  llvm::DenseSet<mlir::Operation *> own;
};

} // namespace tessera::quant
