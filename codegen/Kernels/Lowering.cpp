//===- Lowering.cpp - Lowering kernel loops to the llvm dialect -----------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Kernels/KernelInterface.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;

namespace tessera::kernels {

LogicalResult emitLoops(KernelBuilder &kb) {
  auto interface = dyn_cast<KernelInterface>(kb.op());
  if (!interface) {
    return kb.op()->emitError("cannot be compiled to a kernel: '")
           << kb.op()->getName() << "' does not implement KernelInterface";
  }
  if (hasOpenSizes(kb.op()) && !interface.acceptsOpenSizes()) {
    return kb.op()->emitError() << kOpenSizesText;
  }
  return interface.emitKernel(kb);
}

FailureOr<OwningOpRef<ModuleOp>> takeKernel(KernelBuilder &kb, KernelFrame &frame) {
  frame = kb.frame();
  OwningOpRef<ModuleOp> module = kb.takeModule();
  if (!kb.hasKnownSizes()) {
    return kb.op()->emitError() << kOpenSizesText;
  }
  if ((frame.tiles < 1 && frame.tileTerms.empty()) || failed(verify(*module))) {
    return kb.op()->emitError("internal error: the kernel emitted for '") << kb.op()->getName() << "' is malformed";
  }
  return module;
}

LogicalResult lowerKernelModule(ModuleOp module) {
  MLIRContext *context = module.getContext();
  LLVMTypeConverter types(context);
  RewritePatternSet patterns(context);
  populateSCFToControlFlowConversionPatterns(patterns);
  arith::populateArithToLLVMConversionPatterns(types, patterns);
  populateMathToLLVMConversionPatterns(types, patterns);
  populateVectorToLLVMConversionPatterns(types, patterns);
  cf::populateControlFlowToLLVMConversionPatterns(types, patterns);
  populateFuncToLLVMConversionPatterns(types, patterns);
  LLVMConversionTarget target(*context);
  target.addLegalOp<ModuleOp>();
  return applyFullConversion(module, target, std::move(patterns));
}

} // namespace tessera::kernels
