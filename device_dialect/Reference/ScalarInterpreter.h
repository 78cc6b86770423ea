//===- ScalarInterpreter.h - Interpreter of scalar regions ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Each op of a region is computed in double (integers: int64_t), and its result is immediately rounded (wrapped) to the
// op's type, so that single precision holds after every op.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_DEVICE_DIALECT_REFERENCE_SCALARINTERPRETER_H
#define TESSERA_DEVICE_DIALECT_REFERENCE_SCALARINTERPRETER_H

#include "mlir/IR/Region.h"
#include "top_dialect/IR/HostTensor.h"

namespace tessera::device {

/// Computes result[i] = region(arguments[i]...), with arguments broadcast to the result as in numpy. An empty region
/// converts its single argument. Reports an error at an op that is not supported.
llvm::LogicalResult runScalarRegion(mlir::Region &region, llvm::ArrayRef<const top::HostTensor *> arguments,
                                    top::HostTensor &result);

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_REFERENCE_SCALARINTERPRETER_H
