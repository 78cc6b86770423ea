// SPDX-License-Identifier: Apache-2.0
//===- CombinedFile.cpp - One of the files that become one ----------------===//
#include "CombinedFile.h"

#include "bmodel/npu/check.h"

#include <cstring>

namespace bmodel {
namespace {

/// Calls |use| with stage, subnet and call of every stream of an NPU; ends with its first refusal.
template <typename Use>
MaybeRefusal forEachStream(const ModelView &view, Use use) {
  for (const NetDef *net : *view.model->nets()) {
    for (const StageDef *stage : *net->stages()) {
      for (const SubnetDef *subnet : *stage->subnets()) {
        for (uint32_t i = 0; subnet->plan() && i < subnet->plan()->size(); ++i) {
          StreamCall call;
          if (subnet->kind() == SubnetKind::Npu && findStreamCall(*stage, *subnet->plan()->Get(i), call)) {
            RETURN_IF_REFUSED(use(*stage, *subnet, call));
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
      constants(model->segments.size()), targets(model->segments.size()), isStreams(model->segments.size()) {}

MaybeRefusal CombinedFile::readStreams() {
  return forEachStream(view, [&](const StageDef &stage, const SubnetDef &subnet, const StreamCall &call) {
    return readStream(stage, subnet, call);
  });
}

/// The chip that a subnet is for, if this program knows its commands.
MaybeRefusal CombinedFile::findChip(const SubnetDef &subnet, npu::Chip &chip) const {
  if (subnet.kernel_abi() != npu::kIsaVersion) {
    return Refusal{Fault::Unsupported, name + " has commands of version " + std::to_string(subnet.kernel_abi()) +
                                           "; this program knows version " + std::to_string(npu::kIsaVersion) +
                                           ": compile the model again"};
  }
  const ChipDef &def = *view.model->chips()->Get(subnet.chip());
  std::string error;
  if (!npu::parseChip(def.description() ? def.description()->string_view() : "", name, chip, error)) {
    return Refusal{Fault::Corrupt, error};
  }
  if (!def.fingerprint() || npu::fingerprint(chip) != def.fingerprint()->str()) {
    return Refusal{Fault::Corrupt, name + ": the chip '" + def.name()->str() + "' has the fingerprint " +
                                       npu::fingerprint(chip) + ", its program is for " +
                                       (def.fingerprint() ? def.fingerprint()->str() : "none")};
  }
  return std::nullopt;
}

MaybeRefusal CombinedFile::readStream(const StageDef &stage, const SubnetDef &subnet, const StreamCall &call) {
  npu::Chip chip;
  RETURN_IF_REFUSED(findChip(subnet, chip));
  npu::RegionSizes sizes;
  for (uint32_t i = 0; i < model->segments.size() && streamConstants < 0; ++i) {
    streamConstants = model->segments[i]->kind == SegmentKind::Constants ? int64_t(i) : -1;
  }
  sizes.constants = streamConstants < 0 ? 0 : model->segments[size_t(streamConstants)]->bytes;
  sizes.workspace = stage.workspaces() && stage.workspaces()->size() ? stage.workspaces()->Get(0)->bytes() : 0;
  for (const auto *slots : {call.inputs, call.outputs}) {
    for (uint32_t i = 0; slots && i < slots->size(); ++i) {
      sizes.io.push_back(stage.tensors()->Get(slots->Get(i))->bytes());
    }
  }
  sizes.inputs = call.inputs ? call.inputs->size() : 0;
  Status status;
  const auto segment = uint32_t(subnet.code_segment());
  const auto *commands = reinterpret_cast<const npu::Descriptor *>(view.segment(segment) + call.offset);
  const size_t count = call.bytes / npu::kDescriptorBytes;
  if (call.offset % npu::kDescriptorBytes || call.bytes % npu::kDescriptorBytes ||
      !npu::checkOperands(commands, count, chip, sizes, status)) {
    return Refusal{Fault::Corrupt, name + ": " + (status.ok() ? "a stream is no list of commands" : status.message)};
  }
  isStreams[segment] = true;
  npu::Operand operands[npu::kMostOperands];
  for (size_t i = 0; i < count; ++i) {
    const size_t found = npu::operandsOf(commands[i], operands);
    for (size_t k = 0; k < found; ++k) {
      if (operands[k].tensor.region == npu::Region::constants) {
        constants[size_t(streamConstants)].add(operands[k]);
      }
    }
  }
  return std::nullopt;
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

std::vector<char> CombinedFile::moveStreams(uint32_t segment) const {
  const char *bytes = reinterpret_cast<const char *>(view.segment(segment));
  std::vector<char> moved(bytes, bytes + model->segments[segment]->bytes);
  forEachStream(view, [&](const StageDef &, const SubnetDef &subnet, const StreamCall &call) -> MaybeRefusal {
    // From the file's own commands: streams may have some in common.
    const bool isThere = uint32_t(subnet.code_segment()) == segment && streamConstants >= 0;
    for (uint64_t at = call.offset; isThere && at < call.offset + call.bytes; at += npu::kDescriptorBytes) {
      npu::Descriptor command;
      std::memcpy(&command, bytes + at, sizeof command);
      relocate(command, constants[size_t(streamConstants)]);
      std::memcpy(&moved[at], &command, sizeof command);
    }
    return std::nullopt;
  });
  return moved;
}

} // namespace bmodel
