//===- InputUses.h - What a network does with an input ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/IR/Value.h"
#include "llvm/Support/JSON.h"

namespace tessera::tool {

/// Describes what values a network input may have, for tools that draw some:
/// "index_below" (int): it is an index, moved at most, into a dim of so many elements;
/// "divisor" (true): it divides integers, so 0 is not allowed;
/// "fixed" (true): what it may be is not known, because sizes, indices or divisors are computed from it;
/// "reaches" (array): the names of the ops that it reaches.
llvm::json::Object describeUses(mlir::Value input);

} // namespace tessera::tool
