//===- Plan.h - A device function as a stage of a .bmodel -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_PIPELINES_PLAN_H
#define TESSERA_CODEGEN_PIPELINES_PLAN_H

#include "codegen/Pipelines/KernelSet.h"

#include "bmodel/writer.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "top_dialect/IR/Constants.h"

namespace tessera::codegen {

/// A model ready to be written, with what its segments point into.
struct PlannedModel {
  bmodel::ModelDefT model;
  std::vector<bmodel::SegmentContents> segments; ///< code, constants
  std::vector<char> code;
  std::vector<top::TensorData> constants; ///< keeps unpacked constants alive
  uint64_t workspaceBytes = 0;
  uint64_t workspaceLowerBound = 0;
  size_t steps = 0;
};

/// Whether |op| is computed by a kernel: not a constant, a view or a terminator.
bool needsKernel(mlir::Operation *op);

/// The value whose bytes |value| is: follows reshapes.
mlir::Value rootOf(mlir::Value value);

/// Makes net, stage, subnet, tensors and steps out of |function|, whose ops' kernels are in |kernels|;
/// |code| is their shared object. Results lie at the ops' device.addresses. Errors are emitted at the ops.
llvm::LogicalResult planModel(mlir::func::FuncOp function, const x86::X86Target &target, const KernelSet &kernels,
                              std::vector<char> code, PlannedModel &planned);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_PIPELINES_PLAN_H
