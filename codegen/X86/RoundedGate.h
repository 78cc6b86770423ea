//===- RoundedGate.h - Byte-valued activations by polynomials ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// GELU and SiLU are x g(x) with g(-x) = 1 - g(x), which is max(x, 0) + tail(|x|), where tail(t) = -t g(-t) tends to 0.
// If the result is rounded to a byte, an error of some thousand ulp rarely matters. So a table of polynomials computes
// the tail, in a third of the instructions of the exact function. Only results so near the middle of two integers that
// they might round to the wrong one are computed again by the exact function. The bytes therefore equal the exact ones.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_X86_ROUNDEDGATE_H
#define TESSERA_CODEGEN_X86_ROUNDEDGATE_H

#include "codegen/Kernels/Requantise.h"
#include "codegen/X86/X86KernelBuilder.h"

#include "mlir/IR/Region.h"
#include <array>
#include <vector>

namespace tessera::x86 {

enum class GateKind { Gelu, GeluTanh, Silu };

/// Approximates |factor| tail(t) for t >= 0 by one polynomial of t per piece. The piece of t is round(t *
/// piecesPerOne); beyond |reach|, the value at |reach| is used.
struct GateTable {
  static constexpr int64_t kPieces = 16;

  /// Returns nullopt if no table of |kind| is accurate enough for |factor|.
  static std::optional<GateTable> make(GateKind kind, float factor);

  float factor = 1, reach = 0, piecesPerOne = 0;
  std::vector<std::array<float, kPieces>> coefficients; ///< one array per power of t, the highest first
  /// Bound of the difference between value() and the exact function (rounded step by step, then divided by 1 /
  /// |factor|), for exact values in [-512, 512].
  float error = 0;

  /// Computes the same number as the emitted instructions.
  float value(float x) const;

private:
  float tail(float t) const;
  void fit(double (*function)(double), int64_t degree);
  double worst(double (*function)(double)) const;
};

/// An activation at the end of an epilogue whose results are bytes.
class RoundedGate {
public:
  /// Returns nullopt if |epilogue| does not end in such an activation, or if |target| lacks 16-entry register tables.
  static std::optional<RoundedGate> match(mlir::Region &epilogue, const X86Target &target);

  /// Returns the value of the epilogue that is the activation's argument x.
  mlir::Value argument() const { return x; }
  /// Emits the bytes of 16 |x|s. Updates |worst|, initially null: per lane, the largest distance from an integer so
  /// far.
  mlir::Value emit(KernelBuilder &kb, mlir::Value x, mlir::Value &worst) const;
  /// Returns a bound of the error of the value that is rounded.
  float error() const { return table.error; }

private:
  RoundedGate(Requantise end, mlir::Value x, GateTable table) : end(end), x(x), table(std::move(table)) {}

  Requantise end;
  mlir::Value x;
  GateTable table;
};

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_ROUNDEDGATE_H
