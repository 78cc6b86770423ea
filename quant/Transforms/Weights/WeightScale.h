//===- WeightScale.h - Weight scales with the least squared error --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_QUANT_TRANSFORMS_WEIGHTS_WEIGHTSCALE_H
#define TESSERA_QUANT_TRANSFORMS_WEIGHTS_WEIGHTSCALE_H

#include "llvm/ADT/ArrayRef.h"

namespace tessera::quant {

/// Returns a scale for integers of |bits| bits, in [-2^(bits - 1), 2^(bits - 1) - 1], that represent the finite
/// |values|: the candidate with the least squared error. It may be negative.
float weightScale(llvm::ArrayRef<float> values, int bits);

} // namespace tessera::quant

#endif // TESSERA_QUANT_TRANSFORMS_WEIGHTS_WEIGHTSCALE_H
