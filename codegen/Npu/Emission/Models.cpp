//===- Models.cpp - Registration of the ops that the NPU executes ---------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Emission/Models.h"

#include "codegen/Npu/Emission/EmissionInterface.h"
#include "codegen/Npu/Emission/RowFusionInterface.h"
#include "codegen/Npu/IR/NpuOps.h"
#include "codegen/Npu/Npu.h"

#include "device_dialect/IR/DeviceDialect.h"

#include "codegen/Npu/Emission/EmissionInterface.cpp.inc"
#include "codegen/Npu/Emission/RowFusionInterface.cpp.inc"

using namespace mlir;

namespace tessera::npu {
using bmodel::npu::Type;

/// Returns the name of an element type in chip descriptions, or null if all chips support the type.
static const char *nameInChips(Type type) {
  switch (type) {
  case Type::i8:
  case Type::u8:
    return "int8";
  case Type::i16:
    return "int16";
  case Type::bf16:
    return "bf16";
  case Type::f16:
    return "f16";
  case Type::f32:
    return "f32";
  case Type::i32:
    break;
  }
  return nullptr;
}

llvm::Error checkElementTypes(Operation *op, const Chip &chip) {
  for (mlir::Type type : llvm::concat<const mlir::Type>(op->getOperandTypes(), op->getResultTypes())) {
    std::optional<Type> element = typeOf(cast<RankedTensorType>(type).getElementType());
    const char *name = element ? nameInChips(*element) : nullptr;
    if (name && !chip.computes(name)) {
      return reject(llvm::Twine("computes with ") + name + ", which the chip does not support");
    }
  }
  return llvm::Error::success();
}

void registerNpuModels(DialectRegistry &registry) {
  registry.insert<NpuDialect>();
  registry.addExtension(+[](MLIRContext *context, device::DeviceDialect *) {
    attachAttentionModels(context);
    attachBlockMatMulModels(context);
    attachConvModels(context);
    attachCopyModels(context);
    attachCumSumModels(context);
    attachGatherModels(context);
    attachLutModels(context);
    attachMapModels(context);
    attachMatMulModels(context);
    attachNormModels(context);
    attachPoolModels(context);
    attachReduceModels(context);
    attachResizeModels(context);
    attachSoftmaxModels(context);
    context->loadDialect<NpuDialect>();
  });
}

} // namespace tessera::npu
