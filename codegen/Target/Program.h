//===- Program.h - What a family makes of its subnets -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// A relocatable piece of a .bmodel, as an object file is one of an executable: numbers in it are its own, and the
// StagePlanner, the only code that writes stages, gives them those of the file.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_TARGET_PROGRAM_H
#define TESSERA_CODEGEN_TARGET_PROGRAM_H

#include "bmodel/writer.h"
#include "top_dialect/IR/Constants.h"
#include "llvm/Support/JSON.h"

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tessera::codegen {

/// The program of one subnet. Tensor slots in it count its arguments first, then its results, then |tensors|.
struct SubnetProgram {
  /// Kind, isa, kernels, steps ...; name and chip are the planner's. code_segment is an index of Program::sections or
  /// -1.
  bmodel::SubnetDefT subnet;
  /// What the subnet has for itself. place_index is an index of Program::sections in the case of Place::Segment, and
  /// means nothing in that of Place::Workspace: offsets are those of the target's own workspace. view_of is a slot.
  std::vector<bmodel::TensorDefT> tensors;
  uint64_t workspaceBytes = 0;      ///< of that workspace, which subnets of the target use one after another
  uint64_t workspaceLowerBound = 0; ///< of workspaceBytes: the largest sum of what is alive at one time
  size_t ops = 0;                   ///< steps of work: kernels that are launched, or commands of a stream
  std::optional<double> seconds;    ///< of a run, by the target's own model of time; none: Target::secondsOf, summed up
};

/// What a target makes of all of its subnets in a stage.
struct Program {
  std::vector<bmodel::SegmentContents> sections; ///< code and constants; what they point into is |memory|, |constants|
  std::deque<std::vector<char>> memory;
  std::vector<top::TensorData> constants;
  std::vector<bmodel::TensorDefT> tensors; ///< constants that steps do not name, for people and for model_tool combine
  std::vector<std::pair<std::string, uint32_t>> blobs; ///< sections for tools alone (SegmentKind::Blob), by name
  std::vector<SubnetProgram> subnets;                  ///< in the order in which they were given
  llvm::json::Object report; ///< what the user is told of it, beside what every target has in common
};

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_TARGET_PROGRAM_H
