//===- ReferenceCustom.cpp - Calls of custom operators --------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/IR/DeviceCustomOps.h"
#include "device_dialect/Reference/AsTop.h"
#include "top_dialect/IR/TopCustomOps.h"

using namespace mlir;
using namespace tessera::device;
using namespace tessera::device::reference;

LogicalResult CustomOp::evaluate(Inputs inputs, Outputs outputs) {
  ArrayAttr types = Builder(getContext()).getTypeArrayAttr(llvm::to_vector(getResultTypes()));
  return evaluateAs<tessera::top::CustomOp>(*this, inputs, outputs, getInputs(), getOpDomainAttr(), getOpNameAttr(),
                                            getOpVersionAttr(), getOpAttributesAttr(), types);
}
