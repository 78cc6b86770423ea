//===- KernelCompiler.cpp - From a kernel's MLIR to an object file --------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/KernelCompiler.h"

#include "codegen/X86/Contract.h"
#include "codegen/X86/KernelInterface.h"

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
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/DialectConversion.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/LoopRotation.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include <mutex>

using namespace mlir;

namespace tessera::x86 {

FailureOr<OwningOpRef<ModuleOp>> emitKernelModule(Operation *op, const X86Target &target, StringRef symbol,
                                                  KernelFrame &frame) {
  auto interface = dyn_cast<KernelInterface>(op);
  if (!interface) {
    return op->emitError("has no x86 kernel: '") << op->getName() << "' does not implement KernelInterface";
  }
  KernelBuilder kb(target, op, symbol);
  if (failed(interface.emitKernel(kb))) {
    return failure();
  }
  frame = kb.frame();
  OwningOpRef<ModuleOp> module = kb.takeModule();
  if (frame.tiles < 1 || failed(verify(*module))) {
    return op->emitError("internal error: the kernel emitted for '") << op->getName() << "' is malformed";
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

static void initializeBackend() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser(); // inline assembly of the micro-kernels
  });
}

static std::unique_ptr<llvm::TargetMachine> createTargetMachine(const X86Target &target) {
  initializeBackend();
  llvm::Triple triple("x86_64-unknown-linux-gnu");
  std::string error;
  const llvm::Target *llvmTarget = llvm::TargetRegistry::lookupTarget(triple, error);
  llvm::TargetOptions options;
  return std::unique_ptr<llvm::TargetMachine>(
      llvmTarget->createTargetMachine(triple, target.llvmCpu(), target.llvmFeatures(), options, llvm::Reloc::PIC_,
                                      llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
}

/// Marks what the frame of a kernel promises: no unwinding, the target's registers.
static void setFunctionAttributes(llvm::Module &module, const X86Target &target) {
  for (llvm::Function &function : module) {
    if (function.isDeclaration()) {
      continue;
    }
    function.addFnAttr("target-cpu", target.llvmCpu());
    if (std::string features = target.llvmFeatures(); !features.empty()) {
      function.addFnAttr("target-features", features);
    }
    function.addFnAttr("prefer-vector-width", "512");
    function.setDoesNotThrow();
  }
}

/// The few cheap passes that generated loops profit from; measured against -O3, which costs ten times
/// as much and gains nothing on code that is vectorised already (see RATIONALE.md).
static void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::EarlyCSEPass());
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::InstCombinePass());
  llvm::LoopPassManager loopPasses;
  loopPasses.addPass(llvm::LoopRotatePass());
  loopPasses.addPass(llvm::LICMPass(llvm::LICMOptions()));
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(loopPasses), /*UseMemorySSA=*/true));
  passes.addPass(llvm::EarlyCSEPass());
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SimplifyCFGPass());
  for (llvm::Function &function : module) {
    if (!function.isDeclaration()) {
      passes.run(function, functions);
    }
  }
}

FailureOr<Kernel> compileKernel(Operation *op, const X86Target &target, StringRef symbol) {
  Kernel kernel;
  FailureOr<OwningOpRef<ModuleOp>> module = emitKernelModule(op, target, symbol, kernel.frame);
  if (failed(module)) {
    return failure();
  }
  if (failed(lowerKernelModule(**module))) {
    return op->emitError("internal error: the kernel of '") << op->getName() << "' does not lower to LLVM";
  }
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> llvmModule = translateModuleToLLVMIR(**module, context, symbol);
  if (!llvmModule) {
    return op->emitError("internal error: the kernel of '") << op->getName() << "' does not translate to LLVM IR";
  }
  std::unique_ptr<llvm::TargetMachine> machine = createTargetMachine(target);
  llvmModule->setTargetTriple(machine->getTargetTriple());
  llvmModule->setDataLayout(machine->createDataLayout());
  setFunctionAttributes(*llvmModule, target);
  addContract(*llvmModule, op, target, kernel.frame);
  optimize(*llvmModule, *machine);
  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream os(object);
  llvm::legacy::PassManager codegen;
  if (machine->addPassesToEmitFile(codegen, os, nullptr, llvm::CodeGenFileType::ObjectFile)) {
    return op->emitError("internal error: LLVM cannot emit x86 objects");
  }
  codegen.run(*llvmModule);
  kernel.object.assign(object.begin(), object.end());
  return kernel;
}

} // namespace tessera::x86
