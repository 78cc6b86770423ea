//===- Prepare.h - Preparation of a Top model for lowering ------*- C++ -*-===//
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

/// Inputs of a quantisation (--quantize other than F32).
struct Quantization {
  quant::QuantizeOptions options;
  quant::CalibrationTable table; ///< may be empty if nothing becomes INT8
  quant::QuantizeTable choices;
  bool isChecked = false; ///< the tables were checked against the whole model, of which the function is a part
};

/// Inserts quantize/dequantize pairs, or pairs of casts, into the function according to the tables. f16 models are
/// widened first; their tensors must be named before. Precisions that the function's ops have already are kept.
llvm::Expected<quant::QuantizeReport> quantizeModel(
    mlir::func::FuncOp function, const Quantization &quantization,
    llvm::function_ref<void(size_t, size_t)> progress = [](size_t, size_t) {}, const IrObserver &observeIr = {});

/// Returns a quantisation with a range for every tensor, for questions that do not depend on the values. Names the
/// tensors.
Quantization madeUp(mlir::func::FuncOp function, quant::Precision precision);

/// Returns @main of |module|, or an error if it contains an op that cannot be lowered.
llvm::Expected<mlir::func::FuncOp> deployableFunction(mlir::ModuleOp module);

/// Quantises the function if |quantization| is set and gives inputs and outputs their types; returns the decisions.
llvm::Expected<std::optional<quant::QuantizeReport>> prepareModel(mlir::func::FuncOp function,
                                                                  const std::optional<Quantization> &quantization,
                                                                  const quant::InputsOutputs &inputsOutputs,
                                                                  const PhaseObserver &observer,
                                                                  const IrObserver &observeIr = {});

llvm::Error writeText(mlir::ModuleOp module, const std::string &path);

/// Stores the scales and zero points of the model's integer tensors in the stage.
void addScales(bmodel::StageDefT &stage, const quant::QuantizeReport &report);

/// Returns for each result of the Top function what findOutputOrigin() returns.
std::vector<std::string> listOutputOrigins(mlir::func::FuncOp function);

/// Records `origins`, which listOutputOrigins() returned, in the outputs of the stage.
void addOutputOrigins(bmodel::StageDefT &stage, llvm::ArrayRef<std::string> origins);

/// Adds the properties that the module hands on (top_dialect/IR/Properties.h).
void addProperties(bmodel::ModelDefT &model, mlir::ModuleOp module);

/// Records in the file whether all engines give the same bits: property `bit_equal` = "all", or one `bit_equal_except`
/// for each node that makes them differ; nothing if the model does not promise equal bits.
void addExactness(bmodel::ModelDefT &model, const std::optional<std::vector<std::string>> &exceptions);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_PIPELINES_PREPARE_H
