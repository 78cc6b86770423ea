//===- StagePlanner.cpp - Linking programs into a .bmodel stage -----------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Pipelines/StagePlanner.h"

#include "codegen/Pipelines/ControlPlanner.h"
#include "codegen/Pipelines/PartPlanner.h"

using namespace mlir;

namespace tessera::codegen {

llvm::Expected<PlannedModel> planStage(func::FuncOp function, ArrayRef<PlannedPart> parts,
                                       partition::Partition::Targets targets,
                                       std::vector<std::optional<TargetProgram>> programs, bool keepsTensors) {
  StageBuilder builder(function, targets, std::move(programs), keepsTensors);
  if (llvm::Error error = builder.addPorts()) {
    return std::move(error);
  }
  bool isOnePart = parts.size() == 1 && parts.front().function == function;
  if (llvm::Error error =
          isOnePart ? PartPlanner(builder, parts.front(), nullptr).plan(builder.getArguments(), builder.getResults())
                    : ControlPlanner(builder, parts).plan(function)) {
    return std::move(error);
  }
  return builder.finish();
}

} // namespace tessera::codegen
