//===- Micro.h - Entry points of the micro-kernel emitters ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_MICRO_H
#define TESSERA_CODEGEN_X86_MICRO_H

#include "codegen/X86/KernelBuilder.h"

namespace tessera::device {
class ConvOp;
class MatMulOp;
} // namespace tessera::device

namespace tessera::x86 {

/// Emit the kernel of an op whose weights are packed. Conv.cpp and MatMul.cpp call these for ops with
/// `packed` (or a conv algorithm other than `generic`) and emit the naive kernel for all others.
llvm::LogicalResult emitMicroConv(device::ConvOp op, KernelBuilder &kb);
llvm::LogicalResult emitMicroMatMul(device::MatMulOp op, KernelBuilder &kb);

/// Whether emitMicroMatMul() takes |op| though its right side is not packed.
bool hasMicroMatMul(device::MatMulOp op);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_MICRO_H
