//===- KernelInterface.h - How a device op becomes x86 code -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_KERNELINTERFACE_H
#define TESSERA_CODEGEN_X86_KERNELINTERFACE_H

#include "codegen/X86/KernelBuilder.h"
#include "mlir/IR/OpDefinition.h"

#include "codegen/X86/KernelInterface.h.inc"

namespace tessera::x86 {

/// Attaches KernelInterface to every device op when the device dialect is loaded.
void registerX86Kernels(mlir::DialectRegistry &registry);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_KERNELINTERFACE_H
