//===- Targets.h - Chips, precisions, and what goes with what ---===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace tessera::tool {

/// What the Python tools know of targets: "chips" with family and whether this machine runs them, "chip_files"
/// (families of which a .json file may describe a chip), "precisions" with other spellings, the type of activations,
/// bits of an element, and whether they need a table of ranges; "flags" of model_deploy that are for some families
/// only; "defaults"; "planned_chips" and "planned_precisions", which are refused as not there yet.
llvm::Expected<llvm::json::Object> describeTargets();

} // namespace tessera::tool
