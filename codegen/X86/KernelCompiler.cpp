//===- KernelCompiler.cpp - Kernels of the x86 family ---------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/KernelCompiler.h"

#include "codegen/Kernels/KernelInterface.h"
#include "codegen/X86/IR/X86Dialect.h"
#include "codegen/X86/Micro.h"
#include "device_dialect/IR/DeviceDialect.h"

#include "llvm/Support/TargetSelect.h"
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

static void registerBackend() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser(); // inline assembly of the micro-kernels
  });
}

native::Machine machineOf(const X86Target &target) {
  std::string cpu = target.llvmCpu().str(), features = target.llvmFeatures();
  return {.triple = "x86_64-unknown-linux-gnu",
          .cpu = cpu,
          .features = features,
          // Targets with the same instructions may still differ in whether they multiply pairs of bf16.
          .key = cpu + features + (target.bf16Conversion ? " bf16 as f32" : ""),
          .featureBits = target.cpuFeatureBits(),
          .preferredVector = 512,
          .registerBackend = registerBackend};
}

std::string kernelKey(Operation *op, const X86Target &target) { return native::kernelKey(op, machineOf(target)); }

FailureOr<native::KernelModule> emitKernelModule(Operation *op, const X86Target &target, StringRef symbol,
                                                 KernelFrame &frame) {
  X86KernelBuilder kb(target, op, symbol);
  FailureOr<bool> isMicro = emitMicroKernel(op, kb);
  if (failed(isMicro) || (!*isMicro && failed(kernels::emitLoops(kb)))) {
    return failure();
  }
  return kernels::takeKernel(kb, frame);
}

FailureOr<Kernel> compileKernel(Operation *op, const X86Target &target, StringRef symbol) {
  return native::compileKernel(op, machineOf(target), symbol, [&](Operation *op, StringRef symbol, KernelFrame &frame) {
    return emitKernelModule(op, target, symbol, frame);
  });
}

} // namespace tessera::x86
