//===- Plan.h - A device function as a stage of a .bmodel -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_PIPELINES_PLAN_H
#define TESSERA_CODEGEN_PIPELINES_PLAN_H

#include "codegen/Pipelines/KernelSet.h"

#include "bmodel/writer.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "top_dialect/IR/Constants.h"
#include "llvm/ADT/StringSet.h"

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

/// Copies one tensor to another; both by slot.
std::unique_ptr<bmodel::StepDefT> copyStep(uint32_t from, uint32_t to);

/// Makes net, stage, subnet, tensors and steps out of |function|, whose ops' kernels are in |kernels|;
/// |code| is their shared object. Results lie at the ops' device.addresses. Errors are emitted at the ops.
llvm::LogicalResult planModel(mlir::func::FuncOp function, const x86::X86Target &target, const KernelSet &kernels,
                              std::vector<char> code, PlannedModel &planned);

/// Where a function goes that is a part of a model: a subnet of a stage that is there, whose arguments and results are
/// tensors of the stage, no views.
struct PartFrame {
  bmodel::StageDefT &stage;
  bmodel::SubnetDefT &subnet;
  std::vector<uint32_t> arguments, results; ///< slots
  uint32_t workspace = 0, constantsSegment = 0;
  llvm::StringSet<> &names; ///< of the stage's tensors
};

/// The same of such a function: adds tensors and steps. Sets planned.workspaceBytes and -LowerBound.
llvm::LogicalResult planPart(mlir::func::FuncOp function, const x86::X86Target &target, const KernelSet &kernels,
                             const PartFrame &frame, PlannedModel &planned);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_PIPELINES_PLAN_H
