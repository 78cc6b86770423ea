//===- InputUses.h - Uses of a network input --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_TOOLS_INPUTUSES_H
#define TESSERA_CODEGEN_TOOLS_INPUTUSES_H

#include "mlir/IR/Value.h"
#include "llvm/Support/JSON.h"

namespace tessera::tool {

/// Describes which values a network input may have, for tools that draw random values:
/// "index_below" (int): the input, possibly after moves, is an index into a dim of this many elements;
/// "divisor" (true): the input divides integers, so 0 is not allowed;
/// "fixed" (true): the allowed values are unknown, because sizes, indices or divisors are computed from the input;
/// "reaches" (array): names of the ops that the input reaches.
llvm::json::Object describeUses(mlir::Value input);

} // namespace tessera::tool

#endif // TESSERA_CODEGEN_TOOLS_INPUTUSES_H
