//===- KernelCompiler.h - Compiles a kernel's MLIR to an object file ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NATIVE_KERNELCOMPILER_H
#define TESSERA_CODEGEN_NATIVE_KERNELCOMPILER_H

#include "codegen/Kernels/KernelCache.h"
#include "codegen/Native/Machine.h"

namespace tessera::native {

using KernelModule = mlir::OwningOpRef<mlir::ModuleOp>;

/// Emits the kernel of |op| as MLIR (func.func @symbol ...) and sets |frame|. Reports errors at the op.
using KernelEmitter = llvm::function_ref<mlir::FailureOr<KernelModule>(mlir::Operation *op, llvm::StringRef symbol,
                                                                       kernels::KernelFrame &frame)>;

/// The KernelEmitter of a machine without kernels of its own: the loop kernel of |op| for |vectors|.
mlir::FailureOr<KernelModule> emitLoopKernel(mlir::Operation *op, const kernels::VectorTarget &vectors,
                                             llvm::StringRef symbol, kernels::KernelFrame &frame);

/// Returns a content hash (32 hex digits) of |op| and |machine|, the key of its kernel. The code also depends on the
/// compiler itself, which this key does not cover (see BuildIdentity.h).
std::string kernelKey(mlir::Operation *op, const Machine &machine);

/// Compiles the kernel of |op| that |emit| emits to a relocatable object of |machine|, which exports the function
/// |symbol|. Thread-safe for ops of one context if its multithreading is enabled.
mlir::FailureOr<kernels::Kernel> compileKernel(mlir::Operation *op, const Machine &machine, llvm::StringRef symbol,
                                               KernelEmitter emit);

/// Replaces the functions of |module| by one nested module for each op that has a kernel, named after the op, with tile
/// count and scratch bytes as attributes that begin with |dialect|. |lower|: in the LLVM dialect.
llvm::LogicalResult replaceByKernels(mlir::ModuleOp module, KernelEmitter emit, llvm::StringRef dialect, bool lower);

} // namespace tessera::native

#endif // TESSERA_CODEGEN_NATIVE_KERNELCOMPILER_H
