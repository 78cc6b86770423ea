//===- Micro.h - Entry points of the micro-kernel emitters ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_MICRO_H
#define TESSERA_CODEGEN_X86_MICRO_H

#include "codegen/Kernels/AttentionShape.h"
#include "codegen/X86/X86KernelBuilder.h"

namespace tessera::device {
class BlockMatMulOp;
class ConvOp;
class MatMulOp;
class RecurrentOp;
} // namespace tessera::device

namespace tessera::x86 {

/// Emits the micro-kernel of |op| if there is one: for convolutions, matmuls and recurrent ops with packed weights, for
/// matmuls of two activations, and for attention. Returns false if the generic loop kernel must compute the op, and
/// failure after reporting an error.
mlir::FailureOr<bool> emitMicroKernel(mlir::Operation *op, X86KernelBuilder &kb);

llvm::LogicalResult emitMicroBlockMatMul(device::BlockMatMulOp op, KernelBuilder &kb);
llvm::LogicalResult emitMicroConv(device::ConvOp op, KernelBuilder &kb);
llvm::LogicalResult emitMicroMatMul(device::MatMulOp op, KernelBuilder &kb);
llvm::LogicalResult emitMicroRecurrent(device::RecurrentOp op, KernelBuilder &kb);

/// Returns true if emitMicroMatMul() supports |op| although its right side is not packed.
bool hasMicroMatMul(device::MatMulOp op);

/// Emits attention on register tiles; every operand is f32, or q, k and v are bf16.
void emitMicroAttention(const AttentionShape &shape);
/// Emits attention of 8-bit integers on register tiles.
void emitMicroIntegerAttention(const AttentionShape &shape);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_MICRO_H
