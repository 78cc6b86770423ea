//===- SupportedOps.h - Survey of supported operators -----------*- C++ -*-===//
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

/// Support of one operator in one precision on one chip.
struct Support {
  std::string op; ///< title of the table's row, in terms of ONNX operators
  quant::Precision precision;
  std::vector<std::string> reasons; ///< why parts of it run on another target; empty: the chip runs all of it
};

/// Runs every operator of probes.mlir through the pipeline of model_deploy up to the partition, which reports what the
/// chip cannot run. Ranges are made up, since support does not depend on values.
llvm::Expected<std::vector<Support>> surveyOperators(mlir::MLIRContext &context, const Target &chip, const Target &host,
                                                     llvm::ArrayRef<quant::Precision> precisions);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_PIPELINES_SUPPORTEDOPS_H
