//===- PlannedModel.cpp - A model for the file and its parts --------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Pipelines/PlannedModel.h"

#include <map>

using namespace mlir;

namespace tessera::codegen {

uint64_t PlannedModel::bytesOf(bmodel::SegmentKind kind) const {
  uint64_t bytes = 0;
  for (const bmodel::SegmentContents &segment : segments) {
    bytes += segment.getKind() == kind ? segment.getBytes() : 0;
  }
  return bytes;
}

std::string PlannedPart::nameOf(const partition::Subnet &subnet) const {
  return name.empty() ? subnet.name : name + "." + subnet.name;
}

void numberPrograms(MutableArrayRef<PlannedPart> parts) {
  std::map<uint32_t, size_t> next;
  for (PlannedPart &part : parts) {
    part.programs.clear();
    for (const partition::Subnet &subnet : part.partition->subnets()) {
      part.programs.push_back(next[subnet.target]++);
    }
  }
}

} // namespace tessera::codegen
