//===- QuantTables.h - Tables for --quantize --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_TOOLS_QUANTTABLES_H
#define TESSERA_CODEGEN_TOOLS_QUANTTABLES_H

#include "codegen/Pipelines/Prepare.h"

namespace tessera::tool {

/// Loads the tables for a precision other than F32 and checks that they belong to |module|; returns nothing for F32.
/// |calibration| and |choices| (the quantise table) are paths and may be empty.
llvm::Expected<std::optional<codegen::Quantization>> loadTables(quant::Precision precision,
                                                                const std::string &calibration,
                                                                const std::string &choices, mlir::ModuleOp module);

} // namespace tessera::tool

#endif // TESSERA_CODEGEN_TOOLS_QUANTTABLES_H
