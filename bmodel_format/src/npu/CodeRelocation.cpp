// SPDX-License-Identifier: Apache-2.0
//===- CodeRelocation.cpp - Constant addresses in NPU commands ------------===//
#include "../CodeRelocation.h"

#include "bmodel/npu/check.h"

#include <cstring>

namespace bmodel::npu {
namespace {

/// Parses the chip of a subnet. Rejects commands of another ISA version and chips with another fingerprint.
MaybeRejection findChip(const CodeUse &use, Chip &chip) {
  if (use.subnet.kernel_abi() != kIsaVersion) {
    return Rejection{Fault::Unsupported, use.file + " has commands of version " +
                                             std::to_string(use.subnet.kernel_abi()) + "; this program knows version " +
                                             std::to_string(kIsaVersion) + ": compile the model again"};
  }
  const ChipDef &def = *use.view.model->chips()->Get(use.subnet.chip());
  std::string error;
  if (!parseChip(def.description() ? def.description()->string_view() : "", use.file, chip, error)) {
    return Rejection{Fault::Corrupt, error};
  }
  if (!def.fingerprint() || fingerprint(chip) != def.fingerprint()->str()) {
    return Rejection{Fault::Corrupt, use.file + ": the chip '" + def.name()->str() + "' has the fingerprint " +
                                         fingerprint(chip) + ", its program is for " +
                                         (def.fingerprint() ? def.fingerprint()->str() : "none")};
  }
  return std::nullopt;
}

const unsigned char *codeOf(const CodeUse &use) {
  return use.view.segment(uint32_t(use.subnet.code_segment())) + use.call.offset;
}

RegionSizes sizesOf(const CodeUse &use, uint64_t constantBytes) {
  RegionSizes sizes;
  sizes.constants = constantBytes;
  sizes.workspace =
      use.stage.workspaces() && use.stage.workspaces()->size() ? use.stage.workspaces()->Get(0)->bytes() : 0;
  for (const auto *slots : {use.call.inputs, use.call.outputs}) {
    for (uint32_t i = 0; slots && i < slots->size(); ++i) {
      sizes.io.push_back(use.stage.tensors()->Get(slots->Get(i))->bytes());
    }
  }
  sizes.inputs = use.call.inputs ? use.call.inputs->size() : 0;
  return sizes;
}

void collectOperand(const Operand &operand, ConstantPieces &pieces) {
  if (operand.tensor.region != Region::constants) {
    return;
  }
  int64_t begin = int64_t(operand.tensor.offset), last = begin;
  for (int i = 0; i < 4; ++i) {
    const int64_t way = (int64_t(operand.shape.dims[i]) - 1) * operand.tensor.strides[i];
    (way < 0 ? begin : last) += way;
  }
  pieces.add(uint64_t(begin), uint64_t(last) + sizeOf(operand.tensor.type));
}

void relocateCommand(Descriptor &command, const ConstantPieces &pieces) {
  const CommandText *text = findCommand(command.header.opcode);
  for (const FieldText &field : text->fields) {
    if (std::string_view(field.type) != "Tensor") {
      continue;
    }
    Tensor tensor;
    std::memcpy(&tensor, command.body + field.offset, sizeof tensor);
    if (tensor.region == Region::constants) {
      tensor.offset = pieces.relocate(tensor.offset);
      std::memcpy(command.body + field.offset, &tensor, sizeof tensor);
    }
  }
}

class StreamRelocation final : public CodeRelocation {
public:
  MaybeRejection collect(const CodeUse &use, uint64_t constantBytes, ConstantPieces &pieces) const override {
    Chip chip;
    RETURN_IF_REJECTED(findChip(use, chip));
    Status status;
    const auto *commands = reinterpret_cast<const Descriptor *>(codeOf(use));
    const size_t count = use.call.bytes / kDescriptorBytes;
    if (use.call.offset % kDescriptorBytes || use.call.bytes % kDescriptorBytes ||
        !checkOperands(commands, count, chip, sizesOf(use, constantBytes), status)) {
      return Rejection{Fault::Corrupt,
                       use.file + ": " + (status.ok() ? "a stream is not a list of commands" : status.message)};
    }
    Operand operands[kMostOperands];
    for (size_t i = 0; i < count; ++i) {
      const size_t found = operandsOf(commands[i], operands);
      for (size_t k = 0; k < found; ++k) {
        collectOperand(operands[k], pieces);
      }
    }
    return std::nullopt;
  }

  void relocate(const CodeUse &use, const ConstantPieces &pieces, char *moved) const override {
    for (uint64_t at = 0; at < use.call.bytes; at += kDescriptorBytes) {
      Descriptor command;
      std::memcpy(&command, codeOf(use) + at, sizeof command);
      relocateCommand(command, pieces);
      std::memcpy(moved + at, &command, sizeof command);
    }
  }
};

} // namespace

const CodeRelocation &codeRelocation();
const CodeRelocation &codeRelocation() {
  static const StreamRelocation relocation;
  return relocation;
}

} // namespace bmodel::npu
