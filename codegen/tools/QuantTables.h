//===- QuantTables.h - The tables that --quantize goes by -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_TOOLS_QUANTTABLES_H
#define TESSERA_CODEGEN_TOOLS_QUANTTABLES_H

#include "codegen/Pipelines/Prepare.h"

namespace tessera::tool {

/// The tables of an INT8 model, if they are good and of this |module|; nothing where |calibration| is empty. |choices|
/// (the quantise table) may be empty.
llvm::Expected<std::optional<codegen::Quantization>> loadTables(quant::Precision precision,
                                                                const std::string &calibration,
                                                                const std::string &choices, mlir::ModuleOp module);

} // namespace tessera::tool

#endif // TESSERA_CODEGEN_TOOLS_QUANTTABLES_H
