//===- PlanSubnet.h - A placed function as the steps of a subnet -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_PLANSUBNET_H
#define TESSERA_CODEGEN_X86_PLANSUBNET_H

#include "codegen/Target/Target.h"
#include "codegen/X86/KernelSet.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

namespace tessera::x86 {

/// Whether |op| is computed by a kernel: not a constant, a view or a terminator.
bool needsKernel(mlir::Operation *op);

/// Constants of a program, which becomes one of its sections; equal small ones, and weights, are there once.
class ConstantSection {
public:
  /// |section|: of the program, a segment of constants.
  ConstantSection(codegen::Program &program, uint32_t section) : program(program), section(section) {}

  /// Makes the tensor one of the section.
  void place(const top::TensorData &data, bmodel::TensorDefT &tensor);

private:
  codegen::Program &program;
  uint32_t section;
  llvm::StringMap<uint64_t> small;                ///< bytes -> offset
  llvm::DenseMap<const char *, uint64_t> weights; ///< data of the store -> offset
};

/// The steps of a function whose ops' kernels are in |kernels|, and its tensors, which lie at the ops' addresses.
/// Errors are emitted at the ops. |secondsOf|: the estimate that a step tells, if any.
llvm::LogicalResult planSubnet(mlir::func::FuncOp function, const KernelSet &kernels, ConstantSection &constants,
                               std::function<double(mlir::Operation *)> secondsOf, codegen::SubnetProgram &planned);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_PLANSUBNET_H
