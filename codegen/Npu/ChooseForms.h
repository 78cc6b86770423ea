//===- ChooseForms.h - Forms that a schedule is judged with -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_CHOOSEFORMS_H
#define TESSERA_CODEGEN_NPU_CHOOSEFORMS_H

#include "bmodel/npu/chip.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::npu {

/// What convolutions that can do the map in front of them, as pictures are quantised, and these maps say.
using FormsOfInputs = llvm::SmallVector<std::pair<mlir::Operation *, mlir::DictionaryAttr>>;
FormsOfInputs formsOfInputs(mlir::func::FuncOp function);
void setForms(const FormsOfInputs &forms);

/// Chooses the forms of these convolutions again: with the map where they can, or without.
void fuseInputs(mlir::func::FuncOp function, const bmodel::npu::Chip &chip, bool fuses);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_CHOOSEFORMS_H
