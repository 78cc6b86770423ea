//===- RoundedPower.h - Byte-valued powers by a polynomial ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Integer attention rounds its powers to at most 256 levels. A polynomial of a few instructions therefore suffices for
// all powers except those that lie near the middle of two integers.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_X86_ROUNDEDPOWER_H
#define TESSERA_CODEGEN_X86_ROUNDEDPOWER_H

#include "codegen/X86/X86KernelBuilder.h"

namespace tessera::x86 {

/// Bound of the difference between nearPower() and |levels| times the exact function.
inline constexpr float kPowerError = 0x1p-13f;

/// Computes the same number as emitNearPower().
float nearPower(float x, int64_t levels);

/// Emits |levels| times e^x for 16 |x| <= 0 that are not NaN; |levels| is at most 255. Requires AVX-512.
mlir::Value emitNearPower(KernelBuilder &kb, mlir::Value x, int64_t levels);

/// Returns, per lane, the larger of |worst| (null: none yet) and the distance of |value| from the nearest integer.
mlir::Value emitDistance(KernelBuilder &kb, mlir::Value value, mlir::Value worst);
/// Returns an i16 with one bit per lane of |worst|, set if an error of |error| could change the rounding of a value.
mlir::Value emitUnsure(KernelBuilder &kb, mlir::Value worst, float error);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_ROUNDEDPOWER_H
