// SPDX-License-Identifier: Apache-2.0
//===- CheckOperands.cpp - Checks operands against regions and types --------===//
#include "bmodel/npu/check.h"

#include "CheckCommands.h"

#include <algorithm>
#include <cstdlib>

namespace bmodel::npu {
namespace {

uint64_t sizeOf(Region region, const Chip &chip, const RegionSizes &sizes) {
  switch (region) {
  case Region::none:
    return 0;
  case Region::local:
    return chip.laneBytes;
  case Region::constants:
    return sizes.constants;
  case Region::workspace:
    return sizes.workspace;
  default:
    break;
  }
  size_t index = size_t(region) - size_t(Region::io);
  return index < sizes.io.size() ? sizes.io[index] : 0;
}

/// Number of indices that each dim takes within one lane, or in all of DDR.
struct Extents {
  int64_t dims[4];
};

Extents extentsOf(const Operand &operand, const Chip &chip) {
  const uint32_t *dims = operand.shape.dims;
  Extents result{{dims[0], dims[1], dims[2], dims[3]}};
  if (operand.tensor.region == Region::local) {
    result.dims[1] = (int64_t(operand.tensor.lane) + dims[1] - 1) / chip.lanes + 1;
  }
  return result;
}

const char *faultOfPlace(const Operand &operand, const Chip &chip, const RegionSizes &sizes) {
  const Tensor &tensor = operand.tensor;
  Extents extents = extentsOf(operand, chip);
  int64_t element = int64_t(npu::sizeOf(tensor.type));
  __int128 low = tensor.offset, high = low + element; // a dim times a stride cannot overflow 128 bits
  for (int i = 0; i < 4; ++i) {
    __int128 extent = __int128(extents.dims[i] - 1) * tensor.strides[i];
    (extent < 0 ? low : high) += extent;
    if (tensor.strides[i] % element) {
      return "has a stride that is not a multiple of its element size";
    }
  }
  if (tensor.offset % uint64_t(element)) {
    return "has an offset that is not a multiple of its element size";
  }
  return low < 0 || high > __int128(sizeOf(tensor.region, chip, sizes)) ? "reaches outside its region" : nullptr;
}

/// Returns true if every element has its own bytes: the dims nest, i.e. each stride spans all dims inside it.
bool nests(const Operand &operand, const Chip &chip) {
  struct Dim {
    int64_t stride, extent;
  } dims[4];
  Extents extents = extentsOf(operand, chip);
  for (int i = 0; i < 4; ++i) {
    dims[i] = {std::abs(int64_t(operand.tensor.strides[i])), extents.dims[i]};
  }
  std::sort(std::begin(dims), std::end(dims), [](Dim a, Dim b) { return a.stride < b.stride; });
  int64_t span = int64_t(npu::sizeOf(operand.tensor.type)); // no overflow: the operand is known to lie inside its
                                                            // region
  for (const Dim &dim : dims) {
    if (dim.extent > 1 && dim.stride < span) {
      return false;
    }
    span += (dim.extent - 1) * dim.stride;
  }
  return true;
}

/// Returns null, or what is wrong with the place of the operand.
const char *faultOf(const Operand &operand, const Chip &chip, const RegionSizes &sizes) {
  const Tensor &tensor = operand.tensor;
  if (tensor.region == Region::none) {
    return "is absent";
  }
  bool isLocal = tensor.region == Region::local;
  if (isLocal && tensor.lane >= chip.lanes) {
    return "begins in a lane that the chip does not have";
  }
  if (!isLocal && tensor.lane) {
    return "names a lane, but does not lie in local memory";
  }
  if (const char *fault = faultOfPlace(operand, chip, sizes)) {
    return fault;
  }
  if (!operand.repeats && !nests(operand, chip)) {
    return "has elements that share bytes";
  }
  bool isInput = tensor.region >= Region::io && size_t(tensor.region) - size_t(Region::io) < sizes.inputs;
  return operand.written && (tensor.region == Region::constants || isInput)
             ? "is written, but lies among inputs or constants"
             : nullptr;
}

/// Returns null, or why a compute command cannot use the operand. `lane` is the first lane of its result.
const char *faultOfCompute(const Operand &operand, uint16_t lane, const Chip &chip) {
  Type type = operand.tensor.type;
  bool has = type == Type::bf16  ? chip.computes("bf16")
             : type == Type::f16 ? chip.computes("f16")
             : type == Type::i16 ? chip.computes("int16")
             : type == Type::f32 ? chip.computes("f32")
             : type == Type::i32 ? true
                                 : chip.computes("int8");
  if (!has) {
    return "has a type that the chip does not support";
  }
  if (operand.tensor.region == Region::constants && operand.anyLane) {
    return nullptr; // the program of a map
  }
  if (operand.tensor.region != Region::local) {
    return "lies outside the chip: compute commands work on local memory";
  }
  return operand.anyLane || operand.tensor.lane == lane ? nullptr : "begins in another lane than the result";
}

} // namespace

bool checkOperands(const Descriptor *commands, size_t count, const Chip &chip, const RegionSizes &sizes,
                   Status &status) {
  if (!verifyStream(commands, count, status)) {
    return false;
  }
  for (size_t i = 0; i < count; ++i) {
    const CommandText &text = *findCommand(commands[i].header.opcode);
    if (const char *fault = faultOf(commands[i], chip)) {
      return BMODEL_FAIL_AT(status, i, Corrupt, "command %zu (%s): %s", i, text.name, fault);
    }
    Operand operands[kMostOperands];
    size_t number = operandsOf(commands[i], operands);
    for (size_t k = 0; k < number; ++k) {
      const char *fault = faultOf(operands[k], chip, sizes);
      if (!fault && text.queue == Queue::compute) {
        fault = faultOfCompute(operands[k], operands[0].tensor.lane, chip);
      }
      if (fault) {
        return BMODEL_FAIL_AT(status, i, Corrupt, "command %zu (%s): operand %s %s", i, text.name, operands[k].name,
                              fault);
      }
    }
  }
  return true;
}

} // namespace bmodel::npu
