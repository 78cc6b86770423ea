// SPDX-License-Identifier: Apache-2.0
//===- Program.cpp - Checks and runs the commands of an Abacus ------------===//
#include "Program.h"

#include <algorithm>
#include <cmath>

using namespace bmodel::abacus;

namespace {

/// Returns true if all elements of a view lie in |bytes|. The product of the sizes is at most kMostVisits.
bool isInside(const View &view, const uint64_t *sizes, uint64_t bytes) {
  uint64_t last = view.offset;
  for (uint32_t i = 0; i < kLoops; ++i) {
    uint64_t reach = 0;
    if (__builtin_mul_overflow(sizes[i] - 1, view.strides[i], &reach) || __builtin_add_overflow(last, reach, &last)) {
      return false;
    }
  }
  return last < bytes / sizeof(float);
}

float compute(const Step &step, const float *registers) {
  const float a = registers[step.a], b = registers[step.b];
  switch (step.op) {
  case Op::constant:
    return step.value;
  case Op::add:
    return a + b;
  case Op::sub:
    return a - b;
  case Op::mul:
    return a * b;
  case Op::div:
    return a / b;
  case Op::min:
    return a != a || b != b ? a + b : a == b ? (std::signbit(a) ? a : b) : std::min(a, b);
  case Op::max:
    return a != a || b != b ? a + b : a == b ? (std::signbit(a) ? b : a) : std::max(a, b);
  case Op::neg:
    return -a;
  case Op::abs:
    return std::fabs(a);
  case Op::sqrt:
    return std::sqrt(a);
  }
  return 0;
}

float *elementOf(const View &view, const uint64_t *index, char *const *tensors) {
  uint64_t at = view.offset;
  for (uint32_t i = 0; i < kLoops; ++i) {
    at += index[i] * view.strides[i];
  }
  return reinterpret_cast<float *>(tensors[view.tensor]) + at;
}

} // namespace

const char *bmrt::abacus::faultOf(const Command &command, const uint64_t *tensorBytes, uint32_t inputs,
                                  uint32_t tensors) {
  uint64_t visits = 1;
  for (uint64_t size : command.sizes) {
    if (size == 0 || __builtin_mul_overflow(visits, size, &visits) || visits > kMostVisits) {
      return "its loops are empty or too long";
    }
  }
  const bool isSum = command.kind == Kind::sum;
  if (command.kind > Kind::sum || command.operandCount > kOperands || command.stepCount > kSteps ||
      command.operandCount + command.stepCount == 0 ||
      (isSum && (command.operandCount != 2 || command.stepCount != 0))) {
    return "its kind, operand count or step count is invalid";
  }
  if (command.result.tensor < inputs || command.result.tensor >= tensors) {
    return "its result is not a writable tensor";
  }
  if (isSum && command.result.strides[kLoops - 1] != 0) {
    return "the result of a sum moves in the last loop";
  }
  if (!isInside(command.result, command.sizes, tensorBytes[command.result.tensor])) {
    return "its result reaches outside its tensor";
  }
  for (uint32_t i = 0; i < command.operandCount; ++i) {
    const View &view = command.operands[i];
    if (view.tensor >= tensors || !isInside(view, command.sizes, tensorBytes[view.tensor])) {
      return "an operand is not a tensor of the step, or reaches outside it";
    }
  }
  for (uint32_t i = 0; i < command.stepCount; ++i) {
    const Step &step = command.steps[i];
    const uint32_t known = std::max(command.operandCount + i, 1u); // a constant may be the first step
    if (step.op > Op::sqrt || step.a >= known || step.b >= known) {
      return "a step has an unknown kind, or reads a value that was not computed";
    }
  }
  return nullptr;
}

void bmrt::abacus::run(const Command &command, char *const *tensors) {
  uint64_t index[kLoops] = {};
  float sum = 0;
  for (;;) {
    float registers[kOperands + kSteps] = {};
    for (uint32_t i = 0; i < command.operandCount; ++i) {
      registers[i] = *elementOf(command.operands[i], index, tensors);
    }
    for (uint32_t i = 0; i < command.stepCount; ++i) {
      registers[command.operandCount + i] = compute(command.steps[i], registers);
    }
    if (command.kind == Kind::sum) {
      sum = std::fma(registers[0], registers[1], index[kLoops - 1] ? sum : 0);
    }
    *elementOf(command.result, index, tensors) =
        command.kind == Kind::sum ? sum : registers[command.operandCount + command.stepCount - 1];
    uint32_t loop = kLoops;
    while (loop > 0 && ++index[loop - 1] == command.sizes[loop - 1]) {
      index[--loop] = 0;
    }
    if (loop == 0) {
      return;
    }
  }
}
