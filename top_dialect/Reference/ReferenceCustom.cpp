//===- ReferenceCustom.cpp - Calls of custom operators --------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/TopCustomOps.h"
#include "top_dialect/Reference/Support.h"

using namespace mlir;
using namespace tessera::top;
using namespace tessera::top::reference;

LogicalResult CustomOp::evaluate(Inputs inputs, Outputs outputs) {
  const CustomOperators *operators = getCustomOperators();
  if (!operators || !operators->contains(getOpDomain(), getOpName())) {
    return emitOpError() << "custom operator '" << getOpDomain() << "::" << getOpName()
                         << "' is not registered: name its library with --custom_ops";
  }
  llvm::Error error = operators->run(describeCall(*this), inputs, outputs);
  return error ? LogicalResult(emitOpError() << llvm::toString(std::move(error))) : success();
}
