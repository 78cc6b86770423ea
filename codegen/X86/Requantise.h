//===- Requantise.h - From f32 to 8- and 16-bit integers, several at a time -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_REQUANTISE_H
#define TESSERA_CODEGEN_X86_REQUANTISE_H

#include "codegen/X86/KernelBuilder.h"

namespace tessera::x86 {

/// The end of a region that makes 8- or 16-bit integers: clamp(roundeven(value) + zero, low, high) on f32, then to i32
/// and to |type|.
/// Bounds and zero are integers, so clamping may as well come before rounding, and adding after the conversion, which
/// rounds by itself; the bits are the same.
struct Requantise {
  mlir::Value value; ///< in the region
  mlir::Type type;   ///< i8 or i16
  int64_t zero = 0, low = 0, high = 0;

  int64_t lowest() const { return high > 127 ? 0 : -128; }
  /// [low, high] lies in the values of i8 or of ui8.
  bool fitsBytes() const { return type.isInteger(8) && low >= lowest() && high <= lowest() + 255; }
};

/// The requantisation that ends in |result|, a value of a scalar region; nothing for other values.
std::optional<Requantise> matchRequantise(mlir::Value result);

/// |end|'s type of |value|, f32 in registers (a scalar or a vector).
mlir::Value emitRequantise(KernelBuilder &kb, const Requantise &end, mlir::Value value);

/// The same for four registers of f32 that hold, one after the other, 16 channels of 4 (AVX-512), 2 (AVX2) or 1
/// positions; one register of bytes in the same order. Needs fitsBytes().
mlir::Value emitRequantise4(KernelBuilder &kb, const Requantise &end, llvm::ArrayRef<mlir::Value> values);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_REQUANTISE_H
