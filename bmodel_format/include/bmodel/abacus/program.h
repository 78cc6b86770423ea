// SPDX-License-Identifier: Apache-2.0
//===- program.h - Programs of the Abacus ---------------------------------===//
//
// The smallest family of chips there can be: what a recipe for a new one shows, and what tests run. An Abacus has
// memory of its own, which the host cannot touch, and does one thing: nests of up to six loops over f32 tensors.
//
// A stream (RunStreamOnDef) is a list of commands, done one after another. Tensors are numbered as the step lists them,
// what it reads first; constants are among those. Behind them comes the streams' own workspace, as one more that may be
// written. Little endian.
//
//===----------------------------------------------------------------------===//
#ifndef BMODEL_ABACUS_PROGRAM_H
#define BMODEL_ABACUS_PROGRAM_H

#include <cstdint>

namespace bmodel::abacus {

/// SubnetDef.kernel_abi.
inline constexpr uint32_t kVersion = 1;
inline constexpr uint32_t kLoops = 6, kOperands = 4, kSteps = 16;
/// Elements that one command may visit.
inline constexpr uint64_t kMostVisits = uint64_t(1) << 40;

/// What a step of a map computes of registers a and b. min and max are NaN if one of them is, and take -0 for less than
/// 0.
enum class Op : uint32_t { constant, add, sub, mul, div, min, max, neg, abs, sqrt };

/// Writes the next register; |value| is the constant's.
struct Step {
  Op op;
  uint32_t a, b;
  float value;
};

/// The element at offset + sum of index * stride over the loops, counted in elements of a tensor. A stride of 0 reads
/// the same element again: a broadcast.
struct View {
  uint32_t tensor;
  uint32_t reserved; ///< 0
  uint64_t offset;
  uint64_t strides[kLoops];
};

enum class Kind : uint32_t {
  map, ///< result = the last register; registers are the operands, then what the steps have written
  sum  ///< result = operand 0 * operand 1, summed over the last loop from 0 up, fused: the order of numerics_float.h
};

/// Loops that are not used have size 1 and stride 0. A sum's result has stride 0 in the last loop.
struct Command {
  Kind kind;
  uint32_t operandCount, stepCount;
  uint32_t reserved; ///< 0
  uint64_t sizes[kLoops];
  View result, operands[kOperands];
  Step steps[kSteps];
};
static_assert(sizeof(Command) == 640);

} // namespace bmodel::abacus

#endif // BMODEL_ABACUS_PROGRAM_H
