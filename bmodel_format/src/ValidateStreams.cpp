// SPDX-License-Identifier: Apache-2.0
//===- ValidateStreams.cpp - The rules of command streams and custom operators ===//
#include "Validator.h"

#include <cinttypes>

using namespace bmodel;

namespace {

/// Limits of the buffers that a stream can name: NPU commands, and programs of other families.
constexpr uint32_t kMaxStreamTensors = 240, kMaxProgramTensors = 1 << 16;
/// Limit of the tensors of a custom operator, whose places are compared in pairs.
constexpr uint32_t kMaxCustomTensors = 256;

} // namespace

bool Validator::runStream(const SubnetDef &net, const StepDef &def) {
  StreamCall call;
  findStreamCall(*current, def, call);
  const bool isDevice = net.kind() == SubnetKind::Device;
  if ((!isDevice && net.kind() != SubnetKind::Npu) || net.code_segment() < 0) {
    return FAIL("a %s subnet cannot run a command stream", EnumNameSubnetKind(net.kind()));
  }
  const uint64_t limit = model.segments()->Get(uint32_t(net.code_segment()))->bytes();
  if (!inRange(call.offset, call.bytes, limit)) {
    return FAIL("stream of %" PRIu64 " bytes at %" PRIu64 " exceeds the %" PRIu64 " bytes of its segment", call.bytes,
                call.offset, limit);
  }
  if (!isDevice && count(call.dims) > 0) {
    return FAIL("a stream of a %s subnet takes no dims", EnumNameSubnetKind(net.kind()));
  }
  for (uint32_t i = 0; i < count(call.dims); ++i) {
    if (!dimSlot(call.dims->Get(i), "a stream's dim")) {
      return false;
    }
  }
  return streamTensors(net, call);
}

/// Returns true if the tensors share a byte in any run of the stage.
bool Validator::shareBytes(const TensorDef &a, const TensorDef &b) const {
  const TensorDef &x = rootOf(a), &y = rootOf(b);
  const uint64_t xBegin = x.offset() + (&x == &a ? 0 : a.offset()), yBegin = y.offset() + (&y == &b ? 0 : b.offset());
  const bool samePlace =
      x.place() == y.place() && x.place_index() == y.place_index() && (x.place() != Place::Caller || &x == &y);
  return samePlace && xBegin < yBegin + b.bytes() && yBegin < xBegin + a.bytes();
}

/// Checks the arguments of a custom operator, which sees row-major tensors of the host that do not overlap what it
/// writes.
bool Validator::customLaunch(const SubnetDef &net, const LaunchDef &def, const KernelDef &kernel) {
  const uint32_t total = count(def.args()), inputs = kernel.custom()->inputs();
  if (inputs > total || total > kMaxCustomTensors || memoryOf(model, net) != kHostMemory) {
    return FAIL("custom operator '%.80s' has %" PRIu32 " tensors, %" PRIu32 " of them inputs; allowed are %" PRIu32
                " in the host's memory",
                kernel.symbol()->c_str(), total, inputs, kMaxCustomTensors);
  }
  if (def.tile_count() != 1 || def.tile_count_slot() != -1 || count(def.dims()) > 0 || def.scratch_bytes() > 0) {
    return FAIL("custom operator '%.80s' is launched with tiles, dims or scratch", kernel.symbol()->c_str());
  }
  for (uint32_t i = 0; i < total; ++i) {
    const TensorDef &tensor = *current->tensors()->Get(def.args()->Get(i));
    if (tensor.layout() != LayoutKind::RowMajor) {
      return FAIL("tensor '%.60s' of custom operator '%.80s' is not row-major", tensor.name()->c_str(),
                  kernel.symbol()->c_str());
    }
    if (i >= inputs && !writableSlot(def.args()->Get(i), "output")) {
      return false;
    }
    for (uint32_t j = 0; i >= inputs && j < i; ++j) {
      if (const TensorDef &other = *current->tensors()->Get(def.args()->Get(j)); shareBytes(tensor, other)) {
        return FAIL("output '%.60s' of custom operator '%.80s' shares bytes with '%.60s'", tensor.name()->c_str(),
                    kernel.symbol()->c_str(), other.name()->c_str());
      }
    }
  }
  return true;
}

/// Checks that a tensor does not lie in the workspace that is reserved for streams, nor in a buffer of the caller that
/// may be smaller than the tensor's largest size, which the stream accesses.
bool Validator::streamsOwn(const SubnetDef &net, const TensorDef &tensor) {
  const TensorDef &root = rootOf(tensor);
  if (root.place() == Place::Caller && isSymbolic(root)) {
    return FAIL(
        "tensor '%.60s' of a stream has symbolic dimensions: a copy step must move it out of the caller's memory",
        root.name()->c_str());
  }
  return root.place() != Place::Workspace || int64_t(root.place_index()) != net.workspace() ||
         FAIL("tensor '%.60s' of a stream lies in workspace %" PRId32 ", which is reserved for streams",
              tensor.name()->c_str(), net.workspace());
}

/// Checks the tensors of a stream. The NPU's stream checks assume that buffers do not overlap, which this function
/// ensures.
bool Validator::streamTensors(const SubnetDef &net, const StreamCall &call) {
  const bool isDevice = net.kind() == SubnetKind::Device;
  const uint32_t inputs = count(call.inputs), total = inputs + count(call.outputs);
  const uint32_t limit = isDevice ? kMaxProgramTensors : kMaxStreamTensors;
  if (total > limit) {
    return FAIL("a stream on %" PRIu32 " tensors exceeds %" PRIu32, total, limit);
  }
  if (const WorkspaceDef *own = streamWorkspace(*current, net); own && memoryOf(*own) != memoryOf(model, net)) {
    return FAIL("workspace %" PRId32 ", reserved for its streams, is not in the memory of its chip", net.workspace());
  }
  auto at = [&](uint32_t i) { return i < inputs ? call.inputs->Get(i) : call.outputs->Get(i - inputs); };
  for (uint32_t i = 0; i < total; ++i) {
    if (!(i < inputs ? slot(at(i), "a stream's input") : writableSlot(at(i), "a stream's output"))) {
      return false;
    }
    const TensorDef &tensor = *current->tensors()->Get(at(i));
    if (!slotIn(memoryOf(model, net), at(i), i < inputs ? "a stream's input" : "a stream's output") ||
        !streamsOwn(net, tensor)) {
      return false;
    }
    for (uint32_t j = 0; !isDevice && i >= inputs && j < i; ++j) {
      if (shareBytes(tensor, *current->tensors()->Get(at(j)))) {
        return FAIL("output '%.60s' of a stream shares bytes with '%.60s'", tensor.name()->c_str(),
                    current->tensors()->Get(at(j))->name()->c_str());
      }
    }
  }
  return true;
}
