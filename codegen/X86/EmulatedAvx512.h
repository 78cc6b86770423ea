//===- EmulatedAvx512.h - Runs AVX-512 kernels on AVX2 machines -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// For tests: a machine without AVX-512 checks the loops, tiles and tails of AVX-512 kernels. LLVM splits 512-bit
// vectors into 256-bit ones by itself; only the instructions that kernels name have to be replaced.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_X86_EMULATEDAVX512_H
#define TESSERA_CODEGEN_X86_EMULATEDAVX512_H

#include "codegen/Native/Machine.h"
#include "codegen/X86/X86Target.h"

namespace tessera::x86 {

/// Replaces the AVX-512 intrinsics of |kernel| by IR for AVX2. Returns false for kernels with inline assembly, i.e.
/// register tiles, and for the rounded powers. Ends the program if an intrinsic is unknown, so that none is skipped.
bool emulateAvx512(llvm::Module &kernel);

/// Returns a machine with AVX2 that runs the kernels of |target|, which has AVX-512, by emulateAvx512().
native::Machine emulatedMachineOf(const X86Target &target);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_EMULATEDAVX512_H
