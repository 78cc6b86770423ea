//===- PaddingRules.h - Which ops compute right results beside padding -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// A padded tensor holds the elements of a tensor with symbolic sizes at the front of each dim, and padding behind them.
// An op may compute with padded operands if it finds the same elements at the front of its results as without padding.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_DEVICE_DIALECT_TRANSFORMS_PADDINGRULES_H
#define TESSERA_DEVICE_DIALECT_TRANSFORMS_PADDINGRULES_H

#include "top_dialect/IR/Sizes.h"

#include "mlir/IR/Operation.h"

#include <optional>
#include <string>

namespace tessera::device {

/// The value of all elements of a tensor whose index in one dim is beyond the real size; none: any values, also NaN.
using Filling = std::optional<double>;

/// The conditions under which an op may have padded operands.
struct PaddingRule {
  /// Dim |dim| of operand |operand| must be filled with |value|.
  struct Need {
    unsigned operand;
    unsigned dim;
    double value;
  };
  /// A dim of the results that is filled with |value|. All other padding of results holds any values.
  struct Filled {
    unsigned result;
    unsigned dim;
    double value;
  };

  llvm::SmallVector<Need> needs;
  llvm::SmallVector<Filled> filled;
  /// The op is an attention without mask, which needs one that hides the padded keys.
  bool needsKeyMask = false;
  /// Why the op cannot have padded operands, as the end of a sentence about the op; empty if it can.
  std::string rejection;
};

/// Returns the filling of dim |dim| of an operand of the op.
using FillingOf = llvm::function_ref<Filling(unsigned operand, unsigned dim)>;

/// Returns the rule of |op|, whose types have symbolic sizes. Ops without a rule cannot have padded operands.
PaddingRule paddingRuleOf(mlir::Operation *op, FillingOf fillingOf);

/// Returns true if |size| is known to be 0 or less for all values of its symbols.
bool isNeverPositive(Dim size);

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_TRANSFORMS_PADDINGRULES_H
