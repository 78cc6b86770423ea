//===- Passes.h - Layouts and packed weights of x86 -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_TRANSFORMS_PASSES_H
#define TESSERA_CODEGEN_X86_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"

namespace tessera::x86 {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "codegen/X86/Transforms/Passes.h.inc"

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_TRANSFORMS_PASSES_H
