//===- FloatFlags.h - Rounding, flushing and saturation flags -------------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_REGRESSION_CUDA_MACHINE_FLOATFLAGS_H
#define TESSERA_REGRESSION_CUDA_MACHINE_FLOATFLAGS_H

#include "regression/cuda/machine/Decoder.h"

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

#endif // TESSERA_REGRESSION_CUDA_MACHINE_FLOATFLAGS_H
