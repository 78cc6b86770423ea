// SPDX-License-Identifier: Apache-2.0
//===- ModelStream.cpp - The command stream of a .bmodel --------------------===//
#include "bmodel/npu/model_stream.h"

#include "bmodel/npu/latency.h"

#include <algorithm>

namespace bmodel::npu {
namespace {

void takeSizes(const ModelView &view, const StageDef &stage, const StreamCall &call, ModelStream &stream) {
  for (const auto *slots : {call.inputs, call.outputs}) {
    for (uint32_t i = 0; slots && i < slots->size(); ++i) {
      stream.sizes.io.push_back(stage.tensors()->Get(slots->Get(i))->bytes());
    }
  }
  stream.sizes.inputs = call.inputs ? call.inputs->size() : 0;
  stream.sizes.workspace = stage.workspaces() && stage.workspaces()->size() ? stage.workspaces()->Get(0)->bytes() : 0;
  for (uint32_t i = 0; i < view.model->segments()->size() && !stream.constants; ++i) {
    const SegmentDef &segment = *view.model->segments()->Get(i);
    if (segment.kind() == SegmentKind::Constants) {
      stream.constants = view.segment(i);
      stream.sizes.constants = segment.bytes();
    }
  }
}

std::string take(const ModelView &view, const StageDef &stage, const SubnetDef &subnet, const StepDef &step,
                 const StreamCall &call, ModelStream &stream) {
  if (subnet.kernel_abi() != kIsaVersion) {
    return "the file has commands of version " + std::to_string(subnet.kernel_abi()) +
           "; this program supports version " + std::to_string(kIsaVersion);
  }
  if (call.offset % kDescriptorBytes || call.bytes % kDescriptorBytes) {
    return "a stream of the stage is not a list of commands";
  }
  const ChipDef &chip = *view.model->chips()->Get(subnet.chip());
  stream.chip = chip.description() ? chip.description()->str() : "";
  stream.fingerprint = chip.fingerprint() ? chip.fingerprint()->str() : "";
  stream.commands = reinterpret_cast<const Descriptor *>(view.segment(uint32_t(subnet.code_segment())) + call.offset);
  stream.count = call.bytes / kDescriptorBytes;
  if (step.debug() && step.debug()->onnx_nodes()) {
    for (const auto *name : *step.debug()->onnx_nodes()) {
      stream.layers.push_back(name->str());
    }
  }
  takeSizes(view, stage, call, stream);
  return "";
}

} // namespace

std::vector<NumberedStage> findNpuStages(const ModelView &view) {
  std::vector<NumberedStage> found;
  size_t number = 0;
  for (const NetDef *net : *view.model->nets()) {
    for (const StageDef *stage : *net->stages()) {
      bool isForNpu = false, isForOthers = false;
      for (const SubnetDef *subnet : *stage->subnets()) {
        isForNpu = isForNpu || subnet->kind() == SubnetKind::Npu || subnet->kind() == SubnetKind::Host;
        isForOthers = isForOthers || subnet->kind() == SubnetKind::Device;
      }
      const ChipDef &chip = *view.model->chips()->Get(stage->chip());
      // A stage without code returns only inputs and constants.
      const bool hasCode = isForNpu || isForOthers;
      isForNpu = hasCode ? isForNpu && !isForOthers : chip.family() && chip.family()->str() == "npu";
      if (isForNpu) {
        found.push_back({number, stage});
      }
      ++number;
    }
  }
  return found;
}

std::string findStreams(const ModelView &view, const StageDef &stage, std::vector<ModelStream> &streams) {
  for (const SubnetDef *subnet : *stage.subnets()) {
    for (uint32_t i = 0; subnet->plan() && i < subnet->plan()->size(); ++i) {
      const StepDef &step = *subnet->plan()->Get(i);
      StreamCall call;
      if (subnet->kind() != SubnetKind::Npu || !findStreamCall(stage, step, call)) {
        continue;
      }
      if (std::string message = take(view, stage, *subnet, step, call, streams.emplace_back()); !message.empty()) {
        return message;
      }
    }
  }
  return "";
}

HostShare findHostShare(const StageDef &stage) {
  HostShare share;
  double handOver = 0;
  for (const SubnetDef *subnet : *stage.subnets()) {
    bool isHost = subnet->kind() == SubnetKind::Host;
    share.subnets += isHost;
    for (uint32_t i = 0; subnet->plan() && i < subnet->plan()->size(); ++i) {
      const StepDef &step = *subnet->plan()->Get(i);
      double microseconds = step.debug() ? step.debug()->estimated_ns() / 1e3 : 0;
      share.steps += isHost;
      share.microseconds += isHost ? microseconds : 0;
      handOver += step.op_as_CallSubnetDef() ? microseconds : 0;
    }
  }
  share.handOverMicroseconds = handOver;
  return share;
}

std::string estimateMicroseconds(const ModelView &view, const StageDef &stage, double &microseconds) {
  std::vector<ModelStream> streams;
  if (std::string message = findStreams(view, stage, streams); !message.empty()) {
    return message;
  }
  const HostShare host = findHostShare(stage);
  microseconds = host.microseconds + host.handOverMicroseconds;
  for (const ModelStream &stream : streams) {
    Chip chip;
    std::string error;
    if (!parseChip(stream.chip, "the file's chip", chip, error)) {
      return error;
    }
    Status status;
    if (!checkOperands(stream.commands, stream.count, chip, stream.sizes, status)) {
      return status.message;
    }
    std::vector<Cost> costs;
    for (size_t i = 0; i < stream.count; ++i) {
      costs.push_back(costOf(stream.commands[i], chip));
    }
    double end = 0;
    for (const Span &span : schedule(stream.commands, costs.data(), stream.count, chip)) {
      end = std::max(end, span.end);
    }
    microseconds += chip.secondsOf(end) * 1e6;
  }
  return "";
}

} // namespace bmodel::npu
