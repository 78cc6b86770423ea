//===- FarArguments.h - Exact argument reduction ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_FARARGUMENTS_H
#define TESSERA_CODEGEN_KERNELS_FARARGUMENTS_H

#include "codegen/Kernels/FloatFormula.h"

namespace tessera::kernels {

/// A reduced argument: x = quadrant * pi / 2 + rest, with the quadrant modulo 4 and |rest| <= pi / 4.
struct HalfPi {
  Int quadrant;
  Float rest;
};

/// Reduces an f64 of any magnitude; NaN and infinities give a rest of NaN. |isSingle|: x is a widened f32. Magnitudes
/// of 2^20 and more take a slow path, which runs only if some lane needs it.
HalfPi reduceByHalfPi(Float x, bool isSingle);

/// Computes C's fmod of f64, exact for any quotient, with the sign of x. |isSingle|: x and y are widened f32.
Float remainder(Float x, Float y, bool isSingle);

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_FARARGUMENTS_H
