// SPDX-License-Identifier: Apache-2.0
//===- CombinedFile.cpp - One of the files that become one ----------------===//
#include "CombinedFile.h"

namespace bmodel {
namespace {

/// Calls |act| with every command stream that refers to constants by address and with its family's relocation. Stops at
/// the first rejection.
template <typename Act>
MaybeRejection forEachCode(const std::string &file, const ModelView &view, Act act) {
  for (const NetDef *net : *view.model->nets()) {
    for (const StageDef *stage : *net->stages()) {
      for (const SubnetDef *subnet : *stage->subnets()) {
        const char *family = familyOf(*view.model, *subnet);
        const CodeRelocation *relocation = family ? findCodeRelocation(family) : nullptr;
        for (uint32_t i = 0; relocation && subnet->plan() && i < subnet->plan()->size(); ++i) {
          StreamCall call;
          if (findStreamCall(*stage, *subnet->plan()->Get(i), call)) {
            RETURN_IF_REJECTED(act(*relocation, CodeUse{file, view, *stage, *subnet, call}));
          }
        }
      }
    }
  }
  return std::nullopt;
}

} // namespace

CombinedFile::CombinedFile(const NamedModel &given)
    : name("'" + given.name + "'"), view(given.view), model(given.view.model->UnPack()),
      constants(model->segments.size()), targets(model->segments.size()), namesConstants(model->segments.size()) {}

MaybeRejection CombinedFile::readCode() {
  return forEachCode(name, view, [&](const CodeRelocation &relocation, const CodeUse &use) -> MaybeRejection {
    for (uint32_t i = 0; i < model->segments.size() && namedConstants < 0; ++i) {
      namedConstants = model->segments[i]->kind == SegmentKind::Constants ? int64_t(i) : -1;
    }
    const bool hasConstants = namedConstants >= 0;
    ConstantPieces none;
    RETURN_IF_REJECTED(relocation.collect(use, hasConstants ? model->segments[size_t(namedConstants)]->bytes : 0,
                                          hasConstants ? constants[size_t(namedConstants)] : none));
    namesConstants[size_t(use.subnet.code_segment())] = true;
    return std::nullopt;
  });
}

void CombinedFile::readTensors() {
  for (const auto &net : model->nets) {
    for (const auto &stage : net->stages) {
      for (const auto &tensor : stage->tensors) {
        if (tensor->place == Place::Segment && tensor->view_of < 0) {
          constants[tensor->place_index].add(tensor->offset, tensor->offset + tensor->bytes);
        }
      }
    }
  }
}

std::vector<char> CombinedFile::moveCode(uint32_t segment) const {
  const char *bytes = reinterpret_cast<const char *>(view.segment(segment));
  std::vector<char> moved(bytes, bytes + model->segments[segment]->bytes);
  forEachCode(name, view, [&](const CodeRelocation &relocation, const CodeUse &use) -> MaybeRejection {
    if (uint32_t(use.subnet.code_segment()) == segment && namedConstants >= 0) {
      // Always patch from the original code: several calls may run the same commands.
      relocation.relocate(use, constants[size_t(namedConstants)], moved.data() + use.call.offset);
    }
    return std::nullopt;
  });
  return moved;
}

} // namespace bmodel
