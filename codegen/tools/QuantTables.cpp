//===- QuantTables.cpp - Tables for --quantize ----------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/tools/QuantTables.h"
#include "codegen/tools/Events.h"
#include "codegen/tools/Subcommand.h"
#include "quant/Transforms/Precision/PrecisionAttributes.h"
#include "top_dialect/IR/TensorNames.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tool;

llvm::Expected<std::optional<codegen::Quantization>> tessera::tool::loadTables(quant::Precision precision,
                                                                               const std::string &calibration,
                                                                               const std::string &choices,
                                                                               ModuleOp module) {
  auto function = module.lookupSymbol<func::FuncOp>("main");
  const bool isAssigned = function && quant::isAssigned(function);
  if (precision == quant::Precision::F32 && !isAssigned) {
    return std::nullopt;
  }
  codegen::Quantization quantization;
  quantization.options.precision = precision;
  if (!calibration.empty()) {
    auto table = quant::CalibrationTable::load(calibration);
    if (!table) {
      return table.takeError();
    }
    quantization.table = std::move(*table);
  }
  std::string hash = calibration.empty() ? ""
                     : isAssigned        ? quant::calibratedModel(function)
                                         : top::hashModule(module),
              network = top::networkOf(module);
  quantization.table.isOfOtherShapes =
      quantization.table.modelHash() != hash && !network.empty() && quantization.table.network() == network;
  if (quantization.table.modelHash() != hash && !quantization.table.isOfOtherShapes) {
    return llvm::make_error<CodedError>(kError, "'" + calibration + "' is of another model: its model_hash is " +
                                                    quantization.table.modelHash() + " ('" +
                                                    quantization.table.modelName() + "'), the model's is " + hash +
                                                    "; run run_calibration for this model");
  }
  if (!choices.empty()) {
    auto loaded = quant::QuantizeTable::load(choices);
    if (!loaded) {
      return loaded.takeError();
    }
    quantization.choices = std::move(*loaded);
    for (const quant::Choice &choice : quantization.choices.choices) {
      if ((choice.precision == quant::Precision::INT8 || choice.precision == quant::Precision::INT16) &&
          calibration.empty()) {
        return llvm::make_error<CodedError>(kUsage, "'" + choices + "': '" + choice.name + "' asks for " +
                                                        quant::toString(choice.precision).str() +
                                                        ", which needs --calibration-table: the ranges "
                                                        "that run_calibration measures");
      }
    }
  }
  return quantization;
}
