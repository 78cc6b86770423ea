//===- Parts.h - The parts of a model without control flow ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_PIPELINES_PARTS_H
#define TESSERA_CODEGEN_PIPELINES_PARTS_H

#include "codegen/Pipelines/Prepare.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace tessera::codegen {

/// A function that is compiled like a model: the whole model, or ops between and within its control flow.
struct ModelPart {
  std::string name; ///< of the function that @main calls; empty for the whole model
  mlir::func::FuncOp function;
  mlir::OwningOpRef<mlir::ModuleOp> module; ///< holds the function unless it is the whole model
  bool isRepeated = false;                  ///< a branch or loop calls it: a run does so any number of times
};

/// Splits a model at its control flow (top-outline-regions). @main then consists of calls of the parts, control flow
/// and constants. A model without control flow is one part. Checks the tables of |quantization| against the whole
/// model.
llvm::Expected<std::vector<ModelPart>> splitModel(mlir::func::FuncOp main,
                                                  const std::optional<Quantization> &quantization);

/// Returns the report on the parts so far and one more.
quant::QuantizeReport joinReports(std::optional<quant::QuantizeReport> total, quant::QuantizeReport part);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_PIPELINES_PARTS_H
