//===- Contract.h - Kernel contract notes -----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NATIVE_CONTRACT_H
#define TESSERA_CODEGEN_NATIVE_CONTRACT_H

#include "codegen/Kernels/KernelBuilder.h"
#include "llvm/IR/Module.h"

namespace tessera::native {

/// Returns the alignment in bytes that the kernel of |op| requires of argument |index| (operands first, then results).
/// Kernels may read an argument aligned to BM_ALIGNMENT up to the end of its last cache line, because they read
/// per-channel numbers in whole blocks. Any other argument is aligned to its element only, and kernels touch no byte
/// outside it.
uint32_t argumentAlignment(mlir::Operation *op, unsigned index);

/// Adds the ELF note of bmodel/kernel_contract.h to |module|, which defines the kernel of |op|. The note states that
/// operands are read and results written, the size in bytes of each, and the |cpuFeatures| (bmodel/cpu_features.inc)
/// that the code requires. The loader compares it with every launch.
void addContract(llvm::Module &module, mlir::Operation *op, uint64_t cpuFeatures, const kernels::KernelFrame &frame);

} // namespace tessera::native

#endif // TESSERA_CODEGEN_NATIVE_CONTRACT_H
