//===- StatePairs.h - Inputs and outputs that are states ------------------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IMPORT_STATEPAIRS_H
#define TESSERA_TOP_DIALECT_IMPORT_STATEPAIRS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Error.h"

#include <string>
#include <utility>
#include <vector>

namespace tessera::top {

/// Names of an input and of the output that is its value in the next run.
using StatePair = std::pair<std::string, std::string>;

/// Parses "h_in=h_out,c_in=c_out".
llvm::Expected<std::vector<StatePair>> parseStatePairs(llvm::StringRef text);

/// Returns the inputs and outputs of equal type whose names say that they are a state, e.g. `past.0.key` and
/// `present.0.key`, `h_in` and `h_out`, `state` and `stateN`, `h0` and `hn`. Leaves out names that fit several
/// partners.
std::vector<StatePair> findStatePairs(mlir::func::FuncOp function);

/// Makes the pairs states of the network. Returns an error that lists the existing names if a name is wrong.
llvm::Error markStates(mlir::func::FuncOp function, llvm::ArrayRef<StatePair> pairs);

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_IMPORT_STATEPAIRS_H
