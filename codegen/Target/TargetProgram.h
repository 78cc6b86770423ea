//===- TargetProgram.h - Relocatable program of a family --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// A relocatable part of a .bmodel, like an object file of an executable: its numbers, e.g. of tensors, are
// local. The StagePlanner, the only code that writes stages, maps them to the numbers in the file.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_TARGET_TARGETPROGRAM_H
#define TESSERA_CODEGEN_TARGET_TARGETPROGRAM_H

#include "bmodel/writer.h"
#include "codegen/Target/SizeSlots.h"
#include "top_dialect/IR/Constants.h"
#include "llvm/Support/JSON.h"

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tessera::codegen {

/// The program of one subnet. Its tensor slots count the arguments first, then the results, then |tensors|.
struct SubnetProgram {
  /// Kind, isa, kernels, steps, ...; the planner sets name and chip. code_segment is an index in
  /// TargetProgram::sections or -1.
  bmodel::SubnetDefT subnet;
  /// Tensors local to the subnet. place_index is an index in TargetProgram::sections for Place::Segment and unused for
  /// Place::Workspace, whose offsets refer to the target's workspace. view_of is a slot.
  std::vector<bmodel::TensorDefT> tensors;
  SizeSlots sizes;                  ///< to which dims of tensors and launches refer
  uint64_t workspaceBytes = 0;      ///< of the target's workspace, which its subnets use one after another
  uint64_t workspaceLowerBound = 0; ///< lower bound of workspaceBytes: the largest sum of buffers alive at one time
  size_t ops = 0;                   ///< kernel launches, or commands of a stream
  std::optional<double> seconds;    ///< time of a run by the target's own model; none: the sum of Target::secondsOf
};

/// The programs of all subnets of a target in a stage.
struct TargetProgram {
  std::vector<bmodel::SegmentContents> sections; ///< code and constants; they point into |memory| and |constants|
  std::deque<std::vector<char>> memory;
  std::vector<top::TensorData> constants;
  std::vector<bmodel::TensorDefT> tensors; ///< constants that steps do not name; for people and model_tool combine
  std::vector<std::pair<std::string, uint32_t>> blobs; ///< sections for tools only (SegmentKind::Blob), by name
  std::vector<SubnetProgram> subnets;                  ///< in the order of the subnets passed in
  llvm::json::Object report;                           ///< facts for the user beyond those of every target
};

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_TARGET_TARGETPROGRAM_H
