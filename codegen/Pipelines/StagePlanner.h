//===- StagePlanner.h - Linking programs into a .bmodel stage ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// The linker of a model: the only code that writes stages, tensors and steps. Each target has one workspace, which its
// subnets use one after another. A value that passes between subnets is a tensor in a separate workspace, in each
// memory in which it is needed; steps copy it between memories.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_PIPELINES_STAGEPLANNER_H
#define TESSERA_CODEGEN_PIPELINES_STAGEPLANNER_H

#include "codegen/Partition/Partition.h"
#include "codegen/Target/TargetProgram.h"

namespace tessera::codegen {

/// A model ready to be written, with the data to which its segments point.
struct PlannedModel {
  bmodel::ModelDefT model;
  std::vector<bmodel::SegmentContents> segments;
  std::vector<std::optional<TargetProgram>> programs; ///< by target
  std::vector<top::TensorData> constants;             ///< results of the model that are constants
  uint64_t workspaceBytes = 0, workspaceLowerBound = 0;
  uint64_t bytesOf(bmodel::SegmentKind kind) const;
};

/// Returns the stage of |function|, which the partition has split into subnets. |programs|, by target: nothing for a
/// target without subnets, otherwise programs for its subnets in order.
llvm::Expected<PlannedModel> planStage(mlir::func::FuncOp function, const partition::Partition &partition,
                                       std::vector<std::optional<TargetProgram>> programs);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_PIPELINES_STAGEPLANNER_H
