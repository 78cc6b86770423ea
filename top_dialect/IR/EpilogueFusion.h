//===- EpilogueFusion.h - Which op an elementwise op fuses into --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IR_EPILOGUEFUSION_H
#define TESSERA_TOP_DIALECT_IR_EPILOGUEFUSION_H

#include "mlir/IR/Operation.h"

namespace tessera::top {

/// Returns the producer into whose epilogue the elementwise op `op` fuses; null if there is none. If several producers
/// can take the op, the last one does, because the results of the others exist by then. Top and the device dialect
/// share this rule, so that the quantiser does not store a tensor that no kernel will write.
inline mlir::Operation *findEpilogueOwner(mlir::Operation *op,
                                          llvm::function_ref<bool(mlir::Operation *producer)> canTake,
                                          llvm::function_ref<bool(mlir::Operation *a, mlir::Operation *b)> isBefore) {
  mlir::Operation *owner = nullptr;
  for (mlir::Value operand : op->getOperands()) {
    mlir::Operation *producer = operand.getDefiningOp();
    if (producer && producer != owner && canTake(producer) && (!owner || isBefore(owner, producer))) {
      owner = producer;
    }
  }
  return owner;
}

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_IR_EPILOGUEFUSION_H
