//===- X86Model.cpp - Speed of x86 variants -------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/X86Model.h"

#include "llvm/Support/ErrorHandling.h"

namespace tessera::x86 {

/// Returns the rates at about 4 GHz with the instructions that docs/numerics.md lists. A type that a variant does not
/// support costs as much as its emulation. WINOGRAD is f32 in 3x3 convolutions, measured next to direct convolutions.
static codegen::MachineModel ratesOf(const X86Target &variant) {
  switch (variant.isa) {
  case Isa::Avx512: // vpdpbusd, vpdpwssd, vfmadd on 512 bits; tdpbusd, tdpbf16ps limited by loads
    if (variant.amx) {
      return {{{"INT8", 2000}, {"INT16", 240}, {"BF16", 1000}, {"F16", 110}, {"F32", 120}, {"WINOGRAD", 330}}, 20};
    }
    return {{{"INT8", 480},
             {"INT16", 240},
             {"BF16", variant.bf16 ? 240.0 : 110.0},
             {"F16", 110},
             {"F32", 120},
             {"WINOGRAD", 330}},
            20};
  case Isa::Avx2: // vpmaddwd of bytes widened to words; fma
    return {{{"INT8", 100}, {"INT16", 110}, {"BF16", 55}, {"F16", 55}, {"F32", 60}, {"WINOGRAD", 165}}, 20};
  case Isa::V2: // pmaddwd; mulps and addps
    return {{{"INT8", 45}, {"INT16", 50}, {"BF16", 14}, {"F16", 14}, {"F32", 15}, {"WINOGRAD", 41}}, 15};
  }
  llvm_unreachable("covered switch");
}

native::CpuModel modelOf(const X86Target &variant) { return {.core = kCore, .rates = ratesOf(variant)}; }

} // namespace tessera::x86
