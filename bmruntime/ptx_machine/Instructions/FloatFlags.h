//===- FloatFlags.h - Rounding, flushing and saturation flags -------------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_BMRUNTIME_PTX_MACHINE_INSTRUCTIONS_FLOATFLAGS_H
#define TESSERA_BMRUNTIME_PTX_MACHINE_INSTRUCTIONS_FLOATFLAGS_H

#include "bmruntime/ptx_machine/Frontend/Decoder.h"

namespace ptx {

enum FloatFlags : uint32_t {
  kFloatRounding = 3, ///< as in MXCSR: nearest, down, up, to zero
  kFloatFlush = 4,
  kFloatSaturate = 8,
  kFloatDouble = 16
};

/// Consumes the modifiers .rn .rm .rp .rz .ftz .sat and makes the instruction obey them. Sets |flags| of the
/// instruction.
void wrapFloat(Decoding &d, const std::string &type, bool takesRounding);

} // namespace ptx

#endif // TESSERA_BMRUNTIME_PTX_MACHINE_INSTRUCTIONS_FLOATFLAGS_H
