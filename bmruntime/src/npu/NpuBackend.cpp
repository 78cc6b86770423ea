// SPDX-License-Identifier: Apache-2.0
//===- NpuBackend.cpp - Command streams on the NPU in software --------------===//
#include "NpuBackend.h"

#include "Simulator.h"
#include "bmodel/npu/check.h"

#include <cinttypes>
#include <cstdio>
#include <cstring>

using namespace bmrt;
using namespace bmodel::npu;
using core::CodeImage;
using core::StreamProgram;
using core::StreamRun;
using core::StreamRunner;

namespace {

/// Streams have no kernels; they stay where they are in the file.
class StreamImage final : public CodeImage {
public:
  void destroy() override { core::destroyObject(this); }
  bm_kernel_fn findKernel(const char *) const override { return nullptr; }
  bmrt_code_t findContract(const char *, core::KernelContract &, bmrt_status_t *) const override { return BMRT_OK; }
};

bmrt_code_t check(const bmodel::SubnetDef &subnet, bmrt_status_t *status) {
  if (subnet.kernel_abi() != kIsaVersion) {
    return BMRT_FAIL(status, UNSUPPORTED,
                     "subnet '%.60s' has commands of version %" PRIu32 "; this runtime runs version %" PRIu32
                     ": deploy the model anew",
                     subnet.name()->c_str(), subnet.kernel_abi(), kIsaVersion);
  }
  return BMRT_OK;
}

bmrt_code_t load(const unsigned char *, uint64_t, CodeImage **out, bmrt_status_t *status) {
  *out = core::createObject<StreamImage>();
  return *out ? BMRT_OK : BMRT_FAIL(status, NO_MEMORY, "no memory for a code image");
}

bmrt_code_t findChip(const StreamProgram &program, Chip &chip, bmrt_status_t *status) {
  const bmodel::ChipDef &def = *program.chip;
  std::string error;
  if (!def.description() || !parseChip(def.description()->string_view(), "chip", chip, error)) {
    return BMRT_FAIL(status, CORRUPT, "the description of chip '%.60s' is not good: %.300s", def.name()->c_str(),
                     error.c_str());
  }
  const char *told = def.fingerprint() ? def.fingerprint()->c_str() : "";
  if (fingerprint(chip) != told) {
    return BMRT_FAIL(status, CORRUPT, "chip '%.60s' has the fingerprint %s, its program is for %.40s",
                     def.name()->c_str(), fingerprint(chip).c_str(), told);
  }
  return BMRT_OK;
}

/// Passes on a fault in the stream of a step; says as well which layers of the model its commands are of.
bmrt_code_t failIn(const bmodel::StepDef &step, const Descriptor *commands, const bmodel::Status &cause,
                   bmrt_code_t code, bmrt_status_t *status) {
  const auto *names = step.debug() ? step.debug()->onnx_nodes() : nullptr;
  char text[200] = "";
  for (int64_t command : cause.commands) {
    uint32_t layer = command < 0 ? 0 : commands[command].header.layer;
    if (command >= 0 && names && layer < names->size()) {
      size_t length = strlen(text);
      snprintf(text + length, sizeof text - length, "; command %" PRId64 " is of '%.60s'", command,
               names->Get(layer)->c_str());
    }
  }
  return core::fail(status, code, cause.file, cause.line, "%.300s%s", cause.message, text);
}

/// The commands of a step, checked; the status says which of them is wrong.
bmrt_code_t verify(const StreamProgram &program, const StreamRun &stream, bmrt_status_t *status) {
  Chip chip;
  BMRT_RETURN_IF_ERROR(findChip(program, chip, status));
  if (stream.offset % kDescriptorBytes || stream.bytes % kDescriptorBytes) {
    return BMRT_FAIL(status, CORRUPT, "a stream of %" PRIu64 " bytes at %" PRIu64 " is no list of commands",
                     stream.bytes, stream.offset);
  }
  RegionSizes sizes{
      .constants = stream.constantBytes, .workspace = stream.workspaceBytes, .io = {}, .inputs = stream.inputs};
  sizes.io.assign(stream.ioBytes, stream.ioBytes + stream.ioCount);
  auto *commands = reinterpret_cast<const Descriptor *>(stream.code + stream.offset);
  bmodel::Status cause;
  bool good = checkStream(commands, stream.bytes / kDescriptorBytes, chip, sizes, stream.constants, cause);
  return good ? BMRT_OK : failIn(*stream.step, commands, cause, BMRT_CORRUPT, status);
}

/// One chip, whose local memory stays from run to run.
class NpuRunner final : public StreamRunner {
public:
  explicit NpuRunner(const Chip &chip) : simulator(chip) {}
  void destroy() override { core::destroyObject(this); }

  bool allocate() { return simulator.allocate(); }

  bmrt_code_t run(const StreamRun &stream, bmrt_status_t *status) override {
    core::Array<Area> io;
    if (!io.allocate(stream.ioCount)) {
      return BMRT_FAIL(status, NO_MEMORY, "no memory for %" PRIu32 " buffers", stream.ioCount);
    }
    for (uint32_t i = 0; i < stream.ioCount; ++i) {
      io[i] = {reinterpret_cast<unsigned char *>(stream.io[i]), stream.ioBytes[i]};
    }
    npu::Buffers buffers{{const_cast<unsigned char *>(stream.constants), stream.constantBytes},
                         {reinterpret_cast<unsigned char *>(stream.workspace), stream.workspaceBytes},
                         io.data(),
                         stream.ioCount};
    bmodel::Status cause;
    auto *commands = reinterpret_cast<const Descriptor *>(stream.code + stream.offset);
    if (simulator.run(commands, stream.bytes / kDescriptorBytes, buffers, cause, nullptr, stream.interrupt)) {
      return BMRT_OK;
    }
    if (cause.ok()) {
      return core::failCancelled(status);
    }
    return failIn(*stream.step, commands, cause, BMRT_INVALID_ARGUMENT, status);
  }

private:
  using Area = npu::Area;
  npu::Simulator simulator;
};

bmrt_code_t makeRunner(const StreamProgram &program, StreamRunner **out, bmrt_status_t *status) {
  Chip chip;
  BMRT_RETURN_IF_ERROR(findChip(program, chip, status));
  NpuRunner *runner = core::createObject<NpuRunner>(chip);
  if (!runner || !runner->allocate()) {
    if (runner) {
      runner->destroy();
    }
    return BMRT_FAIL(status, NO_MEMORY, "no memory for the %" PRIu64 " bytes of the chip's local memory",
                     chip.localBytes());
  }
  *out = runner;
  return BMRT_OK;
}

} // namespace

const core::Backend npu::backend = {bmodel::SubnetKind::Npu, check, load, verify, makeRunner};
