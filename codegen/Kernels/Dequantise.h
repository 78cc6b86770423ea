//===- Dequantise.h - From 8- and 16-bit integers to f32 --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_DEQUANTISE_H
#define TESSERA_CODEGEN_KERNELS_DEQUANTISE_H

#include "codegen/Kernels/KernelBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

namespace tessera::kernels {

/// Emits |op|, (q - zero) * scale, as one fused multiply-add if |zero| is a power of two: |zero| * scale is then exact,
/// so the result has the same bits as the integer subtraction. Returns null if |op| does not have this form or |kb|'s
/// target does not have FMA.
mlir::Value emitDequantised(KernelBuilder &kb, mlir::arith::MulFOp op, const mlir::IRMapping &mapping);

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_DEQUANTISE_H
