//===- Constraints.h - What TopToDevice asks of a Top op --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Each constraint is one entry: its check, the words the user reads and the line of the generated
// supported-ops table.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_DEVICE_DIALECT_CONVERSION_CONSTRAINTS_H
#define TESSERA_DEVICE_DIALECT_CONVERSION_CONSTRAINTS_H

#include "mlir/IR/Operation.h"
#include <optional>

namespace tessera::device {

/// What the op has and what it may have, for the message.
struct Violation {
  std::string actual, allowed;
};

struct Constraint {
  llvm::StringLiteral name;
  /// One sentence for the table of supported ops.
  llvm::StringLiteral doc;
  /// What the user can do about it.
  llvm::StringLiteral advice;
  /// Nothing when the op meets the constraint.
  std::optional<Violation> (*check)(mlir::Operation *op);
};

/// All constraints, in the order they are checked; the first violated one is reported.
llvm::ArrayRef<Constraint> getTopToDeviceConstraints();

/// Emits an error at every Top op of `root` that violates a constraint.
mlir::LogicalResult checkLowerable(mlir::Operation *root);

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_CONVERSION_CONSTRAINTS_H
