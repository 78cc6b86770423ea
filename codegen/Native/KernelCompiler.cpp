//===- KernelCompiler.cpp - Compiles a kernel's MLIR to an object file ----===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Native/KernelCompiler.h"

#include "codegen/Kernels/KernelInterface.h"
#include "codegen/Native/Contract.h"

#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/LoopRotation.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

using namespace mlir;

namespace tessera::native {

FailureOr<KernelModule> emitLoopKernel(Operation *op, const kernels::VectorTarget &vectors, StringRef symbol,
                                       kernels::KernelFrame &frame) {
  kernels::KernelBuilder kb(vectors, op, symbol);
  if (failed(kernels::emitLoops(kb))) {
    return failure();
  }
  return kernels::takeKernel(kb, frame);
}

std::string kernelKey(Operation *op, const Machine &machine) { return kernels::kernelKey(op, machine.key); }

/// Returns null if LLVM does not have the machine's back end.
static std::unique_ptr<llvm::TargetMachine> createTargetMachine(const Machine &machine) {
  machine.registerBackend();
  llvm::Triple triple(machine.triple);
  std::string error;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  return std::unique_ptr<llvm::TargetMachine>(
      target ? target->createTargetMachine(triple, machine.cpu, machine.features, llvm::TargetOptions(),
                                           llvm::Reloc::PIC_, llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default)
             : nullptr);
}

/// Sets the function attributes of |module|: CPU and features, width of vectors, no unwinding.
static void setFunctionAttributes(llvm::Module &module, const Machine &machine) {
  for (llvm::Function &function : module) {
    if (function.isDeclaration()) {
      continue;
    }
    function.addFnAttr("target-cpu", machine.cpu);
    if (!machine.features.empty()) {
      function.addFnAttr("target-features", machine.features);
    }
    if (machine.preferredVector) {
      function.addFnAttr("prefer-vector-width", std::to_string(machine.preferredVector));
    }
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

/// Appends the object file of |module| to |object|; returns false if LLVM cannot emit one.
static bool emitObject(llvm::Module &module, llvm::TargetMachine &machine, std::vector<char> &object) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream os(bytes);
  llvm::legacy::PassManager codegen;
  if (machine.addPassesToEmitFile(codegen, os, nullptr, llvm::CodeGenFileType::ObjectFile)) {
    return false;
  }
  codegen.run(module);
  object.assign(bytes.begin(), bytes.end());
  return true;
}

FailureOr<kernels::Kernel> compileKernel(Operation *op, const Machine &machine, StringRef symbol, KernelEmitter emit) {
  kernels::Kernel kernel;
  FailureOr<KernelModule> module = emit(op, symbol, kernel.frame);
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
  if (machine.rewrite && !machine.rewrite(*llvmModule)) {
    return op->emitError("the kernel of '") << op->getName() << "' cannot be rewritten";
  }
  std::unique_ptr<llvm::TargetMachine> targetMachine = createTargetMachine(machine);
  if (!targetMachine) {
    return op->emitError("internal error: this build of LLVM does not support ") << machine.triple;
  }
  llvmModule->setTargetTriple(targetMachine->getTargetTriple());
  llvmModule->setDataLayout(targetMachine->createDataLayout());
  setFunctionAttributes(*llvmModule, machine);
  addContract(*llvmModule, op, machine.featureBits, kernel.frame);
  optimize(*llvmModule, *targetMachine);
  if (!emitObject(*llvmModule, *targetMachine, kernel.code)) {
    return op->emitError("internal error: LLVM cannot emit objects for ") << machine.triple;
  }
  return kernel;
}

} // namespace tessera::native
