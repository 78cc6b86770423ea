//===- Micro.h - Entry points of the micro-kernel emitters ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_MICRO_H
#define TESSERA_CODEGEN_X86_MICRO_H

#include "codegen/Kernels/AttentionShape.h"
#include "codegen/X86/X86KernelBuilder.h"

namespace tessera::device {
class ConvOp;
class MatMulOp;
class RecurrentOp;
} // namespace tessera::device

namespace tessera::x86 {

/// Emits the micro-kernel of |op|, if there is one for it: of convolutions, matrix products and recurrent ops with
/// packed weights, of products of two computed matrices, of attention. False: the kernel of loops does it.
mlir::FailureOr<bool> emitMicroKernel(mlir::Operation *op, X86KernelBuilder &kb);

llvm::LogicalResult emitMicroConv(device::ConvOp op, KernelBuilder &kb);
llvm::LogicalResult emitMicroMatMul(device::MatMulOp op, KernelBuilder &kb);
llvm::LogicalResult emitMicroRecurrent(device::RecurrentOp op, KernelBuilder &kb);

/// Whether emitMicroMatMul() takes |op| though its right side is not packed.
bool hasMicroMatMul(device::MatMulOp op);

/// Attention on register tiles; every operand is f32.
void emitMicroAttention(const AttentionShape &shape);
/// The same of bytes.
void emitMicroIntegerAttention(const AttentionShape &shape);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_MICRO_H
