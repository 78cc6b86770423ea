//===- CommandCode.h - A command's fields as a property ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_IR_COMMANDCODE_H
#define TESSERA_CODEGEN_NPU_IR_COMMANDCODE_H

#include "bmodel/npu/isa.h"
#include "mlir/IR/Attributes.h"
#include "mlir/IR/Diagnostics.h"

namespace tessera::npu {

/// The fields of a command. Its tensors that are there have the region `local`; their memories are operands, in the
/// order of the fields, and their offsets count from the memories' first bytes (below 0 where only a part that begins
/// behind is in the memory).
struct CommandCode {
  bmodel::npu::Descriptor descriptor;

  llvm::StringRef bytes() const { return {reinterpret_cast<const char *>(&descriptor), sizeof descriptor}; }
  bool operator==(const CommandCode &other) const { return bytes() == other.bytes(); }

  mlir::Attribute toAttribute(mlir::MLIRContext *context) const;
  static mlir::LogicalResult fromAttribute(CommandCode &code, mlir::Attribute attribute,
                                           llvm::function_ref<mlir::InFlightDiagnostic()> emitError);
};

/// Calls visit(name, tensor) for each tensor field of a command, present or not; the tensor may be changed.
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
