// SPDX-License-Identifier: Apache-2.0
//===- program.h - Programs of the Abacus ---------------------------------===//
//
// The Abacus is the smallest chip family possible; the recipe for a new family uses it, and tests run it. An Abacus has
// its own memory, which the host cannot access, and executes one kind of command: a nest of up to six loops over f32
// tensors.
//
// A stream (RunStreamOnDef) is a list of commands, executed one after another. Commands refer to a tensor by its
// position in the step's list: inputs (constants included) first, then outputs. If the subnet has a stream workspace,
// the workspace is one more writable tensor after them. All fields are little endian.
//
//===----------------------------------------------------------------------===//
#ifndef BMODEL_ABACUS_PROGRAM_H
#define BMODEL_ABACUS_PROGRAM_H

#include <cstdint>

namespace bmodel::abacus {

/// SubnetDef.kernel_abi.
inline constexpr uint32_t kVersion = 1;
inline constexpr uint32_t kLoops = 6, kOperands = 4, kSteps = 16;
/// Upper bound of the number of elements that one command visits.
inline constexpr uint64_t kMostVisits = uint64_t(1) << 40;

/// The operation that a step of a map applies to registers a and b. min and max return NaN if either operand is NaN,
/// and order -0 below 0.
enum class Op : uint32_t { constant, add, sub, mul, div, min, max, neg, abs, sqrt };

/// One operation of a map, which writes the next register. |value| is the operand of `constant`.
struct Step {
  Op op;
  uint32_t a, b;
  float value;
};

/// The elements of a tensor that a loop nest visits: offset + sum of index * stride over the loops, in elements. A
/// stride of 0 reads the same element in every iteration (broadcast).
struct View {
  uint32_t tensor;
  uint32_t reserved; ///< 0
  uint64_t offset;
  uint64_t strides[kLoops];
};

enum class Kind : uint32_t {
  map, ///< result = the last register; the registers hold the operands, then the results of the steps
  sum  ///< result = operand 0 * operand 1, summed over the last loop by fused multiply-adds, in index order from 0
};

/// Unused loops have size 1 and stride 0. The result of a sum has stride 0 in the last loop.
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
