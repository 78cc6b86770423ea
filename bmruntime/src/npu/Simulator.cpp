// SPDX-License-Identifier: Apache-2.0
//===- Simulator.cpp - Functional simulator of the NPU ----------------------===//
#include "Simulator.h"

namespace bmrt::npu {

using namespace bmodel;
using namespace bmodel::npu;

namespace {

const char *executeCommand(const Descriptor &command, Machine &machine) {
  switch (command.header.opcode) {
#define NPU_COMMAND(name, opcode, queue, meaning)                                                                      \
  case Opcode::name:                                                                                                   \
    return execute(command.as<name##_command>(), machine);
#include "bmodel/npu/isa.inc"
  }
  return "unknown command";
}

} // namespace

bool Simulator::run(const Descriptor *commands, size_t count, const Buffers &buffers, Status &status,
                    const size_t *order, const bmrt_interrupt_t *interrupt) {
  machine.memories.bind(buffers);
  for (size_t at = 0; at < count; ++at) {
    size_t i = order ? order[at] : at;
    if (interrupt && interrupt->is_requested(interrupt->user)) {
      return false;
    }
    if (const char *fault = executeCommand(commands[i], machine)) {
      return BMODEL_FAIL_AT(status, i, Corrupt, "command %zu (%s): %s", i, findCommand(commands[i].header.opcode)->name,
                            fault);
    }
  }
  return true;
}

} // namespace bmrt::npu
