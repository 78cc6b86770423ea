//===- SupportedOps.h - Which operators run where ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_PIPELINES_SUPPORTEDOPS_H
#define TESSERA_CODEGEN_PIPELINES_SUPPORTEDOPS_H

#include "codegen/Target/Target.h"
#include "quant/Transforms/Quantize.h"

#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace mlir {
class MLIRContext;
} // namespace mlir

namespace tessera::codegen {

/// One operator in one precision on one chip.
struct Support {
  std::string op; ///< row of the table, by ONNX operators
  quant::Precision precision;
  std::vector<std::string> reasons; ///< why parts of it run on another target; none: the chip runs all of it
};

/// Takes every operator of probes.mlir the way of model_deploy, up to where the partition has asked what the chip
/// cannot run; ranges are made up, since no value decides that.
llvm::Expected<std::vector<Support>> surveyOperators(mlir::MLIRContext &context, const Target &chip, const Target &host,
                                                     llvm::ArrayRef<quant::Precision> precisions);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_PIPELINES_SUPPORTEDOPS_H
