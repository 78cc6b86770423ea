//===- KernelCompiler.cpp - Compiles a kernel's MLIR to an object file ----===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/KernelCompiler.h"

#include "codegen/Kernels/KernelInterface.h"
#include "codegen/X86/Contract.h"
#include "codegen/X86/IR/X86Dialect.h"
#include "codegen/X86/Micro.h"
#include "device_dialect/IR/DeviceDialect.h"

#include "mlir/Target/LLVMIR/Export.h"
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

void registerX86Kernels(DialectRegistry &registry) {
  kernels::registerKernels(registry);
  registry.insert<X86Dialect>();
  registry.addExtension(+[](MLIRContext *context, device::DeviceDialect *) {
    context->loadDialect<X86Dialect>(); // worker threads build kernels, and they must not load dialects
  });
}

std::string kernelKey(Operation *op, const X86Target &target) {
  // Targets with the same instructions may still differ in whether they multiply pairs of bf16.
  return kernels::kernelKey(op, target.llvmCpu().str() + target.llvmFeatures() +
                                    (target.bf16Conversion ? " bf16 as f32" : ""));
}

FailureOr<OwningOpRef<ModuleOp>> emitKernelModule(Operation *op, const X86Target &target, StringRef symbol,
                                                  KernelFrame &frame) {
  X86KernelBuilder kb(target, op, symbol);
  FailureOr<bool> isMicro = emitMicroKernel(op, kb);
  if (failed(isMicro) || (!*isMicro && failed(kernels::emitLoops(kb)))) {
    return failure();
  }
  return kernels::takeKernel(kb, frame);
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

/// Sets the function attributes of |module|: the target's CPU and features, 512-bit vectors, no unwinding.
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

/// Runs the few cheap passes that generated loops profit from. -O3 takes ten times as long and gains nothing on code
/// that is already vectorised (see RATIONALE.md).
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
  if (failed(kernels::lowerKernelModule(**module))) {
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
  kernel.code.assign(object.begin(), object.end());
  return kernel;
}

} // namespace tessera::x86
