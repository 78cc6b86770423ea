//===- RoundedPower.h - Powers that become few integers, by a polynomial -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// The powers of an attention of integers are rounded to a byte's steps, so a polynomial of a few instructions does for
// all but those that lie near to the middle of two integers.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_X86_ROUNDEDPOWER_H
#define TESSERA_CODEGEN_X86_ROUNDEDPOWER_H

#include "codegen/X86/X86KernelBuilder.h"

namespace tessera::x86 {

/// How far nearPower() may be from |levels| times the exact function's result.
inline constexpr float kPowerError = 0x1p-13f;

/// What emitNearPower() computes.
float nearPower(float x, int64_t levels);

/// e^x times |levels|, at most 255, of 16 |x| <= 0 that are no NaN. For AVX-512.
mlir::Value emitNearPower(KernelBuilder &kb, mlir::Value x, int64_t levels);

/// The larger of |worst| (null: nothing) and the distances of 16 |values| from their integers.
mlir::Value emitDistance(KernelBuilder &kb, mlir::Value value, mlir::Value worst);
/// A bit for each lane of |worst| that is too near to the middle of two integers for values that are off by |error|.
mlir::Value emitUnsure(KernelBuilder &kb, mlir::Value worst, float error);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_ROUNDEDPOWER_H
