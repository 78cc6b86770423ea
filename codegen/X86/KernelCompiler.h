//===- KernelCompiler.h - Kernels of the x86 family -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_KERNELCOMPILER_H
#define TESSERA_CODEGEN_X86_KERNELCOMPILER_H

#include "codegen/Native/KernelCompiler.h"
#include "codegen/X86/X86KernelBuilder.h"

namespace tessera::x86 {

/// Returns what LLVM and the file must know about |target|.
native::Machine machineOf(const X86Target &target);

/// Returns the key of |op|'s kernel for |target| (native::kernelKey).
std::string kernelKey(mlir::Operation *op, const X86Target &target);

/// Emits the kernel of |op| as MLIR (func.func @symbol ...) and sets |frame|: the micro-kernel if there is one,
/// otherwise the loop kernel. Reports errors at the op.
mlir::FailureOr<native::KernelModule> emitKernelModule(mlir::Operation *op, const X86Target &target,
                                                       llvm::StringRef symbol, KernelFrame &frame);

/// Emits the kernel of |op| and compiles it (native::compileKernel).
mlir::FailureOr<Kernel> compileKernel(mlir::Operation *op, const X86Target &target, llvm::StringRef symbol);

/// Registers the x86 dialect and kernel emission for every device op; both take effect when the device dialect loads.
void registerX86Kernels(mlir::DialectRegistry &registry);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_KERNELCOMPILER_H
