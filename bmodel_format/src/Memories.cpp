// SPDX-License-Identifier: Apache-2.0
//===- Memories.cpp - Chip families and memories of subnets and tensors ---===//
#include "bmodel/reader.h"

using namespace bmodel;

int32_t bmodel::memoryOf(const WorkspaceDef &workspace) {
  return workspace.memory() == MemoryKind::Device ? int32_t(workspace.chip()) : kHostMemory;
}

int32_t bmodel::memoryOf(const StageDef &stage, const TensorDef &tensor) {
  const TensorDef &root = tensor.view_of() < 0 ? tensor : *stage.tensors()->Get(uint32_t(tensor.view_of()));
  if (root.place() == Place::Workspace) {
    return memoryOf(*stage.workspaces()->Get(root.place_index()));
  }
  return root.place() == Place::Caller ? kHostMemory : root.chip();
}

int32_t bmodel::memoryOf(const ModelDef &model, const SubnetDef &subnet) {
  const bool isChips =
      subnet.kind() == SubnetKind::Device && model.chips()->Get(subnet.chip())->memory() == MemoryKind::Device;
  return isChips ? int32_t(subnet.chip()) : kHostMemory;
}

const char *bmodel::familyOf(const ModelDef &model, const SubnetDef &subnet) {
  switch (subnet.kind()) {
  case SubnetKind::Control:
    return nullptr;
  case SubnetKind::X86:
  case SubnetKind::Host:
    return "x86";
  case SubnetKind::Npu:
    return "npu";
  case SubnetKind::Cuda:
    return "cuda";
  case SubnetKind::Device:
    break;
  }
  const flatbuffers::String *family = model.chips()->Get(subnet.chip())->family();
  return family ? family->c_str() : "";
}

const WorkspaceDef *bmodel::streamWorkspace(const StageDef &stage, const SubnetDef &subnet) {
  const uint32_t count = stage.workspaces() ? stage.workspaces()->size() : 0;
  return subnet.workspace() >= 0 && uint32_t(subnet.workspace()) < count
             ? stage.workspaces()->Get(uint32_t(subnet.workspace()))
             : nullptr;
}
