//===- Constraints.h - Constraints of TopToDevice on Top ops ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Each constraint is one entry: its check, the text of its message, and its row in the generated table of supported
// ops.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_DEVICE_DIALECT_CONVERSION_TOPTODEVICE_CONSTRAINTS_H
#define TESSERA_DEVICE_DIALECT_CONVERSION_TOPTODEVICE_CONSTRAINTS_H

#include "mlir/IR/Operation.h"
#include <optional>

namespace tessera::device {

/// The actual and the allowed value, for the message.
struct Violation {
  std::string actual, allowed;
};

struct Constraint {
  llvm::StringLiteral name;
  /// One sentence for the table of supported ops.
  llvm::StringLiteral doc;
  /// Advice to the user on a violation.
  llvm::StringLiteral advice;
  /// Returns nothing if the op meets the constraint.
  std::optional<Violation> (*check)(mlir::Operation *op);
};

/// Returns all constraints in the order of checking; only the first violated one is reported per op.
llvm::ArrayRef<Constraint> getTopToDeviceConstraints();

/// Reports an error at every Top op in `root` that violates a constraint. `isSplit`: control flow is allowed, because
/// the model will be split at it.
mlir::LogicalResult checkLowerable(mlir::Operation *root, bool isSplit = false);

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_CONVERSION_TOPTODEVICE_CONSTRAINTS_H
