//===- ConstantSection.cpp - Constant section of a program ----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Target/ConstantSection.h"

using llvm::StringRef;

namespace tessera::codegen {

void ConstantSection::place(const top::TensorData &data, bmodel::TensorDefT &tensor) {
  uint64_t *known;
  bool isNew;
  if (data.owner || data.bytes.size() <= size_t(top::kMaxInlineBytes)) {
    auto [it, inserted] = small.try_emplace(StringRef(data.bytes.data(), data.bytes.size()), 0);
    known = &it->second, isNew = inserted;
  } else {
    auto [it, inserted] = weights.try_emplace(data.bytes.data(), 0);
    known = &it->second, isNew = inserted;
  }
  if (isNew) {
    *known = program.sections[section].append({data.bytes.data(), data.bytes.size()});
    program.constants.push_back(data);
  }
  tensor.place = bmodel::Place::Segment;
  tensor.place_index = section;
  tensor.offset = *known;
}

} // namespace tessera::codegen
