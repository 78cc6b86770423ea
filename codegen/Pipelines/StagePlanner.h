//===- StagePlanner.h - Programs of targets as a stage of a .bmodel -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// The linker of a model: the only code that writes stages, tensors and steps. Each target has a workspace for itself,
// which its subnets use one after another. What one subnet makes and another reads is a tensor of a workspace of its
// own in each memory in which somebody wants it; steps copy it where the memories differ.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_PIPELINES_STAGEPLANNER_H
#define TESSERA_CODEGEN_PIPELINES_STAGEPLANNER_H

#include "codegen/Partition/Partition.h"
#include "codegen/Target/Program.h"

namespace tessera::codegen {

/// A model ready to be written, with what its segments point into.
struct PlannedModel {
  bmodel::ModelDefT model;
  std::vector<bmodel::SegmentContents> segments;
  std::vector<std::optional<Program>> programs; ///< by target
  std::vector<top::TensorData> constants;       ///< that are results of the model
  uint64_t workspaceBytes = 0, workspaceLowerBound = 0;
  uint64_t bytesOf(bmodel::SegmentKind kind) const;
};

/// The stage of |function|, which the partition has cut into subnets. |programs|: by target; nothing where it has no
/// subnet, else one program for each of its subnets, in their order.
llvm::Expected<PlannedModel> planStage(mlir::func::FuncOp function, const partition::Partition &partition,
                                       std::vector<std::optional<Program>> programs);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_PIPELINES_STAGEPLANNER_H
