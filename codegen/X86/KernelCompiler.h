//===- KernelCompiler.h - Compiles a kernel's MLIR to an object file ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_KERNELCOMPILER_H
#define TESSERA_CODEGEN_X86_KERNELCOMPILER_H

#include "codegen/Kernels/KernelCache.h"
#include "codegen/X86/X86KernelBuilder.h"

namespace tessera::x86 {

/// Returns a content hash (32 hex digits) of |op| and |target|, the key of its kernel. The code also depends on the
/// compiler itself, which this key does not cover (see BuildIdentity.h).
std::string kernelKey(mlir::Operation *op, const X86Target &target);

/// Emits the kernel of |op| as MLIR (func.func @symbol ...) and sets |frame|. Reports errors at the op.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> emitKernelModule(mlir::Operation *op, const X86Target &target,
                                                                    llvm::StringRef symbol, KernelFrame &frame);

/// Emits the kernel of |op| and compiles it to a relocatable object that exports the function |symbol|. Thread-safe for
/// ops of one context if its multithreading is enabled.
mlir::FailureOr<Kernel> compileKernel(mlir::Operation *op, const X86Target &target, llvm::StringRef symbol);

/// Registers the x86 dialect and kernel emission for every device op; both take effect when the device dialect loads.
void registerX86Kernels(mlir::DialectRegistry &registry);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_KERNELCOMPILER_H
