//===- RequantiseBytes.h - From f32 to bytes, four registers at a time -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_REQUANTISEBYTES_H
#define TESSERA_CODEGEN_X86_REQUANTISEBYTES_H

#include "codegen/Kernels/Requantise.h"
#include "codegen/X86/X86KernelBuilder.h"

namespace tessera::x86 {

/// The integers of |end|, as emitRequantise has them, for four registers of f32 that hold, one after the other, 16
/// channels of 4 (AVX-512), 2 (AVX2) or 1 positions; one register of bytes in the same order. Needs fitsBytes().
mlir::Value emitRequantise4(KernelBuilder &kb, const Requantise &end, llvm::ArrayRef<mlir::Value> values);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_REQUANTISEBYTES_H
