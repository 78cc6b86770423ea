//===- StateTensors.cpp - States of a stage -------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Pipelines/StateTensors.h"

#include "codegen/Pipelines/StepSlots.h"
#include "codegen/Target/Tensors.h"
#include "device_dialect/Transforms/Addresses.h"

#include "llvm/ADT/DenseMap.h"

namespace tessera::codegen {
namespace {

/// The first and the last access of each tensor, in the order of a run.
class Accesses {
public:
  explicit Accesses(bmodel::StageDefT &stage) : stage(stage) { isKnown = addSubnet(0); }

  bool endsBefore(uint32_t earlier, uint32_t later) const {
    auto a = times.find(earlier), b = times.find(later);
    return isKnown && (a == times.end() || (b != times.end() && a->second.second < b->second.first));
  }

private:
  /// Returns false for control flow and for steps whose tensors are not known.
  bool addSubnet(uint32_t number) {
    for (auto &step : stage.subnets[number]->plan) {
      if (bmodel::CallSubnetDefT *call = step->op.AsCallSubnetDef()) {
        if (!addSubnet(call->subnet)) {
          return false;
        }
        continue;
      }
      if (!step->op.AsLaunchDef() && !step->op.AsCopyDef() && !step->op.AsRunStreamOnDef()) {
        return false;
      }
      visitSlots(*step, [&](uint32_t slot) {
        int32_t root = stage.tensors[slot]->view_of;
        auto [known, isNew] = times.try_emplace(root < 0 ? slot : uint32_t(root), now, now);
        known->second.second = now;
      });
      ++now;
    }
    return true;
  }

  bmodel::StageDefT &stage;
  llvm::DenseMap<uint32_t, std::pair<int64_t, int64_t>> times;
  int64_t now = 0;
  bool isKnown = false;
};

/// Gives |next| and its views the bytes of |current|.
void shareBytes(bmodel::StageDefT &stage, uint32_t current, uint32_t next) {
  for (auto &tensor : stage.tensors) {
    if (tensor->view_of == int32_t(next) || tensor == stage.tensors[next]) {
      tensor->view_of = int32_t(current);
      tensor->place = bmodel::Place::State, tensor->place_index = 0;
    }
  }
}

} // namespace

void placeNextStates(bmodel::StageDefT &stage, llvm::ArrayRef<StateSlots> states, uint32_t workspace) {
  const Accesses accesses(stage);
  bmodel::WorkspaceDefT &memory = *stage.workspaces[workspace];
  for (auto [current, next] : states) {
    if (accesses.endsBefore(current, next)) {
      shareBytes(stage, current, next);
      continue;
    }
    bmodel::TensorDefT &tensor = *stage.tensors[next];
    tensor.place = bmodel::Place::Workspace, tensor.place_index = workspace, tensor.offset = memory.bytes;
    memory.bytes = memory.lower_bound = llvm::alignTo(memory.bytes + tensor.bytes, device::kAddressAlignment);
    stage.subnets.front()->plan.push_back(copyStep(next, current));
  }
}

} // namespace tessera::codegen
