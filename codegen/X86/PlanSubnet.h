//===- PlanSubnet.h - A placed function as the steps of a subnet -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_PLANSUBNET_H
#define TESSERA_CODEGEN_X86_PLANSUBNET_H

#include "codegen/Kernels/KernelSet.h"
#include "codegen/Target/ConstantSection.h"
#include "codegen/Target/Target.h"

namespace tessera::x86 {

/// Whether |op| is computed by a kernel: not a constant, a view or a terminator.
bool needsKernel(mlir::Operation *op);

/// The steps of a function whose ops' kernels are in |kernels|, and its tensors, which lie at the ops' addresses.
/// Errors are emitted at the ops. |secondsOf|: the estimate that a step tells, if any.
llvm::LogicalResult planSubnet(mlir::func::FuncOp function, const kernels::KernelSet &kernels,
                               codegen::ConstantSection &constants, std::function<double(mlir::Operation *)> secondsOf,
                               codegen::SubnetProgram &planned);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_PLANSUBNET_H
