// SPDX-License-Identifier: Apache-2.0
//===- CheckPrograms.cpp - Checks the map programs of a stream --------------===//
#include "bmodel/npu/check.h"
#include "bmodel/npu/program.h"

#include <cstring>

namespace bmodel::npu {
namespace {

/// Returns the registers that the command's operands fill, as a bit set.
uint32_t filledBy(const map_command &map) {
  uint32_t filled = 0;
  const Tensor *operands[] = {&map.a, &map.b, &map.c, &map.d};
  for (int i = 0; i < 4; ++i) {
    filled |= uint32_t(operands[i]->region != Region::none) << i;
  }
  return filled;
}

} // namespace

bool checkPrograms(const Descriptor *commands, size_t count, const unsigned char *constants, Status &status) {
  for (size_t i = 0; i < count; ++i) {
    if (commands[i].header.opcode != Opcode::map) {
      continue;
    }
    auto map = commands[i].as<map_command>();
    Instruction program[kMostInstructions];
    std::memcpy(program, constants + map.program.offset, sizeof(Instruction) * map.length);
    if (!verifyProgram(program, map.length, filledBy(map), status)) {
      Status inner = status;
      return BMODEL_FAIL_AT(status, i, Corrupt, "command %zu (map): %s", i, inner.message);
    }
    InstructionCounts counts = countsOf(program, map.length);
    if (counts.plain != map.plain || counts.slow != map.slow) {
      return BMODEL_FAIL_AT(status, i, Corrupt,
                            "command %zu (map): states %u plain and %u slow instructions; its program has %u and %u", i,
                            map.plain, map.slow, counts.plain, counts.slow);
    }
  }
  return true;
}

} // namespace bmodel::npu
