//===- QuantTables.h - The tables that --quantize goes by -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_TOOLS_QUANTTABLES_H
#define TESSERA_CODEGEN_TOOLS_QUANTTABLES_H

#include "codegen/Pipelines/X86Deploy.h"

namespace tessera::tool {

/// The tables of a quantised model, if they are good and of this |module|; nothing where |calibration| is empty.
/// |choices| (the quantise table) may be empty; |standard|: precision of ops that have no line there.
llvm::Expected<std::optional<codegen::Quantization>> loadTables(const std::string &calibration,
                                                                const std::string &choices, quant::Precision standard,
                                                                mlir::ModuleOp module);

} // namespace tessera::tool

#endif // TESSERA_CODEGEN_TOOLS_QUANTTABLES_H
