//===- Json.h - JSON of files that users make ---===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "llvm/Support/JSON.h"

namespace tessera::top {

/// llvm::json::parse, which goes down into lists and objects by recursion, for texts of any origin: what is nested
/// deeper than any file of ours is an error, not the end of the stack.
llvm::Expected<llvm::json::Value> parseJson(llvm::StringRef text);

} // namespace tessera::top
