//===- AsTop.h - Evaluating device ops as Top ops ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Several device ops are specified as "as top.x": the Top reference defines their arithmetic.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_DEVICE_DIALECT_REFERENCE_ASTOP_H
#define TESSERA_DEVICE_DIALECT_REFERENCE_ASTOP_H

#include "mlir/IR/Builders.h"
#include "top_dialect/Reference/Support.h"

namespace tessera::device::reference {

using top::reference::Inputs;
using top::reference::Outputs;

/// Creates a TopOp (outside any block) with the types of `outputs` as result types and `arguments` as operands and
/// attributes, in ODS order; computes `outputs` from `inputs` with it.
template <typename TopOp, typename... Arguments>
mlir::LogicalResult evaluateAs(mlir::Operation *op, Inputs inputs, Outputs outputs, Arguments &&...arguments) {
  mlir::OpBuilder builder(op->getContext());
  llvm::SmallVector<mlir::Type> types;
  for (const top::HostTensor &output : outputs) {
    types.push_back(output.getType());
  }
  auto topOp = TopOp::create(builder, op->getLoc(), mlir::TypeRange(types), std::forward<Arguments>(arguments)...);
  topOp->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  mlir::LogicalResult result = topOp.evaluate(inputs, outputs);
  topOp.erase();
  return result;
}

} // namespace tessera::device::reference

#endif // TESSERA_DEVICE_DIALECT_REFERENCE_ASTOP_H
