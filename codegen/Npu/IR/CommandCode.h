//===- CommandCode.h - A command's fields as a property ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_IR_COMMANDCODE_H
#define TESSERA_CODEGEN_NPU_IR_COMMANDCODE_H

#include "bmodel/npu/isa.h"
#include "mlir/IR/Attributes.h"
#include "mlir/IR/Diagnostics.h"

namespace tessera::npu {

/// The fields of a command. Every tensor that is present has the region `local`. Its memory is an operand of the op, in
/// the order of the fields; its offset counts from the memory's first byte, and is negative if only a later part of the
/// tensor is in the memory.
struct CommandCode {
  bmodel::npu::Descriptor descriptor;

  llvm::StringRef bytes() const { return {reinterpret_cast<const char *>(&descriptor), sizeof descriptor}; }
  bool operator==(const CommandCode &other) const { return bytes() == other.bytes(); }

  mlir::Attribute toAttribute(mlir::MLIRContext *context) const;
  static mlir::LogicalResult fromAttribute(CommandCode &code, mlir::Attribute attribute,
                                           llvm::function_ref<mlir::InFlightDiagnostic()> emitError);
};

/// Calls visit(name, tensor) for each tensor field of a command, present or not. |visit| may change the tensor.
template <typename Visit>
void eachTensor(bmodel::npu::Descriptor &command, Visit visit) {
  for (const bmodel::npu::FieldText &field : bmodel::npu::findCommand(command.header.opcode)->fields) {
    if (llvm::StringRef(field.type) == "Tensor") {
      bmodel::npu::Tensor tensor;
      std::memcpy(&tensor, command.body + field.offset, sizeof tensor);
      visit(field.name, tensor);
      std::memcpy(command.body + field.offset, &tensor, sizeof tensor);
    }
  }
}

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_IR_COMMANDCODE_H
