//===- Forms.h - In which integers each tensor is held ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quant/Transforms/Decisions.h"
#include "quant/Transforms/OpKinds.h"

namespace tessera::quant {

/// What is known when it is decided which tensors are integers.
struct FormQuestion {
  mlir::func::FuncOp function;
  llvm::ArrayRef<mlir::Operation *> ops; ///< in program order
  Precision standard;
  bool learnedWeights;                          ///< weights may be replaced by those of the calibration table
  const llvm::DenseSet<mlir::Value> &quantized; ///< the tensors that become integers
  llvm::function_ref<OpKind(mlir::Operation *)> kindOf;
  llvm::function_ref<const Choice *(mlir::Operation *)> choiceOf; ///< null: none
  llvm::function_ref<const Range *(mlir::Value)> rangeOf;         ///< null: none
  llvm::function_ref<llvm::StringRef(mlir::Value)> nameOf;
};

/// Fills in `tensors` and `wide` by `integers`: one range for what is only moved, 16 bits where 8 do too much harm or
/// are not wanted, and as many levels of these as no sum overflows with.
void assignForms(const FormQuestion &question, Decisions &decisions);

} // namespace tessera::quant
