// SPDX-License-Identifier: Apache-2.0
//===- NpuBackend.cpp - Command streams on the NPU in software --------------===//
#include "NpuBackend.h"

#include "Simulator.h"
#include "bmodel/npu/check.h"

#include <cinttypes>

using namespace bmrt;
using namespace bmodel::npu;
using core::CodeImage;
using core::StreamMemory;
using core::StreamProgram;
using core::StreamRunner;

namespace {

/// Streams have no kernels; they stay where they are in the file.
class StreamImage final : public CodeImage {
public:
  void destroy() override { core::destroyObject(this); }
  bm_kernel_fn findKernel(const char *) const override { return nullptr; }
};

bmrt_code_t check(const bmodel::SubnetDef &subnet, bmrt_status_t *status) {
  if (subnet.kernel_abi() != kIsaVersion) {
    return BMRT_FAIL(status, UNSUPPORTED,
                     "subnet '%.60s' has commands of version %" PRIu32 "; this runtime runs version %" PRIu32,
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

/// The commands of a step, checked; the status says which of them is wrong.
bmrt_code_t checkStream(const StreamProgram &program, const bmodel::RunStreamDef &def, const Chip &chip,
                        bmrt_status_t *status) {
  if (def.offset() % kDescriptorBytes || def.bytes() % kDescriptorBytes) {
    return BMRT_FAIL(status, CORRUPT, "a stream of %" PRIu64 " bytes at %" PRIu64 " is no list of commands",
                     def.bytes(), def.offset());
  }
  RegionSizes sizes{.constants = program.memory.constantBytes,
                    .workspace = program.memory.workspaceBytes,
                    .io = {},
                    .inputs = program.memory.inputs};
  sizes.io.assign(program.memory.ioBytes, program.memory.ioBytes + program.memory.ioCount);
  auto *commands = reinterpret_cast<const Descriptor *>(program.code + def.offset());
  size_t count = def.bytes() / kDescriptorBytes;
  bmodel::Status cause;
  bool good = checkStream(commands, count, chip, sizes, program.memory.constants, cause);
  return good ? BMRT_OK : core::fail(status, cause, "command stream");
}

bmrt_code_t verify(const StreamProgram &program, bmrt_status_t *status) {
  Chip chip;
  BMRT_RETURN_IF_ERROR(findChip(program, chip, status));
  for (const bmodel::StepDef *step : *program.subnet->plan()) {
    if (const bmodel::RunStreamDef *stream = step->op_as_RunStreamDef()) {
      BMRT_RETURN_IF_ERROR(checkStream(program, *stream, chip, status));
    }
  }
  return BMRT_OK;
}

/// One chip, whose local memory stays from run to run.
class NpuRunner final : public StreamRunner {
public:
  explicit NpuRunner(const Chip &chip) : simulator(chip) {}
  void destroy() override { core::destroyObject(this); }

  bool allocate() { return simulator.allocate(); }

  bmrt_code_t run(const unsigned char *code, const bmodel::RunStreamDef &def, const StreamMemory &memory,
                  bmrt_status_t *status) override {
    core::Array<Area> io;
    if (!io.allocate(memory.ioCount)) {
      return BMRT_FAIL(status, NO_MEMORY, "no memory for %" PRIu32 " buffers", memory.ioCount);
    }
    for (uint32_t i = 0; i < memory.ioCount; ++i) {
      io[i] = {reinterpret_cast<unsigned char *>(memory.io[i]), memory.ioBytes[i]};
    }
    npu::Buffers buffers{{const_cast<unsigned char *>(memory.constants), memory.constantBytes},
                         {reinterpret_cast<unsigned char *>(memory.workspace), memory.workspaceBytes},
                         io.data(),
                         memory.ioCount};
    bmodel::Status cause;
    auto *commands = reinterpret_cast<const Descriptor *>(code + def.offset());
    if (simulator.run(commands, def.bytes() / kDescriptorBytes, buffers, cause)) {
      return BMRT_OK;
    }
    return core::fail(status, BMRT_INVALID_ARGUMENT, cause.file, cause.line, "%s", cause.message);
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
