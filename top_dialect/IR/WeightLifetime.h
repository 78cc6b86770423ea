//===- WeightLifetime.h - Dropping weights that are no longer used --------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IR_WEIGHTLIFETIME_H
#define TESSERA_TOP_DIALECT_IR_WEIGHTLIFETIME_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

#include <functional>
#include <vector>

namespace tessera::top {

/// States, during its lifetime, that only ops of |module| refer to tensors of the context's weight store: neither a
/// clone of the module nor ops moved out of it are in use.
class SoleHolder {
public:
  explicit SoleHolder(mlir::ModuleOp module);
  ~SoleHolder();
  SoleHolder(const SoleHolder &) = delete;
  SoleHolder &operator=(const SoleHolder &) = delete;

private:
  mlir::MLIRContext *context;
};

/// Drops all weights to which no `top.weight` of the module around |op| refers, if that module is the sole holder; else
/// does nothing. Called between phases, and by passes between the weights that they replace. Invalidates views of
/// dropped weights.
void dropUnheldWeights(mlir::Operation *op);

/// States that |constant| will not be read for a while (see WeightStore::release). Ignores values that are not weights.
void releaseWeight(mlir::Value constant);

/// Creates a constant whose bytes |make| computes when they are read (see WeightStore::addLazily).
mlir::Value createLazyConstant(mlir::OpBuilder &builder, mlir::Location loc, mlir::RankedTensorType type,
                               std::function<std::vector<char>()> make, llvm::StringRef hint);

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_IR_WEIGHTLIFETIME_H
