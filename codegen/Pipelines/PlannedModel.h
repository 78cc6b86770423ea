//===- PlannedModel.h - A model for the file and its parts ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_PIPELINES_PLANNEDMODEL_H
#define TESSERA_CODEGEN_PIPELINES_PLANNEDMODEL_H

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

/// A function without control flow, split into subnets.
struct PlannedPart {
  std::string name; ///< of the function in the model that calls it; empty if it is the whole model
  mlir::func::FuncOp function;
  const partition::Partition *partition = nullptr;
  std::vector<size_t> programs = {}; ///< by subnet: number of its program among those of its target
  /// Returns the name of a subnet in the file.
  std::string nameOf(const partition::Subnet &subnet) const;
};

/// Sets PlannedPart::programs: the programs of a target are in the order of the parts and of their subnets.
void numberPrograms(llvm::MutableArrayRef<PlannedPart> parts);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_PIPELINES_PLANNEDMODEL_H
