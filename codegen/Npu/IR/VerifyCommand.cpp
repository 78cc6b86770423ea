//===- VerifyCommand.cpp - Checks of commands -----------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/IR/NpuOps.h"

using namespace mlir;
using namespace tessera::npu;
namespace hw = bmodel::npu;

LogicalResult CommandOp::verify() {
  hw::Descriptor command = getDescriptor();
  if (!hw::findCommand(command.header.opcode)) {
    return emitOpError() << "is not a command of the NPU";
  }
  size_t tensors = 0;
  eachTensor(command, [&](const char *, hw::Tensor &tensor) { tensors += tensor.region != hw::Region::none; });
  if (tensors != getMemories().size()) {
    return emitOpError() << "has " << getMemories().size() << " memories for " << tensors << " tensors";
  }
  hw::Operand operands[hw::kMostOperands];
  size_t count = hw::operandsOf(command, operands);
  for (size_t k = 0; k < count; ++k) {
    if (operands[k].tensor.region == hw::Region::none) {
      return emitOpError() << "does not have its tensor " << operands[k].name;
    }
  }
  return success();
}
