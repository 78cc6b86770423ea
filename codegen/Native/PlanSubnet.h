//===- PlanSubnet.h - Turns a placed function into the steps of a subnet ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NATIVE_PLANSUBNET_H
#define TESSERA_CODEGEN_NATIVE_PLANSUBNET_H

#include "codegen/Kernels/KernelSet.h"
#include "codegen/Target/ConstantSection.h"
#include "codegen/Target/Target.h"

namespace tessera::native {

/// Adds to |planned| the steps of |function|, whose kernels are in |kernels|, and its tensors, which are at the ops'
/// addresses. Reports errors at the ops. |secondsOf| returns the estimated time of a step; it may be empty.
llvm::LogicalResult planSubnet(mlir::func::FuncOp function, const kernels::KernelSet &kernels,
                               codegen::ConstantSection &constants, std::function<double(mlir::Operation *)> secondsOf,
                               codegen::SubnetProgram &planned);

} // namespace tessera::native

#endif // TESSERA_CODEGEN_NATIVE_PLANSUBNET_H
