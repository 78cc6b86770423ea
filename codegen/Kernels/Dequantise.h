//===- Dequantise.h - From 8- and 16-bit integers to f32 --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_DEQUANTISE_H
#define TESSERA_CODEGEN_KERNELS_DEQUANTISE_H

#include "codegen/Kernels/KernelBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

namespace tessera::kernels {

/// (q - zero) * scale of |op| as one fused product, where |zero| is a power of two: its product with the scale is
/// exact then, so that the bits are those of the subtraction in integers. Null for other products and where |kb|'s
/// target does not fuse.
mlir::Value emitDequantised(KernelBuilder &kb, mlir::arith::MulFOp op, const mlir::IRMapping &mapping);

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_DEQUANTISE_H
