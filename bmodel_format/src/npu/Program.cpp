// SPDX-License-Identifier: Apache-2.0
//===- Program.cpp - Programs of the vector unit: checks and text -----------===//
#include "bmodel/npu/program.h"

#include <bit>
#include <cstdio>

namespace bmodel::npu {

const InstructionText *findInstruction(Op op) {
  static constexpr InstructionText texts[] = {
#define NPU_INSTRUCTION(name, opcode, operands, slow, meaning) {Op::name, #name, meaning, operands, slow},
#include "bmodel/npu/program.inc"
  };
  for (const InstructionText &text : texts) {
    if (text.op == op) {
      return &text;
    }
  }
  return nullptr;
}

bool verifyProgram(const Instruction *program, size_t count, uint32_t filled, Status &status) {
  if (count == 0 || count > kMostInstructions) {
    return BMODEL_FAIL(status, Corrupt, "a program of %zu instructions; allowed are 1 to %u", count, kMostInstructions);
  }
  for (size_t i = 0; i < count; ++i) {
    const Instruction &each = program[i];
    const InstructionText *text = findInstruction(each.op);
    if (!text) {
      return BMODEL_FAIL(status, Corrupt, "instruction %zu: unknown opcode %d", i, int(each.op));
    }
    uint32_t registers[] = {each.a, each.b, each.extra};
    for (uint32_t k = 0; k < text->operands; ++k) {
      if (registers[k] >= kRegisters || !(filled >> registers[k] & 1)) {
        return BMODEL_FAIL(status, Corrupt, "instruction %zu (%s) reads register %u, which has not been written", i,
                           text->name, registers[k]);
      }
    }
    if (each.y >= kRegisters) {
      return BMODEL_FAIL(status, Corrupt, "instruction %zu (%s) writes register %u; there are %u", i, text->name,
                         each.y, kRegisters);
    }
    filled |= 1u << each.y;
  }
  return true;
}

InstructionCounts countsOf(const Instruction *program, size_t count) {
  InstructionCounts counts;
  for (size_t i = 0; i < count; ++i) {
    const InstructionText *text = findInstruction(program[i].op);
    if (text && program[i].op != Op::constant) {
      ++(text->slow ? counts.slow : counts.plain);
    }
  }
  return counts;
}

std::string disassemble(const Instruction &instruction) {
  const InstructionText *text = findInstruction(instruction.op);
  if (!text) {
    return "? opcode " + std::to_string(int(instruction.op));
  }
  std::string line = std::string(text->name) + " r" + std::to_string(instruction.y);
  if (instruction.op == Op::constant) {
    char number[32];
    std::snprintf(number, sizeof number, ", %.9g", double(std::bit_cast<float>(instruction.extra)));
    return line + number;
  }
  uint32_t registers[] = {instruction.a, instruction.b, instruction.extra};
  for (uint32_t k = 0; k < text->operands; ++k) {
    line += ", r" + std::to_string(registers[k]);
  }
  return line;
}

} // namespace bmodel::npu
