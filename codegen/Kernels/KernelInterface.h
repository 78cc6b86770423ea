//===- KernelInterface.h - Lowering device ops to loops ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_KERNELINTERFACE_H
#define TESSERA_CODEGEN_KERNELS_KERNELINTERFACE_H

#include "codegen/Kernels/KernelBuilder.h"
#include "mlir/IR/OpDefinition.h"

#include "codegen/Kernels/KernelInterface.h.inc"

namespace tessera::kernels {

/// Attaches KernelInterface to every device op when the device dialect is loaded.
void registerKernels(mlir::DialectRegistry &registry);

/// Returns the content address of |op|'s kernel for |machine|: 32 hex digits that hash op name, attributes, regions,
/// operand and result types, but not locations, addresses or names.
std::string kernelKey(mlir::Operation *op, llvm::StringRef machine);

/// Says why an op with open sizes has no kernel, and what the user can do.
inline constexpr char kOpenSizesText[] =
    "has sizes that are known at run time only, which its kernel does not support; "
    "compile with fixed sizes (--input_shapes or --dims name=number)";

/// Emits the loops of |kb|'s op. On failure reports an error at the op.
llvm::LogicalResult emitLoops(KernelBuilder &kb);

/// Returns the module of the kernel that was emitted into |kb| (func.func @symbol) and sets |frame|. Reports an error
/// at the op if the module is malformed.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> takeKernel(KernelBuilder &kb, KernelFrame &frame);

/// Lowers |module| (arith, math, vector, scf, cf, func, llvm) to the llvm dialect.
llvm::LogicalResult lowerKernelModule(mlir::ModuleOp module);

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_KERNELINTERFACE_H
