//===- MathApprox.h - Math functions as instructions ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Generated code may not call libm. exp, log, tanh and erf on f32 are single-precision polynomials
// within 2 ulp; all other functions of f32 are computed in f64 and rounded once. Infinities, NaN and
// signed zeros are kept, and arguments may have any size (FarArguments.h). docs/numerics.md lists the
// errors, those of f64 too.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_KERNELS_MATHAPPROX_H
#define TESSERA_CODEGEN_KERNELS_MATHAPPROX_H

#include "codegen/Kernels/KernelBuilder.h"
#include "mlir/IR/IRMapping.h"

namespace tessera::kernels {

/// Emits what |op| (of arith or math) computes from |operands| (register types) by instructions that
/// exist on the target; null when the op itself has an instruction. Integer division by zero gives
/// a value instead of a trap.
mlir::Value expandMath(KernelBuilder &kb, mlir::Operation *op, mlir::ValueRange operands);

/// Emits the formula that ends in |op| (a sigmoid, a requantisation) faster than op by op; |mapping|: the values of the
/// region so far. Null where there is none.
mlir::Value expandPattern(KernelBuilder &kb, mlir::Operation &op, const mlir::IRMapping &mapping);

/// x * y + z: fused where the target has FMA.
mlir::Value emitFma(KernelBuilder &kb, mlir::Value x, mlir::Value y, mlir::Value z);
/// x * y + sum for floats (fused where possible) or integers (wrapping).
mlir::Value emitMultiplyAdd(KernelBuilder &kb, mlir::Value x, mlir::Value y, mlir::Value sum);
/// e^x for f32 or f64, scalar or vector.
mlir::Value emitExp(KernelBuilder &kb, mlir::Value x);
/// Natural logarithm of f32 or f64.
mlir::Value emitLog(KernelBuilder &kb, mlir::Value x);
/// e^x for x <= 0; of f32, results below the normal numbers are 0 (subnormals slow whatever reads them).
mlir::Value emitExpOfNegative(KernelBuilder &kb, mlir::Value x);
/// erf of f32 within 7e-5, for results that become bf16: a third of the work.
mlir::Value emitErfForBf16(KernelBuilder &kb, mlir::Value x);
/// For f32: 1 / (1 + e^-x).
mlir::Value emitSigmoid(KernelBuilder &kb, mlir::Value x);
mlir::Value emitTanh(KernelBuilder &kb, mlir::Value x);

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_MATHAPPROX_H
