//===- ScalarInterpreter.h - Runs the scalar regions of device ops -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Each op of a region is computed in double (integers: int64_t) and its result rounded (wrapped) to the
// op's type at once, so that single precision means single precision after every op.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_DEVICE_DIALECT_REFERENCE_SCALARINTERPRETER_H
#define TESSERA_DEVICE_DIALECT_REFERENCE_SCALARINTERPRETER_H

#include "mlir/IR/Region.h"
#include "top_dialect/IR/HostTensor.h"

namespace tessera::device {

/// result[i] = region(arguments[i]...), the arguments broadcast to the result as in numpy. An empty
/// region converts its one argument. An op it does not know is an error at that op.
llvm::LogicalResult runScalarRegion(mlir::Region &region, llvm::ArrayRef<const top::HostTensor *> arguments,
                                    top::HostTensor &result);

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_REFERENCE_SCALARINTERPRETER_H
