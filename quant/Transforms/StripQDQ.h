//===- StripQDQ.h - Restores the float form of a quantised model --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_QUANT_TRANSFORMS_STRIPQDQ_H
#define TESSERA_QUANT_TRANSFORMS_STRIPQDQ_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

namespace tessera::quant {

/// The integer form intended for a tensor: q in [lowest, highest], real = scale * (q - zeroPoint).
struct TensorForm {
  std::string name;
  float scale;
  int64_t zeroPoint, lowest, highest;
  std::string attention = {};    ///< q of the attention that reads the tensor as q, k or v; these have no i16 form
  int64_t attentionProducts = 0; ///< multiplications of that attention
};

/// Removes the pairs that quantizeFunction inserted into a function. The result computes in float, with the weights,
/// biases and factors of the quantised model. If its runner also rounds each tensor to its form (TensorForm) where it
/// is computed, the result equals that of the quantised model up to the order of sums and, for attention, the rounding
/// of exponentials.
class StripQDQ {
public:
  /// Records the pairs that the function has already; `run` preserves them.
  explicit StripQDQ(mlir::func::FuncOp function);

  /// Removes the pairs and returns the forms of the tensors in program order.
  std::vector<TensorForm> run();

private:
  mlir::func::FuncOp function;
  llvm::DenseSet<mlir::Operation *> own;
};

} // namespace tessera::quant

#endif // TESSERA_QUANT_TRANSFORMS_STRIPQDQ_H
