//===- ChooseForms.h - Forms compared by the schedule search ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_DECISIONS_CHOOSEFORMS_H
#define TESSERA_CODEGEN_NPU_DECISIONS_CHOOSEFORMS_H

#include "bmodel/npu/chip.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::npu {

/// Attributes of each convolution that can compute the map in front of it (e.g. the quantisation of a picture), and of
/// that map.
using FormsOfInputs = llvm::SmallVector<std::pair<mlir::Operation *, mlir::DictionaryAttr>>;
FormsOfInputs formsOfInputs(mlir::func::FuncOp function);
/// Restores the attributes that formsOfInputs has recorded.
void setForms(const FormsOfInputs &forms);

/// Chooses the forms of these convolutions again, with the map in front fused wherever possible if |fuses|, else
/// without.
void fuseInputs(mlir::func::FuncOp function, const bmodel::npu::Chip &chip, bool fuses);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_DECISIONS_CHOOSEFORMS_H
