//===- Prepare.h - What a Top model goes through before it is lowered -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_PIPELINES_PREPARE_H
#define TESSERA_CODEGEN_PIPELINES_PREPARE_H

#include "codegen/Target/Phases.h"
#include "quant/Transforms/InputsOutputs.h"
#include "quant/Transforms/Quantize.h"

#include "bmodel/writer.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include <optional>

namespace tessera::codegen {

/// What --quantize goes by, other than F32.
struct Quantization {
  quant::QuantizeOptions options;
  quant::CalibrationTable table; ///< may be empty where nothing is to be INT8
  quant::QuantizeTable choices;
};

/// Puts pairs of quantize and dequantize, or of casts, into the function by the tables. f16 models are widened first;
/// their tensors have their names before.
llvm::Expected<quant::QuantizeReport> quantizeModel(
    mlir::func::FuncOp function, const Quantization &quantization,
    llvm::function_ref<void(size_t, size_t)> progress = [](size_t, size_t) {});

/// With a range for every tensor, as if it had been calibrated: for what the values do not decide. Names the tensors.
Quantization madeUp(mlir::func::FuncOp function, quant::Precision precision);

/// @main of a module that holds nothing which cannot be lowered.
llvm::Expected<mlir::func::FuncOp> deployableFunction(mlir::ModuleOp module);

/// Quantises the function where that is asked for, and gives inputs and outputs their form; what was decided.
llvm::Expected<std::optional<quant::QuantizeReport>> prepareModel(mlir::func::FuncOp function,
                                                                  const std::optional<Quantization> &quantization,
                                                                  const quant::InputsOutputs &inputsOutputs,
                                                                  const PhaseObserver &observer);

llvm::Error writeText(mlir::ModuleOp module, const std::string &path);

/// Says of the model's integer tensors which real numbers they stand for.
void addScales(bmodel::StageDefT &stage, const quant::QuantizeReport &report);

/// Says in the file whether all engines give the same bits: property `bit_equal` = "all", or one `bit_equal_except` for
/// each node that makes them differ; nothing of models that promise none.
void addExactness(bmodel::ModelDefT &model, const std::optional<std::vector<std::string>> &exceptions);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_PIPELINES_PREPARE_H
