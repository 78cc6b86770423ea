//===- Models.cpp - Registration of the kernel families -------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Kernels/Models.h"

#include "codegen/Kernels/KernelInterface.h"

#include "device_dialect/IR/DeviceDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"

#include "codegen/Kernels/KernelInterface.cpp.inc"

using namespace mlir;

namespace tessera::kernels {

void registerKernels(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, cf::ControlFlowDialect, func::FuncDialect, LLVM::LLVMDialect, math::MathDialect,
                  scf::SCFDialect, ub::UBDialect, vector::VectorDialect>();
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registry.addExtension(+[](MLIRContext *context, device::DeviceDialect *) {
    attachAttentionModels(context);
    attachBlockMatMulModels(context);
    attachConvModels(context);
    attachCopyModels(context);
    attachGatherModels(context);
    attachInsertModels(context);
    attachLutModels(context);
    attachMatMulModels(context);
    attachMapModels(context);
    attachNormModels(context);
    attachOrderModels(context);
    attachPoolModels(context);
    attachRecurrentModels(context);
    attachReduceModels(context);
    attachResizeModels(context);
    attachScatterModels(context);
    attachSoftmaxModels(context);
    attachSuppressionModels(context);
    // Kernels are built on worker threads, which may not load dialects.
    context->loadDialect<arith::ArithDialect, cf::ControlFlowDialect, func::FuncDialect, LLVM::LLVMDialect,
                         math::MathDialect, scf::SCFDialect, ub::UBDialect, vector::VectorDialect>();
  });
}

} // namespace tessera::kernels
