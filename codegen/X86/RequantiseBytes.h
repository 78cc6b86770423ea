//===- RequantiseBytes.h - Converts four registers of f32 to bytes ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_REQUANTISEBYTES_H
#define TESSERA_CODEGEN_X86_REQUANTISEBYTES_H

#include "codegen/Kernels/Requantise.h"
#include "codegen/X86/X86KernelBuilder.h"

namespace tessera::x86 {

/// Requantises four registers of f32 by |end|, like emitRequantise(). The registers hold, one after another, 16
/// channels of 4 (AVX-512), 2 (AVX2) or 1 positions. Returns one register of bytes in the same order. Requires
/// end.fitsBytes().
mlir::Value emitRequantise4(KernelBuilder &kb, const Requantise &end, llvm::ArrayRef<mlir::Value> values);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_REQUANTISEBYTES_H
