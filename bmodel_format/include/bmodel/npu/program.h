// SPDX-License-Identifier: Apache-2.0
//===- program.h - Programs of the vector unit ------------------------------===//
#ifndef BMODEL_NPU_PROGRAM_H
#define BMODEL_NPU_PROGRAM_H

#include "bmodel/status.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace bmodel::npu {

inline constexpr uint32_t kRegisters = 32; ///< f32 registers; 0 to 3 initially hold the operands a to d
inline constexpr uint32_t kMapOperands = 4;
inline constexpr uint32_t kMostInstructions = 64;

enum class Op : uint8_t {
#define NPU_INSTRUCTION(name, opcode, operands, slow, meaning) name = opcode,
#include "bmodel/npu/program.inc"
};

/// y = op(a, b, extra), where y, a and b are register numbers. Eight bytes in files, little endian.
struct Instruction {
  Op op{};
  uint8_t y = 0, a = 0, b = 0;
  uint32_t extra = 0;
};
static_assert(sizeof(Instruction) == 8);

struct InstructionText {
  Op op;
  const char *name, *meaning;
  uint32_t operands;
  bool slow;
};
/// Returns null if no instruction has this opcode.
const InstructionText *findInstruction(Op op);

/// Checks that instructions and registers are known, and that every register is written before it is read or is a
/// member of the bit set `filled`.
bool verifyProgram(const Instruction *program, size_t count, uint32_t filled, Status &status);

/// The instruction counts that determine a program's time. `constant` takes no time: constants are loaded before the
/// first element.
struct InstructionCounts {
  uint8_t plain = 0, slow = 0;
};
InstructionCounts countsOf(const Instruction *program, size_t count);

/// Returns the instruction as text: "mul r4, r0, r1" or "constant r5, 0.5".
std::string disassemble(const Instruction &instruction);

} // namespace bmodel::npu

#endif // BMODEL_NPU_PROGRAM_H
