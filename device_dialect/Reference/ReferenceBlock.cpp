//===- ReferenceBlock.cpp - Evaluation of ops on blocks -------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/IR/DeviceBlockOps.h"
#include "device_dialect/Reference/AsTop.h"
#include "device_dialect/Reference/ScalarInterpreter.h"
#include "top_dialect/IR/TopBlockOps.h"

using namespace mlir;
using namespace tessera::device;
using namespace tessera::device::reference;
using tessera::top::HostTensor;
namespace top = tessera::top;

LogicalResult BlockMatMulOp::evaluate(Inputs inputs, Outputs outputs) {
  if (getPacking()) {
    return emitOpError("has packed weights: the reference evaluates a function before its weights are packed");
  }
  const size_t extras = getExtras().size(), own = inputs.size() - extras;
  HostTensor sums(getAccumulatorType(), outputs[0].getShape());
  if (failed(evaluateAs<top::BlockMatMulOp>(*this, inputs.take_front(own), MutableArrayRef<HostTensor>(sums), getX(),
                                            getW(), getScales(), getMins(), getBlockAttr()))) {
    return failure();
  }
  SmallVector<const HostTensor *> arguments{&sums};
  llvm::append_range(arguments, inputs.slice(own, extras));
  return runScalarRegion(getEpilogue(), arguments, outputs[0]);
}
