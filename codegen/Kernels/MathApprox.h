//===- MathApprox.h - Math functions as instructions ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Generated code may not call libm. exp, log, tanh and erf on f32 are single-precision polynomials within 2 ulp; all
// other f32 functions are computed in f64 and rounded once. Infinities, NaN and signed zeros are preserved, and
// arguments may have any magnitude (FarArguments.h). docs/numerics.md lists the errors, also for f64.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_KERNELS_MATHAPPROX_H
#define TESSERA_CODEGEN_KERNELS_MATHAPPROX_H

#include "codegen/Kernels/KernelBuilder.h"
#include "mlir/IR/IRMapping.h"

namespace tessera::kernels {

/// Emits |op| (of arith or math) on |operands| (register types) with instructions that exist on the target. Returns
/// null if the op itself has an instruction. Integer division by zero gives a value instead of a trap.
mlir::Value expandMath(KernelBuilder &kb, mlir::Operation *op, mlir::ValueRange operands);

/// Emits a formula that ends in |op| (a sigmoid, a requantisation) faster than op by op; |mapping| holds the values of
/// the region so far. Returns null if |op| does not end a known formula.
mlir::Value expandPattern(KernelBuilder &kb, mlir::Operation &op, const mlir::IRMapping &mapping);

/// Emits x * y + z, fused if the target has FMA.
mlir::Value emitFma(KernelBuilder &kb, mlir::Value x, mlir::Value y, mlir::Value z);
/// Emits x * y + z in f32, rounded once on every target.
mlir::Value emitExactFma(KernelBuilder &kb, mlir::Value x, mlir::Value y, mlir::Value z);
/// Emits x * y + sum for floats (fused if possible) or integers (wrapping).
mlir::Value emitMultiplyAdd(KernelBuilder &kb, mlir::Value x, mlir::Value y, mlir::Value sum);
/// Emits e^x for f32 or f64, scalar or vector.
mlir::Value emitExp(KernelBuilder &kb, mlir::Value x);
/// Emits the natural logarithm of f32 or f64.
mlir::Value emitLog(KernelBuilder &kb, mlir::Value x);
/// Emits e^x for x <= 0. In f32, results below the normal numbers are 0, because subnormals slow down their readers.
mlir::Value emitExpOfNegative(KernelBuilder &kb, mlir::Value x);
/// Emits erf of f32 within 7e-5, a third of the work, for results that are rounded to bf16.
mlir::Value emitErfForBf16(KernelBuilder &kb, mlir::Value x);
/// Emits 1 / (1 + e^-x) for f32.
mlir::Value emitSigmoid(KernelBuilder &kb, mlir::Value x);
mlir::Value emitTanh(KernelBuilder &kb, mlir::Value x);

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_MATHAPPROX_H
