//===- FarArguments.h - Exact reduction of any argument ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_FARARGUMENTS_H
#define TESSERA_CODEGEN_KERNELS_FARARGUMENTS_H

#include "codegen/Kernels/FloatFormula.h"

namespace tessera::kernels {

/// x = quadrant * pi / 2 + rest, the quadrant modulo 4 and |rest| <= pi / 4.
struct HalfPi {
  Int quadrant;
  Float rest;
};

/// Reduces an f64 of any size; NaN and infinities have a rest of NaN. |isSingle|: x is an f32, widened. Lanes beyond
/// 2^20 take a slow path, which runs only if there are such lanes.
HalfPi reduceByHalfPi(Float x, bool isSingle);

/// C's fmod of f64, exact for any quotient, with the sign of x. |isSingle|: x and y are f32, widened.
Float remainder(Float x, Float y, bool isSingle);

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_FARARGUMENTS_H
