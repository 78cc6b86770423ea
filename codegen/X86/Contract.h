//===- Contract.h - What a kernel's code says it relies on ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_CONTRACT_H
#define TESSERA_CODEGEN_X86_CONTRACT_H

#include "codegen/X86/X86KernelBuilder.h"
#include "llvm/IR/Module.h"

namespace tessera::x86 {

/// Bytes that the kernel of |op| wants argument |index|, of operands and then results, aligned to. What is aligned to
/// BM_ALIGNMENT may be read to the end of its last line: numbers of channels, a block at a time. Anything else lies
/// anywhere, and no byte around it is touched.
uint32_t argumentAlignment(mlir::Operation *op, unsigned index);

/// Adds the note of bmodel/kernel_contract.h to |module|, which defines the kernel of |op|: operands are read, results
/// written, each as large as its type. The loader compares it with every launch.
void addContract(llvm::Module &module, mlir::Operation *op, const X86Target &target, const KernelFrame &frame);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_CONTRACT_H
