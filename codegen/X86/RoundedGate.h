//===- RoundedGate.h - Activations that become bytes, by polynomials -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// GELU and its kin are x g(x) with g(-x) = 1 - g(x), so max(x, 0) + tail(|x|), where tail(t) = -t g(-t) dies away. Of a
// result that is rounded to a byte some thousand ulp do not matter: the tail comes from a table of polynomials, in a
// third of the instructions of the exact function, and only where the result lies so near to the middle between two
// integers that it might round to the other one, the exact function has to decide. So the bytes are the exact ones.
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

/// |factor| tail(t) for t >= 0: a polynomial of t for each piece, the piece of t being round(t * piecesPerOne), and
/// that of what lies beyond |reach| that of |reach|.
struct GateTable {
  static constexpr int64_t kPieces = 16;

  /// Nothing where no table of the kind is near enough for |factor|.
  static std::optional<GateTable> make(GateKind kind, float factor);

  float factor = 1, reach = 0, piecesPerOne = 0;
  std::vector<std::array<float, kPieces>> coefficients; ///< that of the highest power first
  /// How far value() may be from the exact function, rounded step by step and then divided by 1 / |factor|, where that
  /// is in [-512, 512].
  float error = 0;

  /// What the instructions compute.
  float value(float x) const;

private:
  float tail(float t) const;
  void fit(double (*function)(double), int64_t degree);
  double worst(double (*function)(double)) const;
};

/// A gate at the end of an epilogue, whose results are bytes.
class RoundedGate {
public:
  /// Nothing where |epilogue| ends otherwise, or where the target has no table of 16 numbers in a register.
  static std::optional<RoundedGate> match(mlir::Region &epilogue, const X86Target &target);

  /// The value of the epilogue that is x.
  mlir::Value argument() const { return x; }
  /// The bytes of 16 |x|s; |worst|, null at first, becomes the largest distance of a lane from its integer so far.
  mlir::Value emit(KernelBuilder &kb, mlir::Value x, mlir::Value &worst) const;
  /// How far what is rounded may be from the exact function's.
  float error() const { return table.error; }

private:
  RoundedGate(Requantise end, mlir::Value x, GateTable table) : end(end), x(x), table(std::move(table)) {}

  Requantise end;
  mlir::Value x;
  GateTable table;
};

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_ROUNDEDGATE_H
