//===- Targets.h - Chips, precisions and flags ----------------------------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_TOOLS_TARGETS_H
#define TESSERA_CODEGEN_TOOLS_TARGETS_H

#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace tessera::tool {

/// Returns what the Python tools need to know about targets: "chips" with family and whether this machine runs them;
/// "chip_files", families whose chips a .json file may describe; "precisions" with aliases, type of activations, bits
/// per element, and whether they need a table of ranges; "planned_precisions", which are rejected as not supported yet;
/// "flags" of model_deploy that apply to some families only; "defaults".
llvm::Expected<llvm::json::Object> describeTargets();

} // namespace tessera::tool

#endif // TESSERA_CODEGEN_TOOLS_TARGETS_H
