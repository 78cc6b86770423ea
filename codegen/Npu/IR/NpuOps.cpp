//===- NpuOps.cpp - Programs of the NPU -----------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/IR/NpuOps.h"

#include "codegen/Npu/Chips.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera::npu;
namespace hw = bmodel::npu;

#include "codegen/Npu/IR/NpuOpsEnums.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "codegen/Npu/IR/NpuTypes.cpp.inc"

#define GET_OP_CLASSES
#include "codegen/Npu/IR/NpuOps.cpp.inc"

void NpuDialect::addPrograms() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "codegen/Npu/IR/NpuTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "codegen/Npu/IR/NpuOps.cpp.inc"
      >();
}

void ProgramOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  for (auto [index, argument] : llvm::enumerate(region.getArguments())) {
    size_t io = index < 2 ? 0 : index - 2;
    setName(argument, index == 0         ? "constants"
                      : index == 1       ? "workspace"
                      : io < getInputs() ? "input" + std::to_string(io)
                                         : "output" + std::to_string(io - getInputs()));
  }
}

bool ProgramOp::readChip(StringRef text, hw::Chip &chip, std::string &error) {
  if (text.starts_with("{")) {
    return hw::parseChip(text.str(), "chip", chip, error);
  }
  llvm::Expected<hw::Chip> found = findChip(text);
  if (!found) {
    error = llvm::toString(found.takeError());
    return false;
  }
  chip = std::move(*found);
  return true;
}

std::string ProgramOp::nameChip(const hw::Chip &chip) {
  std::string description = hw::describe(chip), error;
  hw::Chip builtin;
  std::optional<std::string> known = findBuiltinChip(chip.name);
  bool isKnown = known && hw::parseChip(*known, chip.name, builtin, error) && hw::describe(builtin) == description;
  return isKnown ? chip.name : description;
}

/// Checks the arguments and the chip.
LogicalResult ProgramOp::verify() {
  Block &block = getBody().front();
  if (block.getNumArguments() < 2 + getInputs()) {
    return emitOpError() << "has " << block.getNumArguments()
                         << " memories, expected those of constants, workspace and inputs, at least "
                         << 2 + getInputs();
  }
  for (Type type : block.getArgumentTypes()) {
    if (!isa<MemoryType>(type)) {
      return emitOpError() << "has an argument of " << type << ", which is not a memory";
    }
  }
  hw::Chip chip;
  std::string error;
  if (!readChip(getChip(), chip, error)) {
    return emitOpError() << "is for an invalid chip: " << error;
  }
  return success();
}

LogicalResult BufferOp::verify() {
  if (getBytes() <= 0) {
    return emitOpError() << "has " << getBytes() << " bytes";
  }
  if (getSizes().size() != 4) {
    return emitOpError() << "has " << getSizes().size() << " sizes, expected those of n, c, h, w";
  }
  if (getAddress().has_value() != getLive().has_value()) {
    return emitOpError("has either an address or live stages, expected both or none");
  }
  if (getAddress() && (*getAddress() < 0 || getLive()->size() != 2 || (*getLive())[0] > (*getLive())[1])) {
    return emitOpError("has a negative address, or live stages that are not a range of two numbers");
  }
  return success();
}
