//===- X86Model.h - Speed of x86 variants -----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_X86MODEL_H
#define TESSERA_CODEGEN_X86_X86MODEL_H

#include "codegen/Native/CpuModel.h"
#include "codegen/X86/X86Target.h"

namespace tessera::x86 {

/// The core of every variant, by which register tiles are chosen.
inline constexpr native::CoreModel kCore;

/// Returns the speed of |variant|.
native::CpuModel modelOf(const X86Target &variant);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_X86MODEL_H
