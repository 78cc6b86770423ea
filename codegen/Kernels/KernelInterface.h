//===- KernelInterface.h - How a device op becomes loops -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_KERNELINTERFACE_H
#define TESSERA_CODEGEN_KERNELS_KERNELINTERFACE_H

#include "codegen/Kernels/KernelBuilder.h"
#include "mlir/IR/OpDefinition.h"

#include "codegen/Kernels/KernelInterface.h.inc"

namespace tessera::kernels {

/// Attaches KernelInterface to every device op when the device dialect is loaded.
void registerKernels(mlir::DialectRegistry &registry);

/// Content address of the kernel of |op| for |machine|: hash of op name, attributes, regions, operand and result types;
/// locations, addresses and names do not enter. 32 hex digits.
std::string kernelKey(mlir::Operation *op, llvm::StringRef machine);

/// Emits the loops of |kb|'s op. Failure emits an error at the op.
llvm::LogicalResult emitLoops(KernelBuilder &kb);

/// The module of the kernel that was emitted into |kb| (func.func @symbol), and its frame. An error at the op where it
/// is malformed.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> takeKernel(KernelBuilder &kb, KernelFrame &frame);

/// Lowers |module| (arith, math, vector, scf, cf, func, llvm) to the llvm dialect.
llvm::LogicalResult lowerKernelModule(mlir::ModuleOp module);

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_KERNELINTERFACE_H
