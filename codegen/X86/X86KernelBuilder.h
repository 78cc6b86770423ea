//===- X86KernelBuilder.h - The frame of an x86 kernel ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_X86KERNELBUILDER_H
#define TESSERA_CODEGEN_X86_X86KERNELBUILDER_H

#include "codegen/Kernels/KernelBuilder.h"
#include "codegen/X86/X86Target.h"
#include "device_dialect/IR/DeviceOps.h"

namespace tessera::x86 {

using namespace kernels;

/// What the family's own kernels, the micro-kernels, are emitted into: they ask for more of the machine than its
/// vectors.
struct X86KernelBuilder : KernelBuilder {
  X86KernelBuilder(const X86Target &x86, mlir::Operation *op, llvm::StringRef symbol)
      : KernelBuilder(x86.vectors(), op, symbol), x86(x86) {
    // What sums no products keeps subnormals, as the reference does: a gather moves them.
    bool sums = llvm::isa<device::ConvOp, device::MatMulOp, device::PoolOp, device::NormOp, device::AttentionOp>(op);
    hasBf16Rounding = x86.hasBf16Conversion() && !exact && sums;
  }

  const X86Target x86;
};

/// The machine of a builder, of which this family makes no other than X86KernelBuilders.
inline const X86Target &targetOf(const KernelBuilder &kb) { return static_cast<const X86KernelBuilder &>(kb).x86; }

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_X86KERNELBUILDER_H
