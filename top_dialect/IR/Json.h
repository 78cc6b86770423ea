//===- Json.h - JSON files written by users -------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IR_JSON_H
#define TESSERA_TOP_DIALECT_IR_JSON_H

#include "llvm/Support/JSON.h"

namespace tessera::top {

/// Parses JSON of any origin. llvm::json::parse recurses into lists and objects; this function reports text that is
/// nested deeper than any valid file as an error, instead of overflowing the stack.
llvm::Expected<llvm::json::Value> parseJson(llvm::StringRef text);

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_IR_JSON_H
