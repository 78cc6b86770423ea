//===- X86KernelBuilder.h - The frame of an x86 kernel ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_X86KERNELBUILDER_H
#define TESSERA_CODEGEN_X86_X86KERNELBUILDER_H

#include "codegen/Kernels/KernelBuilder.h"
#include "codegen/X86/X86Target.h"
#include "device_dialect/IR/DeviceOps.h"

namespace tessera::x86 {

using namespace kernels;

/// The builder of x86 kernels. Micro-kernels use it to query properties of the machine that a VectorTarget does not
/// have.
struct X86KernelBuilder : KernelBuilder {
  X86KernelBuilder(const X86Target &x86, mlir::Operation *op, llvm::StringRef symbol)
      : KernelBuilder(x86.vectors(), op, symbol), x86(x86) {
    // The rounding instruction flushes subnormals. Ops that only move values keep them, as the reference does.
    bool sums = llvm::isa<device::ConvOp, device::MatMulOp, device::PoolOp, device::NormOp, device::AttentionOp>(op);
    hasBf16Rounding = x86.hasBf16Conversion() && !exact && sums;
  }

  const X86Target x86;
};

/// Returns the x86 target of |kb|, which must be an X86KernelBuilder, as are all builders of this family.
inline const X86Target &targetOf(const KernelBuilder &kb) { return static_cast<const X86KernelBuilder &>(kb).x86; }

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_X86KERNELBUILDER_H
