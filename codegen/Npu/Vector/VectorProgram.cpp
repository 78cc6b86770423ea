//===- VectorProgram.cpp - Scalar regions on the NPU's vector unit --------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Vector/VectorProgram.h"

#include "codegen/Npu/Vector/ScalarTranslator.h"

#include "mlir/IR/Block.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <limits>

using namespace mlir;

namespace tessera::npu {
using bmodel::npu::Op;

constexpr double kExact = 1 << 24; // whole numbers up to here are exact in f32

static llvm::Error reject(Operation *op, const llvm::Twine &why) {
  return llvm::createStringError("'" + op->getName().getStringRef() + "' " + why);
}

/// Returns the value in front of clamps at bounds at which storing saturates anyway.
unsigned ScalarTranslator::withoutBounds(unsigned result, Interval allowed) const {
  while (nodes[result].op == Op::maximum || nodes[result].op == Op::minimum) {
    const Node &bound = nodes[result];
    auto isOutside = [&](unsigned operand) {
      const Node &node = nodes[operand];
      return node.op == Op::constant && !node.isArgument &&
             (bound.op == Op::maximum ? node.constant <= allowed.low : node.constant >= allowed.high);
    };
    if (isOutside(bound.operands[1]) && nodes[bound.operands[0]].isWhole) {
      result = bound.operands[0];
    } else {
      break;
    }
  }
  return result;
}

/// Assigns registers. A register is free again after the last instruction that reads it.
Instructions ScalarTranslator::assignRegisters(unsigned result) {
  std::vector<unsigned> lastUse(nodes.size(), 0), places(nodes.size());
  std::vector<bool> needed(nodes.size(), false);
  needed[result] = true, lastUse[result] = nodes.size();
  for (unsigned i = nodes.size(); i-- > 0;) {
    for (unsigned operand : needed[i] ? ArrayRef<unsigned>(nodes[i].operands) : ArrayRef<unsigned>()) {
      needed[operand] = true, lastUse[operand] = std::max(lastUse[operand], i);
    }
  }
  Instructions made;
  std::vector<unsigned> holds(bmodel::npu::kRegisters, ~0u); // register -> node
  for (unsigned i = 0; i < nodes.size(); ++i) {
    const Node &node = nodes[i];
    for (unsigned &held : holds) {
      held = held != ~0u && lastUse[held] <= i ? ~0u : held;
    }
    if (!needed[i]) {
      continue;
    }
    unsigned place = node.isArgument ? i : llvm::find(holds, ~0u) - holds.begin();
    if (place == holds.size()) {
      return {}; // out of registers
    }
    holds[place] = i, places[i] = place;
    if (!node.isArgument) {
      unsigned read[3] = {};
      for (auto [k, operand] : llvm::enumerate(node.operands)) {
        read[k] = places[operand];
      }
      uint32_t extra = node.op == Op::constant ? llvm::bit_cast<uint32_t>(node.constant) : read[2];
      made.push_back({node.op, uint8_t(place), uint8_t(read[0]), uint8_t(read[1]), extra});
    }
  }
  return made;
}

llvm::Expected<Instructions> ScalarTranslator::run(Region &region, ArrayRef<Interval> arguments, Type type) {
  if (llvm::Expected<Interval> bound = bounds(region, arguments); !bound) {
    return bound.takeError();
  }
  Block &block = region.front();
  unsigned result = places[block.getTerminator()->getOperand(0)];
  Interval allowed = intervalOf(type);
  bool isLong =
      isa<IntegerType>(type) && type.getIntOrFloatBitWidth() > 24; // the register may hold only the nearest f32
  allowed = isLong ? Interval{-kExact, kExact} : allowed;
  if (isa<IntegerType>(type) && !nodes[result].interval.within(allowed.low, allowed.high)) {
    return reject(block.getTerminator(), "of numbers that may not fit its type");
  }
  result = isa<IntegerType>(type) && !type.isInteger(1) ? withoutBounds(result, intervalOf(type)) : result;
  if (nodes[result].op == (type.isBF16() ? Op::roundBf16 : Op::roundF16) && type.isFloat(16)) {
    result = nodes[result].operands[0]; // storing rounds
  }
  if (nodes[result].isArgument || nodes[result].op == Op::constant) {
    result = add(Op::maximum, {result, result}, nodes[result].interval); // the last instruction must produce the result
  }
  Instructions made = assignRegisters(result);
  if (made.empty() || made.size() > bmodel::npu::kMostInstructions) {
    return reject(block.getParentOp(),
                  "needs more instructions or registers than a program of the vector unit may have");
  }
  return made;
}

Interval intervalOf(Type type) {
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    return {-infinity, infinity};
  }
  if (integer.getWidth() == 1) {
    return {0, 1};
  }
  double half = std::ldexp(1, integer.getWidth() - 1);
  return integer.isUnsigned() ? Interval{0, 2 * half - 1} : Interval{-half, half - 1};
}

std::optional<Interval> boundsOf(Region &region, ArrayRef<Interval> arguments) {
  llvm::Expected<Interval> bound = ScalarTranslator().bounds(region, arguments);
  if (!bound) {
    llvm::consumeError(bound.takeError());
    return std::nullopt;
  }
  return *bound;
}

llvm::Expected<Instructions> programOf(Region &region, ArrayRef<Interval> arguments, Type result) {
  if (region.empty()) {
    return Instructions();
  }
  llvm::Expected<Instructions> made = ScalarTranslator().run(region, arguments, result);
  if (made) {
    return made;
  }
  llvm::consumeError(made.takeError());
  ScalarTranslator divides;
  divides.keepDivisions();
  return divides.run(region, arguments, result);
}

} // namespace tessera::npu
