//===- StepSlots.cpp - Tensors of a step ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Pipelines/StepSlots.h"

#include "llvm/ADT/STLExtras.h"

namespace tessera::codegen {

void visitSlots(bmodel::StepDefT &step, llvm::function_ref<void(uint32_t &)> visit) {
  auto visitAll = [&](std::vector<uint32_t> &slots) { llvm::for_each(slots, visit); };
  auto visitOptional = [&](int32_t &slot) {
    if (auto known = uint32_t(slot); slot >= 0) {
      visit(known);
      slot = int32_t(known);
    }
  };
  visitAll(step.writes);
  if (bmodel::LaunchDefT *launch = step.op.AsLaunchDef()) {
    visitAll(launch->args);
  } else if (bmodel::RunStreamOnDefT *stream = step.op.AsRunStreamOnDef()) {
    visitAll(stream->inputs), visitAll(stream->outputs);
  } else if (bmodel::CopyDefT *copy = step.op.AsCopyDef()) {
    visit(copy->from), visit(copy->to);
  } else if (bmodel::ReadDimDefT *read = step.op.AsReadDimDef()) {
    visit(read->from);
  } else if (bmodel::WriteDimDefT *write = step.op.AsWriteDimDef()) {
    visit(write->to);
  } else if (bmodel::BranchDefT *branch = step.op.AsBranchDef()) {
    visit(branch->condition);
  } else if (bmodel::LoopDefT *loop = step.op.AsLoopDef()) {
    visitOptional(loop->trip_count), visitOptional(loop->condition), visitOptional(loop->iteration);
  }
}

} // namespace tessera::codegen
