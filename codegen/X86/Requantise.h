//===- Requantise.h - From f32 to 8- and 16-bit integers, several at a time -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_REQUANTISE_H
#define TESSERA_CODEGEN_X86_REQUANTISE_H

#include "codegen/X86/KernelBuilder.h"
#include "device_dialect/IR/Requantise.h"

namespace tessera::x86 {

using device::matchRequantise;
using device::Requantise;

/// |end|'s type of |value|, f32 in registers (a scalar or a vector).
mlir::Value emitRequantise(KernelBuilder &kb, const Requantise &end, mlir::Value value);

/// The same for four registers of f32 that hold, one after the other, 16 channels of 4 (AVX-512), 2 (AVX2) or 1
/// positions; one register of bytes in the same order. Needs fitsBytes().
mlir::Value emitRequantise4(KernelBuilder &kb, const Requantise &end, llvm::ArrayRef<mlir::Value> values);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_REQUANTISE_H
