//===- KernelCompiler.h - From a kernel's MLIR to an object file -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_KERNELCOMPILER_H
#define TESSERA_CODEGEN_X86_KERNELCOMPILER_H

#include "codegen/Kernels/KernelCache.h"
#include "codegen/X86/X86KernelBuilder.h"

namespace tessera::x86 {

/// Content address of the kernel of |op| for |target|. What the compiler makes of it depends on the compiler, too
/// (BuildIdentity.h). 32 hex digits.
std::string kernelKey(mlir::Operation *op, const X86Target &target);

/// Emits the kernel of |op| as MLIR (func.func @symbol ...). Errors are emitted at the op.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> emitKernelModule(mlir::Operation *op, const X86Target &target,
                                                                    llvm::StringRef symbol, KernelFrame &frame);

/// Emits the kernel of |op| and compiles it to a relocatable object. |symbol| names the exported function. Thread-safe
/// for ops of one context with multithreading enabled.
mlir::FailureOr<Kernel> compileKernel(mlir::Operation *op, const X86Target &target, llvm::StringRef symbol);

/// Lets every device op emit its kernel when the device dialect is loaded.
void registerX86Kernels(mlir::DialectRegistry &registry);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_KERNELCOMPILER_H
