//===- StagePlanner.h - Linking programs into a .bmodel stage ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// The linker of a model: the only code that writes stages, tensors and steps. Each target has one workspace, which its
// subnets use one after another. A value that passes between subnets is a tensor in a separate workspace, in each
// memory in which it is needed; steps copy it between memories.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_PIPELINES_STAGEPLANNER_H
#define TESSERA_CODEGEN_PIPELINES_STAGEPLANNER_H

#include "codegen/Pipelines/PlannedModel.h"

namespace tessera::codegen {

/// Returns the stage of |function|, which is the only part, or consists of control flow (top-outline-regions) and calls
/// of the parts. |programs|, by target: nothing for a target without subnets, otherwise programs for its subnets in
/// order (numberPrograms). |keepsTensors|: no two tensors share memory, so that all can be read after a run.
llvm::Expected<PlannedModel> planStage(mlir::func::FuncOp function, llvm::ArrayRef<PlannedPart> parts,
                                       partition::Partition::Targets targets,
                                       std::vector<std::optional<TargetProgram>> programs, bool keepsTensors);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_PIPELINES_STAGEPLANNER_H
